/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/definitions.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shm/segment.h"

#define DEFINITIONS_UNIT 8

int definitions_open(struct definitions *definitions, int fd)
{
	long size = segment_size(fd);

	memset(definitions, 0, sizeof(*definitions));
	if (size < 0)
		return (int)size;
	if (size <= SYMBOL_LOG_HEADER_BYTES)
		return -EPROTO;
	definitions->log = segment_map(fd, (size_t)size, 0);
	if (!definitions->log)
		return -errno;
	definitions->records = (const char *)definitions->log + SYMBOL_LOG_HEADER_BYTES;
	definitions->size = (uint64_t)size - SYMBOL_LOG_HEADER_BYTES;
	return 0;
}

void definitions_close(struct definitions *definitions)
{
	if (definitions->log)
		munmap((void *)definitions->log, definitions->size + SYMBOL_LOG_HEADER_BYTES);
	for (int i = 0; i < SYMBOL_KIND_COUNT; i++)
		free(definitions->kinds[i].slots);
	memset(definitions, 0, sizeof(*definitions));
}

static int definitions_begin(struct definitions *definitions, uint32_t epoch)
{
	const volatile struct symbol_log *log = definitions->log;

	if (log->magic != SYMBOL_MAGIC || log->version != SYMBOL_VERSION || log->epoch != epoch)
		return -EPROTO;
	definitions->epoch = epoch;
	definitions->begun = true;
	definitions->cursor = 0;
	for (int i = 0; i < SYMBOL_KIND_COUNT; i++)
		definitions->kinds[i].n = 0;
	return 0;
}

/* The log is bounded, so the number of slots is: one per 16 bytes at most. */
static int definitions_add(struct definitions_kind *kind, uint64_t offset)
{
	struct definitions_slot *bigger;
	size_t cap;

	if (kind->n == kind->cap) {
		cap = kind->cap ? kind->cap * 2 : 256;
		bigger = realloc(kind->slots, cap * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		kind->slots = bigger;
		kind->cap = cap;
	}
	kind->slots[kind->n++] =
	    (struct definitions_slot){(uint32_t)(offset / DEFINITIONS_UNIT), 0, 0};
	return 0;
}

int definitions_catch_up(struct definitions *definitions, uint32_t epoch)
{
	uint64_t len;
	int err = 0;

	if (!definitions->begun || definitions->epoch != epoch)
		err = definitions_begin(definitions, epoch);
	/* acquire pairs with the producer's release: the records are whole before they are counted
	 */
	len = atomic_load_explicit(&definitions->log->len_bytes, memory_order_acquire);
	if (!err && (len > definitions->size || len < definitions->cursor))
		err = -EPROTO;
	while (!err && definitions->cursor < len) {
		struct symbol_header header;

		if (len - definitions->cursor < sizeof(header))
			return -EPROTO;
		memcpy(&header, definitions->records + definitions->cursor, sizeof(header));
		if (header.len_bytes < sizeof(header) || (header.len_bytes & 7) ||
		    header.len_bytes > len - definitions->cursor || !header.kind ||
		    header.kind >= SYMBOL_SAMPLE ||
		    header.id != definitions->kinds[header.kind].n + 1)
			return -EPROTO;
		err = definitions_add(&definitions->kinds[header.kind], definitions->cursor);
		if (!err)
			definitions->cursor += header.len_bytes;
	}
	return err;
}

struct definitions_slot *definitions_find(struct definitions *definitions, enum symbol_kind kind,
					  uint32_t id)
{
	return id && id <= definitions->kinds[kind].n ? &definitions->kinds[kind].slots[id - 1]
						      : NULL;
}

/* Bytes that a record of this kind must have, given what its fixed part says; 0 = impossible. */
static size_t definitions_need(enum symbol_kind kind, const char *record, size_t len)
{
	static const size_t fixed[SYMBOL_KIND_COUNT] = {
	    [SYMBOL_STRING] = sizeof(struct symbol_string),
	    [SYMBOL_FUNCTION] = sizeof(struct symbol_function),
	    [SYMBOL_MAPPING] = sizeof(struct symbol_mapping),
	    [SYMBOL_LOCATION] = sizeof(struct symbol_location),
	    [SYMBOL_STACK] = sizeof(struct symbol_stack),
	    [SYMBOL_PROCESS] = sizeof(struct symbol_process),
	};
	const struct symbol_string *string = (const void *)record;
	const struct symbol_location *location = (const void *)record;
	const struct symbol_stack *stack = (const void *)record;

	if (len < fixed[kind])
		return 0;
	if (kind == SYMBOL_STRING)
		return string->bytes > SYMBOL_STRING_BYTES_MAX ? 0 : fixed[kind] + string->bytes;
	if (kind == SYMBOL_LOCATION)
		return location->lines_n > SYMBOL_LINES_MAX
			   ? 0
			   : fixed[kind] + location->lines_n * sizeof(struct symbol_line);
	if (kind == SYMBOL_STACK)
		return stack->locations_n > SYMBOL_STACK_FRAMES_MAX
			   ? 0
			   : fixed[kind] + stack->locations_n * sizeof(uint32_t);
	return fixed[kind];
}

bool definitions_copy(const struct definitions *definitions, const struct definitions_slot *slot,
		      enum symbol_kind kind, char buf[DEFINITIONS_RECORD_BYTES_MAX])
{
	uint64_t offset = (uint64_t)slot->offset * DEFINITIONS_UNIT;
	struct symbol_header *header = (struct symbol_header *)buf;
	uint32_t len;
	size_t need;

	/* It may have changed since it was counted: read the length once, then only the copy. */
	len = *(const volatile uint32_t *)(definitions->records + offset);
	if (len < sizeof(*header) || len > definitions->size - offset ||
	    len > DEFINITIONS_RECORD_BYTES_MAX)
		return false;
	memcpy(buf, definitions->records + offset, len);
	need = definitions_need(kind, buf, len);
	return header->kind == kind && need && need <= len;
}
