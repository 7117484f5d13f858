/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of one file, as a compact sorted index: address -> mangled name.
 *
 * Intervals do not overlap. Where functions lie inside one another the inner one has its own piece;
 * where several names stand at one address the best is kept: global before weak before local, sized
 * before unsized, short before long. A symbol without a size ends where the next one begins. A
 * stripped file may have names all the same, in `.gnu_debugdata`.
 */
#ifndef SCONCE_SYMBOLIZER_SYMBOLS_H
#define SCONCE_SYMBOLIZER_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "symbolizer/elffile.h"

struct symbols_entry {
	uint64_t start;
	uint32_t bytes;
	uint32_t name; /* offset in names */
};

struct symbols {
	struct symbols_entry *entries;
	uint32_t entries_n;
	char *names;
	size_t bytes; /* of memory, this struct included */
};

/*
 * Build the index of an open file; it may take bytes_max. NULL with errno: ENOENT (no symbols),
 * EFBIG (too many), ENOMEM. Ended with symbols_free().
 */
struct symbols *symbols_build(struct elffile *file, size_t bytes_max);
void symbols_free(struct symbols *symbols);

/* The name of the function that holds this address of the file; NULL when none does. */
const char *symbols_find(const struct symbols *symbols, uint64_t vaddr);

#endif
