/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's own table of functions, which every Go program carries, stripped or not: where each one
 * begins, its name, and by how much it has moved the stack pointer at each of its instructions.
 *
 * Answers for reading it, in all formats since Go 1.2, of files of which no byte is believed. Time
 * is linear in the text: functions do not overlap, and each step of one moves on. What the numbers
 * mean for the walk is gotable's. The surprise: newer linkers do not write where the text begins;
 * see pclntab_text_start().
 */
#ifndef SCONCE_SYMBOLIZER_PCLNTAB_H
#define SCONCE_SYMBOLIZER_PCLNTAB_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/cursor.h"
#include "symbolizer/elffile.h"

#define PCLNTAB_FUNCTIONS_MAX (1u << 20)
#define PCLNTAB_NAME_MAX      4096

enum pclntab_flags {
	PCLNTAB_TOP = 1,       /* a stack ends with it */
	PCLNTAB_WRITES_SP = 2, /* by more than constants: the numbers do not tell all */
};

struct pclntab {
	const uint8_t *bytes;
	uint64_t size;
	uint64_t text;		      /* what entries count from; 0 in old formats */
	uint64_t names, steps, table; /* offsets of the parts */
	uint32_t functions;
	unsigned entry_bytes; /* of a number in the table of functions */
	bool flags;	      /* functions have flags */
};

struct pclntab_function {
	uint64_t start, end; /* addresses; the end is the next one's start, padding belongs to it */
	const char *name;    /* ended by NUL; in the file's image */
	uint32_t flags;	     /* enum pclntab_flags */
	uint32_t steps;
};

/* The state of a run through the steps of one function. */
struct pclntab_steps {
	struct cursor cursor;
	uint64_t from, to; /* addresses for which `moved` holds */
	uint64_t end;
	int64_t moved; /* bytes that the function has taken from the stack */
};

/* The table of an open file, valid as long as that. 0, -ENOENT: no such table; -EFBIG; reading. */
int pclntab_open(struct pclntab *tab, struct elffile *file);

/* The function of this index; false when what stands there makes no sense. */
bool pclntab_function(const struct pclntab *tab, uint32_t index, struct pclntab_function *function);

void pclntab_begin(const struct pclntab *tab, const struct pclntab_function *function,
		   struct pclntab_steps *steps);
/* To the next step, which never lies before the last one; false at the end. */
bool pclntab_next(struct pclntab_steps *steps);

#endif
