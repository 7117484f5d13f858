/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One definition log of one worker, read by ids (shm/symbol.h). The worker may be anyone: it can
 * write whatever it likes at any time. So only where a definition stands is remembered; each use
 * copies the record out and checks the copy. Ids that a definition refers to are checked when they
 * are looked up in their turn.
 *
 * Each definition has a slot for what it was translated to in the batch at work.
 */
#ifndef SCONCE_EXPORTER_DEFINITIONS_H
#define SCONCE_EXPORTER_DEFINITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/symbol.h"

#define DEFINITIONS_RECORD_BYTES_MAX 8192

struct definitions_slot {
	uint32_t offset;     /* of the record, in units of 8 bytes */
	uint32_t generation; /* `id` holds in the batch of this number */
	uint32_t id;
};

struct definitions_kind {
	struct definitions_slot *slots; /* slots[id - 1] */
	uint32_t n;
	size_t cap;
};

struct definitions {
	const struct symbol_log *log;
	const char *records;
	uint64_t size; /* bytes of records that are mapped */
	uint64_t cursor;
	uint32_t epoch;
	bool begun;
	struct definitions_kind kinds[SYMBOL_KIND_COUNT];
};

/* Map a log, read-only. The fd stays the caller's. 0 or -errno. */
int definitions_open(struct definitions *definitions, int fd);
void definitions_close(struct definitions *definitions);

/*
 * Make all definitions of this epoch known that stand in the log by now. 0, -EPROTO (the log is not
 * of this epoch, or malformed) or -ENOMEM.
 */
int definitions_catch_up(struct definitions *definitions, uint32_t epoch);

/* The slot of a definition, NULL when there is none of this id. */
struct definitions_slot *definitions_find(struct definitions *definitions, enum symbol_kind kind,
					  uint32_t id);

/* Copy the record of a slot out and check its lengths; buf is aligned to 8. False: malformed. */
bool definitions_copy(const struct definitions *definitions, const struct definitions_slot *slot,
		      enum symbol_kind kind, char buf[DEFINITIONS_RECORD_BYTES_MAX]);

#endif
