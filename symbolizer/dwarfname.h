/* SPDX-License-Identifier: Apache-2.0 */
/* What a function is called, and where it begins in its source: from its entry, and those that it
 * refers to. */
#ifndef SCONCE_SYMBOLIZER_DWARFNAME_H
#define SCONCE_SYMBOLIZER_DWARFNAME_H

#include "symbolizer/dwarfindex.h"

#define DWARFNAME_BYTES 4096

/*
 * The linkage name, where there is one on the way; else the name, behind the names of what the
 * entry stands in where the index knows that. False: it has none.
 */
bool dwarfname_find(const struct dwarfindex *index, const struct dwarfunit *unit,
		    const struct dwarfindex_function *function, char name[DWARFNAME_BYTES],
		    uint32_t *start_line);

#endif
