/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of an ELF file by file offset: its executable segments, and who has which part of them,
 * functions and code that is known by its form.
 *
 * Ranges come in any order and may overlap. They are looked up among those that the last
 * textmap_sort() saw; what was added since is not found.
 */
#ifndef SCONCE_SYMBOLIZER_TEXTMAP_H
#define SCONCE_SYMBOLIZER_TEXTMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/elffile.h"

#define TEXTMAP_RANGES_MAX (1u << 20) /* functions; libLLVM has 0.1 million */

struct textmap_range {
	uint64_t offset, bytes; /* in the file */
	uint32_t at;		/* where its source says more of it */
	uint16_t source;	/* of two that begin at one offset, that of the smaller source stays */
	uint16_t lead;		/* bytes by which the range begins before its function */
};

struct textmap {
	struct elffile_segment segments[ELFFILE_SEGMENTS_MAX]; /* by offset, apart */
	uint32_t segments_n;
	struct textmap_range *ranges;
	uint32_t ranges_n, sorted_n, ranges_room;
};

/* Takes the segments of the file. *map is zeroed before. 0; -ENOENT: it has none. */
int textmap_init(struct textmap *map, const struct elffile *file);
void textmap_fini(struct textmap *map);

/*
 * Add a function that begins at range.offset; the range begins `lead` bytes before, at 0 or later.
 * What leaves its segment is cut off, what is in none is dropped. 0, -EFBIG, -ENOMEM.
 */
int textmap_add(struct textmap *map, struct textmap_range range);
/* By offset; of those that begin at one offset, one stays. */
void textmap_sort(struct textmap *map);

static inline uint64_t textmap_end(const struct textmap_range *range)
{
	return range->offset + range->bytes;
}

/* The index of the first range that begins at this offset or behind it. */
uint32_t textmap_find(const struct textmap *map, uint64_t offset);
/* Whether no range has any of these bytes. */
bool textmap_is_free(const struct textmap *map, uint64_t start, uint64_t end);

#endif
