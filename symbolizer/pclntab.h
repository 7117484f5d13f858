/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's own table of functions, which every Go program carries, stripped or not: where each one
 * begins, its name, and what holds at each of its instructions: by how much it has moved the stack
 * pointer, file and line, and other numbers whose meaning depends on the release.
 *
 * Answers for reading it, in all formats since Go 1.2, of files of which no byte is believed: all
 * of it, for who goes through all functions, or on demand, for who looks for some. Time is linear
 * in the text: functions do not overlap, and each step of one moves on. What the numbers mean for
 * the walk is gotable's, for the inlined functions goinline's. The surprise: newer linkers do not
 * write where the text begins; see goplace_text().
 */
#ifndef SCONCE_SYMBOLIZER_PCLNTAB_H
#define SCONCE_SYMBOLIZER_PCLNTAB_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/cursor.h"
#include "symbolizer/elffile.h"
#include "symbolizer/window.h"

#define PCLNTAB_FUNCTIONS_MAX (4u << 20)
#define PCLNTAB_NAME_MAX      4096

enum pclntab_flags {
	PCLNTAB_TOP = 1,       /* a stack ends with it */
	PCLNTAB_WRITES_SP = 2, /* by more than constants: the numbers do not tell all */
};

/* The first word. */
enum pclntab_magic {
	PCLNTAB_1_2 = 0xfffffffb,
	PCLNTAB_1_16 = 0xfffffffa,
	PCLNTAB_1_18 = 0xfffffff0,
	PCLNTAB_1_20 = 0xfffffff1,
};

struct pclntab {
	const uint8_t *bytes;  /* all of it, or NULL: */
	struct window *window; /* the file it is looked at in */
	uint64_t offset;       /* in the file */
	uint64_t vaddr, size;
	uint64_t text;		      /* what entries count from; 0 in old formats */
	uint64_t names, steps, table; /* offsets of the parts */
	uint64_t units, files; /* offsets too; the files of each unit of compilation, since 1.16 */
	uint32_t functions;
	uint32_t magic;	      /* enum pclntab_magic */
	unsigned entry_bytes; /* of a number in the table of functions */
};

struct pclntab_function {
	uint64_t start, end; /* addresses; the end is the next one's start, padding belongs to it */
	const char *name;    /* ended by NUL; in the file's image, or the window's */
	uint32_t flags;	     /* enum pclntab_flags */
	uint32_t steps;
	uint32_t file_steps, line_steps; /* of other numbers than `moved` */
	uint32_t unit;
	uint32_t start_line; /* 0 = not known */
	uint32_t pcdata_n, funcdata_n;
	uint64_t pcdata; /* offset of the tables' numbers; funcdata lies behind them */
};

/* The state of a run through the steps of one function. */
struct pclntab_steps {
	const struct pclntab *tab;
	uint64_t at;	   /* offset of the next step; 0 = there is none */
	uint64_t from, to; /* addresses for which `moved` holds */
	uint64_t end;
	int64_t moved; /* bytes that the function has taken from the stack; or another number */
};

/* The table of an open file, valid as long as that. 0, -ENOENT: no such table; -EFBIG; reading. */
int pclntab_open(struct pclntab *tab, struct elffile *file);
/* The same, but what is looked at is read by the window, and valid as long as there. */
int pclntab_open_in(struct pclntab *tab, struct elffile *file, struct window *window);

/* The function of this index; false when what stands there makes no sense. */
bool pclntab_function(const struct pclntab *tab, uint32_t index, struct pclntab_function *function);

/* The function that holds this address; false when none does. */
bool pclntab_find(const struct pclntab *tab, uint64_t vaddr, struct pclntab_function *function);

/* The bytes at an offset; NULL when they are not all there. */
const uint8_t *pclntab_bytes(const struct pclntab *tab, uint64_t offset, uint64_t bytes);
/* Ended by NUL within PCLNTAB_NAME_MAX; NULL when there is no text at this offset. */
const char *pclntab_text(const struct pclntab *tab, uint64_t offset);

void pclntab_begin(const struct pclntab *tab, const struct pclntab_function *function,
		   struct pclntab_steps *steps);
/* To the next step, which never lies before the last one; false at the end. */
bool pclntab_next(struct pclntab_steps *steps);

/* Where the steps of one of the function's further numbers are; 0 = it has none of this index. */
uint32_t pclntab_pcdata(const struct pclntab *tab, const struct pclntab_function *function,
			uint32_t index);
/* What stands for a part of its own; false = it has none of this index. Since 1.18 an offset from a
 * place that the table does not tell, before that an address. */
bool pclntab_funcdata(const struct pclntab *tab, const struct pclntab_function *function,
		      uint32_t index, uint64_t *value);
/* What holds at an address of the function; -1 = nothing. */
int32_t pclntab_value(const struct pclntab *tab, const struct pclntab_function *function,
		      uint32_t steps, uint64_t vaddr);
/* The path of a file that is called by its number in the function's unit; NULL = there is none. */
const char *pclntab_file(const struct pclntab *tab, const struct pclntab_function *function,
			 int32_t number);

#endif
