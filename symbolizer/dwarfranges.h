/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of an entry: low and high pc, .debug_ranges (DWARF 3, 4), .debug_rnglists (5). */
#ifndef SCONCE_SYMBOLIZER_DWARFRANGES_H
#define SCONCE_SYMBOLIZER_DWARFRANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/dwarflimit.h"
#include "symbolizer/dwarfunit.h"

#define DWARFRANGES_MAX (1u << 20) /* of one entry */

/* False: no more of them. */
typedef bool dwarfranges_fn(void *arg, uint64_t start, uint64_t end);

/*
 * Call fn for each range that is not empty. What a linker threw away (it begins at 0 or at the end
 * of all addresses) is left out. False: fn had enough, it is late, or the list is damaged from
 * there on.
 */
bool dwarfranges_each(const struct dwarfunit *unit, const struct dwarfdie *die,
		      struct dwarflimit *limit, dwarfranges_fn *fn, void *arg);

#endif
