/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for code that has no call frame information but a form that leaves no doubt: the first
 * instructions of a process, or of a thread, the return from a signal handler, linkage tables.
 * Anything else without information stays invalid.
 */
#ifndef SCONCE_SYMBOLIZER_CFIFILL_H
#define SCONCE_SYMBOLIZER_CFIFILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/table.h"
#include "symbolizer/elffile.h"

#define CFIFILL_MAX		64
#define CFIFILL_SIGRETURN_BYTES 9

struct cfifill {
	uint64_t offset, bytes; /* in the file */
	struct table_rule rule;
};

struct cfifills {
	struct cfifill fills[CFIFILL_MAX]; /* what does not fit is left out */
	size_t n;
	size_t scanned_bytes, scanned_n;
};

/* What stands at the entry of the file. */
void cfifill_entry(struct elffile *file, struct cfifills *fills);
/* The linkage tables among the sections, if there are any. */
void cfifill_plt(struct elffile *file, struct cfifills *fills);
/* Returns from signal handlers, and starts of musl's threads, between two file offsets; bounded
 * over all calls. */
void cfifill_scan(struct elffile *file, uint64_t start, uint64_t end, struct cfifills *fills);
/* Whether these CFIFILL_SIGRETURN_BYTES bytes are the system call that ends a signal handler. */
bool cfifill_is_sigreturn(const uint8_t *code);

#endif
