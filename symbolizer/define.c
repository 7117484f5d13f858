/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/define.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shm/segment.h"

#define RECORD_MAX (sizeof(struct symbol_string) + SYMBOL_STRING_BYTES_MAX + 8)
_Static_assert(sizeof(struct symbol_stack) + SYMBOL_STACK_FRAMES_MAX * 4 + 8 <= RECORD_MAX + 1024,
	       "scratch holds a stack");
#define SCRATCH_BYTES (RECORD_MAX + 1024)

/* Positions are counted in units of 8 bytes, so that 32 bits reach 32 GiB. */
struct define_slot {
	uint32_t hash;
	uint32_t position; /* + 1; 0 = free */
};

/* Shortest definition: a stack or a string with next to nothing in it. */
#define TABLE_BYTES_PER_SLOT 32

static char *define_records(const struct define *d)
{
	return (char *)d->log + SYMBOL_LOG_HEADER_BYTES;
}

/* All of a record but its id. */
static uint32_t define_hash(const struct symbol_header *header)
{
	const uint64_t *words = (const uint64_t *)(const void *)header;
	uint64_t hash = words[0];

	for (uint32_t i = 2; i < header->len_bytes / 8; i++) {
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	return (uint32_t)(hash ^ hash >> 32);
}

static bool define_same(const struct symbol_header *a, const struct symbol_header *b)
{
	return a->len_bytes == b->len_bytes && a->kind == b->kind &&
	       memcmp(a + 1, b + 1, a->len_bytes - sizeof(*a)) == 0;
}

/* The slot of an equal definition, or the free one where it belongs. */
static struct define_slot *define_find(struct define *d, const struct symbol_header *header,
				       uint32_t hash)
{
	uint32_t i = hash & d->table_mask;

	while (d->table[i].position) {
		const struct define_slot *slot = &d->table[i];

		if (slot->hash == hash &&
		    define_same(header,
				(const void *)(define_records(d) + (slot->position - 1ull) * 8)))
			break;
		i = (i + 1) & d->table_mask;
	}
	return &d->table[i];
}

static void define_forget(struct define *d)
{
	memset(d->table, 0, (d->table_mask + 1ul) * sizeof(*d->table));
	d->table_used = 0;
	for (int kind = 0; kind < SYMBOL_KIND_COUNT; kind++)
		d->next_id[kind] = 1;
}

/* Take up one record of a log that another instance of us wrote. False when it makes no sense. */
static bool define_take_up(struct define *d, uint64_t position, uint64_t end)
{
	const struct symbol_header *header = (const void *)(define_records(d) + position);
	struct define_slot *slot;
	uint32_t hash;

	if (end - position < sizeof(*header) || header->len_bytes < sizeof(*header) ||
	    (header->len_bytes & 7) || header->len_bytes > end - position ||
	    header->len_bytes > SCRATCH_BYTES || header->kind == 0 ||
	    header->kind >= SYMBOL_SAMPLE || header->id != d->next_id[header->kind] ||
	    d->table_used >= d->table_mask / 4 * 3)
		return false;
	d->next_id[header->kind]++;
	hash = define_hash(header);
	slot = define_find(d, header, hash);
	if (!slot->position) {
		*slot = (struct define_slot){hash, (uint32_t)(position / 8 + 1)};
		d->table_used++;
	}
	return true;
}

static void define_scan(struct define *d)
{
	uint64_t position = 0;

	define_forget(d);
	d->epoch = d->log->epoch;
	d->len_bytes = atomic_load_explicit(&d->log->len_bytes, memory_order_relaxed);
	d->damaged = d->len_bytes > d->capacity || (d->len_bytes & 7);
	while (!d->damaged && position < d->len_bytes) {
		if (define_take_up(d, position, d->len_bytes))
			position += *(const uint32_t *)(const void *)(define_records(d) + position);
		else
			d->damaged = true;
	}
}

static void define_format(struct symbol_log *log, uint64_t capacity, uint32_t epoch)
{
	log->version = SYMBOL_VERSION;
	log->capacity = capacity;
	log->epoch = epoch;
	for (int kind = 0; kind < SYMBOL_KIND_COUNT; kind++)
		log->next_id[kind] = 1;
	log->magic = SYMBOL_MAGIC;
	/* release: whoever sees the length go back to 0 sees the new epoch */
	atomic_store_explicit(&log->len_bytes, 0, memory_order_release);
}

static int define_map(struct define *d, const int fds[2])
{
	for (int i = 0; i < 2; i++) {
		long size = segment_size(fds[i]);

		if (size < 0)
			return (int)size;
		if (size <= SYMBOL_LOG_HEADER_BYTES + (long)SCRATCH_BYTES ||
		    (d->capacity && d->capacity != (uint64_t)size - SYMBOL_LOG_HEADER_BYTES))
			return -EPROTO;
		d->capacity = (uint64_t)size - SYMBOL_LOG_HEADER_BYTES;
		d->logs[i] = segment_map(fds[i], (size_t)size, 1);
		if (!d->logs[i])
			return -errno;
	}
	return 0;
}

static int define_allocate(struct define *d)
{
	uint64_t slots = 1024;

	while (slots < d->capacity / TABLE_BYTES_PER_SLOT)
		slots *= 2;
	d->table_mask = (uint32_t)slots - 1;
	d->table = calloc(slots, sizeof(*d->table));
	d->scratch = malloc(SCRATCH_BYTES);
	return d->table && d->scratch ? 0 : -ENOMEM;
}

int define_open(struct define *d, int log_a, int log_b)
{
	int err;

	memset(d, 0, sizeof(*d));
	err = define_map(d, (const int[2]){log_a, log_b});
	if (err == 0)
		err = define_allocate(d);
	if (err) {
		define_close(d);
		return err;
	}
	/* Epoch e lives in log e % 2; fresh memory gets 1 as its first, so that 0 is never used. */
	for (uint32_t i = 0; i < 2; i++)
		if (d->logs[i]->magic != SYMBOL_MAGIC || d->logs[i]->epoch % 2 != i)
			define_format(d->logs[i], d->capacity, i);
	d->log = d->logs[(int32_t)(d->logs[1]->epoch - d->logs[0]->epoch) > 0];
	define_scan(d);
	return 0;
}

void define_close(struct define *d)
{
	for (int i = 0; i < 2; i++)
		if (d->logs[i])
			munmap(d->logs[i], SYMBOL_LOG_HEADER_BYTES + d->capacity);
	free(d->table);
	free(d->scratch);
	memset(d, 0, sizeof(*d));
}

void define_publish(struct define *d)
{
	if (d->damaged)
		return;
	for (int kind = 0; kind < SYMBOL_KIND_COUNT; kind++)
		d->log->next_id[kind] = d->next_id[kind];
	/* release pairs with the exporter's acquire: the records are whole before they count */
	atomic_store_explicit(&d->log->len_bytes, d->len_bytes, memory_order_release);
}

void define_next_epoch(struct define *d)
{
	d->epoch++;
	d->log = d->logs[d->epoch % 2];
	define_format(d->log, d->capacity, d->epoch);
	define_forget(d);
	d->len_bytes = 0;
	d->damaged = false;
}

/* The id of the record in d->scratch, which is appended if it is new. */
static uint32_t define_record(struct define *d, enum symbol_kind kind, size_t bytes)
{
	struct symbol_header *header = (struct symbol_header *)d->scratch;
	size_t rounded = (bytes + 7) & ~7ul;
	struct define_slot *slot;
	uint32_t hash;

	memset((char *)d->scratch + bytes, 0, rounded - bytes);
	if (d->damaged)
		return 0;
	*header = (struct symbol_header){.len_bytes = (uint32_t)rounded, .kind = (uint16_t)kind};
	hash = define_hash(header);
	slot = define_find(d, header, hash);
	if (slot->position) {
		header = (void *)(define_records(d) + (slot->position - 1ull) * 8);
		return header->id;
	}
	if (rounded > d->capacity - d->len_bytes || d->table_used >= d->table_mask / 4 * 3)
		return 0;
	header->id = d->next_id[kind]++;
	memcpy(define_records(d) + d->len_bytes, d->scratch, rounded);
	*slot = (struct define_slot){hash, (uint32_t)(d->len_bytes / 8 + 1)};
	d->table_used++;
	d->len_bytes += rounded;
	return header->id;
}

uint32_t define_string(struct define *d, const char *text, size_t n)
{
	struct symbol_string *string = (struct symbol_string *)d->scratch;

	if (n > SYMBOL_STRING_BYTES_MAX)
		n = SYMBOL_STRING_BYTES_MAX;
	string->bytes = (uint32_t)n;
	memcpy(string->text, text, n);
	string->text[n] = 0;
	return define_record(d, SYMBOL_STRING, sizeof(*string) + n + 1);
}

uint32_t define_function(struct define *d, const struct symbol_function *function)
{
	memcpy(d->scratch, function, sizeof(*function));
	return define_record(d, SYMBOL_FUNCTION, sizeof(*function));
}

uint32_t define_mapping(struct define *d, const struct symbol_mapping *mapping)
{
	memcpy(d->scratch, mapping, sizeof(*mapping));
	return define_record(d, SYMBOL_MAPPING, sizeof(*mapping));
}

uint32_t define_process(struct define *d, const struct symbol_process *process)
{
	memcpy(d->scratch, process, sizeof(*process));
	return define_record(d, SYMBOL_PROCESS, sizeof(*process));
}

uint32_t define_location(struct define *d, const struct symbol_location *location,
			 const struct symbol_line *lines)
{
	struct symbol_location *record = (struct symbol_location *)d->scratch;
	size_t bytes = location->lines_n * sizeof(*lines);

	memcpy(record, location, sizeof(*record));
	memcpy(record->lines, lines, bytes);
	return define_record(d, SYMBOL_LOCATION, sizeof(*record) + bytes);
}

uint32_t define_stack(struct define *d, const uint32_t *locations, uint32_t n)
{
	struct symbol_stack *stack = (struct symbol_stack *)d->scratch;

	stack->locations_n = n;
	if (n > 0)
		memcpy(stack->locations, locations, n * sizeof(*locations));
	return define_record(d, SYMBOL_STACK, sizeof(*stack) + n * sizeof(*locations));
}
