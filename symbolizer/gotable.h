/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules (shm/table.h) for the functions of a Go program, from its own table (symbolizer/pclntab.h)
 * and a look at the code. ehframe puts them among those of the C parts.
 *
 * The caller's stack pointer follows from how far a function has moved its own, so that no frame
 * pointer is needed, in a frameless leaf and in a prologue either. The exception, and the surprise:
 * functions that go over to another stack (runtime.systemstack, asmcgocall, cgocallback) keep the
 * frame pointer of the one that they left: by it the walk follows them, from C back to Go too. Before
 * Go 1.21 asmcgocall keeps none, but notes where it was.
 */
#ifndef SCONCE_SYMBOLIZER_GOTABLE_H
#define SCONCE_SYMBOLIZER_GOTABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/table.h"
#include "symbolizer/elffile.h"
#include "symbolizer/pclntab.h"

struct gotable {
	struct pclntab tab;
	const uint8_t *code; /* of the functions; NULL: cannot be read */
	uint64_t code_start, code_bytes;
};

/* 0; -ENOENT: not a Go program; or what reading gave. Valid as long as the file is open. */
int gotable_open(struct gotable *go, struct elffile *file);

/* Whether this function ends a signal handler. It is looked up one byte before its start. */
bool gotable_is_sigreturn(const struct gotable *go, const struct pclntab_function *function);

typedef void gotable_fn(void *arg, uint64_t vaddr, const struct table_rule *rule);
/* Calls fn with ascending addresses, each with the rule that holds from there on. */
void gotable_run(const struct gotable *go, const struct pclntab_function *function, gotable_fn *fn,
		 void *arg);

#endif
