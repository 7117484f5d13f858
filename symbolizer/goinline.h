/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that Go's compiler has put into others: each of these carries a list of the calls that
 * are no longer there, and at each instruction the number of the one that it came from.
 *
 * Where the lists are, and how they look, differs from release to release, and the first format
 * does not say which one it is. So nothing is taken for granted: a way to read them is used only
 * when it makes sense of the lists of the program's first functions, all of them; else there are
 * none.
 */
#ifndef SCONCE_SYMBOLIZER_GOINLINE_H
#define SCONCE_SYMBOLIZER_GOINLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/elffile.h"
#include "symbolizer/line.h"
#include "symbolizer/pclntab.h"

struct goinline_way;

struct goinline {
	const struct pclntab *tab;
	const struct goinline_way *way; /* NULL: not known */
	struct elffile_segment data;	/* what holds the lists */
	uint64_t parts;			/* address that functions' parts count from; 0: from 0 */
};

/* The table was opened with a window: the lists are read by it too. */
void goinline_open(struct goinline *inl, const struct pclntab *tab, struct elffile *file);

/* All lines of an address in this function, it alone where nothing else is known. */
void goinline_lines(const struct goinline *inl, const struct pclntab_function *function,
		    uint64_t vaddr, struct lines *lines);

#endif
