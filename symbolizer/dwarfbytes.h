/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One section of a file with debug information, read where it is looked at: a window of it is in
 * memory at a time, so that a section of hundreds of megabytes costs what is asked of it. A section
 * that is packed is unpacked as a whole.
 *
 * Not through the file's image: there a byte here and there in a large section would make all of
 * its pieces writable, and what is writable counts as our memory.
 */
#ifndef SCONCE_SYMBOLIZER_DWARFBYTES_H
#define SCONCE_SYMBOLIZER_DWARFBYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/cursor.h"
#include "symbolizer/elffile.h"
#include "symbolizer/sections.h"

#define DWARFBYTES_AT_ONCE_MAX	(64u << 20) /* bytes that somebody may want in one piece */
#define DWARFBYTES_STRING_BYTES 4095	    /* longer ones are cut: SYMBOL_STRING_BYTES_MAX */

struct dwarfbytes {
	struct reader *reader;
	int slot;
	uint64_t offset, size;	 /* in the file; size 0 = it has no such section */
	struct section unpacked; /* .data NULL = it is not packed */
	uint8_t *window;
	uint64_t window_at, window_bytes, window_room;
	uint32_t ahead; /* so much is read at least */
};

/*
 * 0; -ENOENT: there is none; -EFBIG: it takes more than that to unpack; or what reading gave. The
 * file's slot in its reader has to stay open.
 */
int dwarfbytes_open(struct dwarfbytes *bytes, struct elffile *file, const char *name,
		    size_t unpacked_max);
void dwarfbytes_close(struct dwarfbytes *bytes);
/* Give a window back that is larger than that. */
void dwarfbytes_trim(struct dwarfbytes *bytes, size_t kept_bytes);
size_t dwarfbytes_held(const struct dwarfbytes *bytes);

/*
 * A cursor over what begins at `at`: at least `need` bytes, fewer only where the section ends.
 * Valid until the next question to the same section.
 */
struct cursor dwarfbytes_cursor(struct dwarfbytes *bytes, uint64_t at, uint64_t need);
/* A number of 1, 2, 4 or 8 bytes; false: it is not in the section. */
bool dwarfbytes_number(struct dwarfbytes *bytes, uint64_t at, unsigned n, uint64_t *value);
/* The string at `at`, and its length; NULL: it is not in the section. Valid as a cursor is. */
const char *dwarfbytes_string(struct dwarfbytes *bytes, uint64_t at, size_t *length);

#endif
