/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer of a definition log (shm/symbol.h): what was defined once is not defined again.
 *
 * A definition is known by its bytes: the table holds hashes and positions, and the log itself is
 * what is compared with. So a restarted worker takes up an existing log whole, and nothing is kept
 * twice. Ids are counted from the log as well: next_id in its header is for others to look at,
 * since it and len_bytes cannot be written in one store.
 *
 * Every define_*() returns an id, or 0 when the log is full: then the caller commits what it has
 * and calls define_next_epoch().
 */
#ifndef SCONCE_SYMBOLIZER_DEFINE_H
#define SCONCE_SYMBOLIZER_DEFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/symbol.h"

struct define {
	struct symbol_log *logs[2];
	struct symbol_log *log; /* of the present epoch */
	uint64_t capacity;	/* of each, bytes behind the header */
	uint64_t len_bytes;	/* private; becomes public by define_publish() */
	uint32_t epoch;
	bool damaged; /* the log that was found made no sense: next epoch first */
	uint32_t next_id[SYMBOL_KIND_COUNT];
	struct define_slot *table;
	uint32_t table_mask, table_used;
	uint64_t *scratch; /* one record, as it will stand in the log */
};

/* Map both logs and go on where they end. 0 or -errno. */
int define_open(struct define *define, int log_a, int log_b);
void define_close(struct define *define);

/* Let the exporter see what was defined. Before the samples that use it are published. */
void define_publish(struct define *define);

/*
 * Begin the next epoch in the other log. Only when the exporter has released every sample of the
 * epoch before the present one, and nothing of the present one is left unpublished.
 */
void define_next_epoch(struct define *define);

/* text need not end in NUL; cut at SYMBOL_STRING_BYTES_MAX. */
uint32_t define_string(struct define *define, const char *text, size_t n);
/* The header of these need not be filled in. */
uint32_t define_function(struct define *define, const struct symbol_function *function);
uint32_t define_mapping(struct define *define, const struct symbol_mapping *mapping);
uint32_t define_process(struct define *define, const struct symbol_process *process);
/* lines: lines_n of them, at most SYMBOL_LINES_MAX. */
uint32_t define_location(struct define *define, const struct symbol_location *location,
			 const struct symbol_line *lines);
uint32_t define_stack(struct define *define, const uint32_t *locations, uint32_t n);

#endif
