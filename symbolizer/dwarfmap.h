/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which unit holds an address: from .debug_aranges (GCC writes it), and for units that are not
 * there (Clang, Rust) from the ranges that the root of each unit has. No other entry is read.
 */
#ifndef SCONCE_SYMBOLIZER_DWARFMAP_H
#define SCONCE_SYMBOLIZER_DWARFMAP_H

#include <stddef.h>
#include <stdint.h>

#include "symbolizer/dwarffile.h"
#include "symbolizer/dwarflimit.h"

#define DWARFMAP_NONE UINT32_MAX

struct dwarfmap_range {
	uint64_t start, end;
	uint32_t unit;	 /* its number in the file's list */
	uint32_t around; /* the nearest before it that ends later; DWARFMAP_NONE */
};

struct dwarfmap {
	struct dwarfmap_range *ranges; /* sorted by start */
	uint32_t ranges_n;
};

/* 0; -ENOENT: no unit has code; -EFBIG, -ENOMEM or -ETIME. Ended with dwarfmap_free(), always. */
int dwarfmap_build(struct dwarfmap *map, struct dwarffile *file, struct dwarflimit *limit);
void dwarfmap_free(struct dwarfmap *map);
size_t dwarfmap_held(const struct dwarfmap *map);

uint32_t dwarfmap_find(const struct dwarfmap *map, uint64_t address);

#endif
