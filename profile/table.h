/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash-consed table: byte strings in, dense ids 1 .. n out, the same id for the same bytes.
 *
 * It answers for storage and look-up, knows nothing of what the bytes mean, and charges every byte
 * that it allocates to a budget that several tables share. Entries are aligned to 8 and never move
 * relative to each other, but the whole table may move when something is added.
 */
#ifndef SCONCE_PROFILE_TABLE_H
#define SCONCE_PROFILE_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct table_budget {
	size_t limit_bytes, used_bytes;
};

struct table_entry {
	uint32_t offset; /* in units of 8 bytes */
	uint32_t len_bytes;
	uint32_t hash;
};

struct table {
	char *data;
	size_t data_used, data_cap;
	struct table_entry *entries; /* entries[id - 1] */
	uint32_t n, entries_cap;
	uint32_t *slots; /* open addressing, ids; a power of two, at most 3/4 full */
	uint32_t slots_n;
};

/*
 * Grow *array from *cap to at least `need` elements of `size` bytes within the budget, by doubling
 * while there is room. 0, -ENOSPC (the budget) or -ENOMEM.
 */
int table_grow(struct table_budget *budget, void **array, size_t *cap, size_t need, size_t size);

/* The id of these bytes, 0 when they are not there. */
uint32_t table_find(const struct table *table, const void *bytes, size_t len_bytes);
/* The id of these bytes, added when they are new. 0 with errno ENOSPC or ENOMEM. */
uint32_t table_intern(struct table *table, struct table_budget *budget, const void *bytes,
		      size_t len_bytes);
/* Entry 1 .. n. */
const void *table_at(const struct table *table, uint32_t id, size_t *len_bytes);
/* Free everything and give the bytes back to the budget. */
void table_clear(struct table *table, struct table_budget *budget);

#endif
