/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of one unit: for each piece of it which function it is, inlined where, and so on up to
 * the function that is not inlined. Made by one walk through the unit's entries, and then flat:
 * pieces that are sorted and do not overlap, each with a site; a site with its parent.
 *
 * Functions are known by where their entry stands. What they are called is looked up when the first
 * frame needs it (symbolizer/dwarfname.h): few of them ever do.
 */
#ifndef SCONCE_SYMBOLIZER_DWARFINDEX_H
#define SCONCE_SYMBOLIZER_DWARFINDEX_H

#include <stddef.h>
#include <stdint.h>

#include "symbolizer/dwarflimit.h"
#include "symbolizer/dwarfunit.h"

#define DWARFINDEX_UNIT_BYTES_MAX DWARFBYTES_AT_ONCE_MAX
#define DWARFINDEX_DEPTH_MAX	  128 /* of entries in one another; what lies deeper is left out */
#define DWARFINDEX_NONE		  UINT32_MAX

struct dwarfindex_piece {
	uint32_t start; /* from base; it ends where the next one starts */
	uint32_t site;	/* DWARFINDEX_NONE: no function is known */
};

struct dwarfindex_site {
	uint32_t function;
	uint32_t parent; /* the one it is inlined into; DWARFINDEX_NONE: it is not */
	uint32_t call_file, call_line;
};

/* Where the entry of a function stands, and what was found there later. */
struct dwarfindex_function {
	uint64_t offset; /* in .debug_info, of the common file with the top bit set */
	char *name;	 /* NULL = it has none, or was not looked up yet */
	uint32_t start_line;
	bool known; /* it was looked up */
};
#define DWARFINDEX_ALT (1ull << 63)

/* A namespace or class around a function whose linkage name is not given. */
struct dwarfindex_scope {
	uint64_t offset;
	uint32_t parent;
};

/* An entry that has a name and stands in a scope. */
struct dwarfindex_scoped {
	uint64_t offset;
	uint32_t scope;
};

struct dwarfindex {
	uint64_t base;
	struct dwarfindex_piece *pieces;
	struct dwarfindex_site *sites;
	struct dwarfindex_function *functions;
	struct dwarfindex_scope *scopes;
	struct dwarfindex_scoped *scoped; /* sorted by offset */
	uint32_t pieces_n, sites_n, functions_n, scopes_n, scoped_n;
};

/*
 * Of an open unit whose root was read. 0, -ENOEXEC (damaged), -EFBIG, -ETIME, -ENOMEM. Ended with
 * dwarfindex_free(), in any case.
 */
int dwarfindex_build(struct dwarfindex *index, const struct dwarfunit *unit,
		     struct dwarflimit *limit);
void dwarfindex_free(struct dwarfindex *index);
size_t dwarfindex_held(const struct dwarfindex *index);

/* The innermost site of this address; DWARFINDEX_NONE: none. */
uint32_t dwarfindex_find(const struct dwarfindex *index, uint64_t address);
/* The scope of an entry with a name, by its place; DWARFINDEX_NONE: none. */
uint32_t dwarfindex_scope_of(const struct dwarfindex *index, uint64_t offset);

#endif
