/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_SLOTS_MIN 64
#define TABLE_UNIT	8

/* FNV-1a over words, then mixed: names are short and often differ in one byte. */
static uint32_t table_hash(const char *bytes, size_t len)
{
	uint64_t h = 0xcbf29ce484222325ull ^ len, word;

	for (; len >= sizeof(word); bytes += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		h = (h ^ word) * 0x9fb21c651e98df25ull;
		h ^= h >> 32;
	}
	for (; len; len--)
		h = (h ^ (unsigned char)*bytes++) * 0x100000001b3ull;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ull;
	return (uint32_t)(h >> 32);
}

int table_grow(struct table_budget *budget, void **array, size_t *cap, size_t need, size_t size)
{
	size_t room = (budget->limit_bytes - budget->used_bytes) / size;
	size_t to = *cap ? *cap * 2 : 64;
	void *bigger;

	if (need <= *cap)
		return 0;
	if (to < need)
		to = need;
	if (to - *cap > room)
		to = *cap + room;
	if (to < need)
		return -ENOSPC;
	bigger = realloc(*array, to * size);
	if (!bigger)
		return -ENOMEM;
	budget->used_bytes += (to - *cap) * size;
	*array = bigger;
	*cap = to;
	return 0;
}

static void table_rehash(struct table *table, uint32_t *slots, uint32_t slots_n)
{
	for (uint32_t id = 1; id <= table->n; id++) {
		uint32_t i = table->entries[id - 1].hash & (slots_n - 1);

		while (slots[i])
			i = (i + 1) & (slots_n - 1);
		slots[i] = id;
	}
	free(table->slots);
	table->slots = slots;
	table->slots_n = slots_n;
}

static int table_grow_slots(struct table *table, struct table_budget *budget)
{
	uint32_t to = table->slots_n ? table->slots_n * 2 : TABLE_SLOTS_MIN;
	size_t more = (size_t)(to - table->slots_n) * sizeof(uint32_t);
	uint32_t *slots;

	if ((uint64_t)(table->n + 1) * 4 <= (uint64_t)table->slots_n * 3)
		return 0;
	if (to > 1u << 30 || more > budget->limit_bytes - budget->used_bytes)
		return -ENOSPC;
	slots = calloc(to, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	budget->used_bytes += more;
	table_rehash(table, slots, to);
	return 0;
}

static int table_grow_entries(struct table *table, struct table_budget *budget)
{
	size_t cap = table->entries_cap;
	void *entries = table->entries;
	int err = table_grow(budget, &entries, &cap, (size_t)table->n + 1, sizeof(*table->entries));

	table->entries = entries;
	table->entries_cap = (uint32_t)cap;
	return err;
}

static int table_room(struct table *table, struct table_budget *budget, size_t units)
{
	void *data = table->data;
	size_t cap = table->data_cap;
	int err;

	/* offsets are 32 bits */
	if (table->data_used + units > UINT32_MAX)
		return -ENOSPC;
	err = table_grow(budget, &data, &cap, table->data_used + units, TABLE_UNIT);
	table->data = data;
	table->data_cap = cap;
	if (!err)
		err = table_grow_entries(table, budget);
	return err ? err : table_grow_slots(table, budget);
}

static uint32_t table_lookup(const struct table *table, const void *bytes, size_t len,
			     uint32_t hash)
{
	if (!table->slots_n)
		return 0;
	for (uint32_t i = hash & (table->slots_n - 1); table->slots[i];
	     i = (i + 1) & (table->slots_n - 1)) {
		const struct table_entry *e = &table->entries[table->slots[i] - 1];

		if (e->hash == hash && e->len_bytes == len &&
		    (!len || !memcmp(table->data + (size_t)e->offset * TABLE_UNIT, bytes, len)))
			return table->slots[i];
	}
	return 0;
}

uint32_t table_find(const struct table *table, const void *bytes, size_t len_bytes)
{
	return table_lookup(table, bytes, len_bytes, table_hash(bytes, len_bytes));
}

static uint32_t table_append(struct table *table, const void *bytes, size_t len, uint32_t hash)
{
	char *room = table->data + table->data_used * TABLE_UNIT;
	uint32_t i = hash & (table->slots_n - 1);

	if (len) /* a resource without attributes has no bytes, and maybe no table->data yet */
		memcpy(room, bytes, len);
	table->entries[table->n] =
	    (struct table_entry){(uint32_t)table->data_used, (uint32_t)len, hash};
	table->data_used += (len + TABLE_UNIT - 1) / TABLE_UNIT;
	table->n++;
	while (table->slots[i])
		i = (i + 1) & (table->slots_n - 1);
	table->slots[i] = table->n;
	return table->n;
}

uint32_t table_intern(struct table *table, struct table_budget *budget, const void *bytes,
		      size_t len_bytes)
{
	uint32_t hash = table_hash(bytes, len_bytes);
	uint32_t id = table_lookup(table, bytes, len_bytes, hash);
	int err;

	if (id)
		return id;
	err = table_room(table, budget, (len_bytes + TABLE_UNIT - 1) / TABLE_UNIT);
	if (err) {
		errno = -err;
		return 0;
	}
	return table_append(table, bytes, len_bytes, hash);
}

const void *table_at(const struct table *table, uint32_t id, size_t *len_bytes)
{
	assert(id && id <= table->n);
	if (len_bytes)
		*len_bytes = table->entries[id - 1].len_bytes;
	return table->data + (size_t)table->entries[id - 1].offset * TABLE_UNIT;
}

void table_clear(struct table *table, struct table_budget *budget)
{
	budget->used_bytes -= table->data_cap * TABLE_UNIT +
			      (size_t)table->entries_cap * sizeof(*table->entries) +
			      (size_t)table->slots_n * sizeof(*table->slots);
	free(table->data);
	free(table->entries);
	free(table->slots);
	memset(table, 0, sizeof(*table));
}
