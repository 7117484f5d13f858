/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals that overlap -> pieces that do not: where several lie, the one that came last holds. */
#ifndef SCONCE_SYMBOLIZER_DWARFPIECES_H
#define SCONCE_SYMBOLIZER_DWARFPIECES_H

#include <stdint.h>

#include "symbolizer/dwarfindex.h"

struct dwarfpieces_interval {
	uint64_t start, end;
	uint32_t site; /* an entry's are given in the order of entries: inner ones later */
};

/* Sorts the intervals; fills in base and pieces. 0, -EFBIG, -ENOMEM or -ETIME. */
int dwarfpieces_make(struct dwarfindex *index, struct dwarfpieces_interval *intervals, uint32_t n,
		     struct dwarflimit *limit);

#endif
