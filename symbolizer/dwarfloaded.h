/* SPDX-License-Identifier: Apache-2.0 */
/* A unit that was asked for: its index, its lines, and the texts that frames needed so far. */
#ifndef SCONCE_SYMBOLIZER_DWARFLOADED_H
#define SCONCE_SYMBOLIZER_DWARFLOADED_H

#include "symbolizer/dwarfindex.h"
#include "symbolizer/dwarfline.h"
#include "symbolizer/line.h"

struct dwarfloaded {
	struct dwarfindex index;
	struct dwarflines lines;
	struct dwarfunit entries; /* the unit that the index is of: of a .dwo where there is one */
	char *directory;	  /* of the compilation; NULL = not known */
	char **paths;		  /* of its files, once they are needed; NULL = not yet */
	size_t bytes;
	uint64_t used; /* when, in questions */
	uint32_t number;
	bool missing; /* its entries are in a .dwo that is not here */
};

/*
 * Read a unit. entries: those of its split unit; NULL = its own. What cannot be read of the lines
 * or of the entries is left out; NULL with errno when that is both.
 */
struct dwarfloaded *dwarfloaded_open(const struct dwarfunit *unit, const struct dwarfdie *root,
				     const struct dwarfunit *entries, struct dwarflimit *limit);
void dwarfloaded_free(struct dwarfloaded *loaded);

/* See dwarf_find(). */
void dwarfloaded_find(struct dwarfloaded *loaded, uint64_t vaddr, const char *symbol,
		      struct lines *lines);

#endif
