/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is looked at again and again, here and there: an anonymous image of its size, of
 * which pieces are read when they are first looked at, and kept. What was read is counted and
 * bounded, and can be given back at any time; only pieces that are there may be written to, so that
 * the rest of the image counts as nobody's memory (RLIMIT_DATA). For parts that are wanted once, in
 * one go, there is elffile_bytes().
 */
#ifndef SCONCE_SYMBOLIZER_WINDOW_H
#define SCONCE_SYMBOLIZER_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/reader.h"

/*
 * A piece costs a system call for its bytes and one for its place, 3 to 7 us. A name of Go's table
 * lies in ten of them, seldom beside the last one's: of larger pieces most bytes are wanted by
 * nobody, and where memory ends they are given up the sooner.
 */
#define WINDOW_PIECE_BYTES 4096ull

struct window {
	struct reader *reader;
	int slot; /* -1 = not open at present: what is here is all there is */
	uint64_t file_bytes;
	char *image;
	uint8_t *here;		 /* a bit for each piece */
	size_t bytes, bytes_max; /* of pieces */
	bool refused;		 /* there was no room for one; who asks sets it back */
};

/* 0 or -ENOMEM. Then window_close() is not needed. */
int window_open(struct window *window, struct reader *reader, int slot, uint64_t file_bytes,
		size_t bytes_max);
void window_close(struct window *window);

/*
 * Bytes of the file, as they were when they were first looked at; valid until window_forget().
 * NULL: they do not all lie in the file, cannot be read, or there is no room for them.
 */
const uint8_t *window_bytes(struct window *window, uint64_t offset, uint64_t bytes);

/* What it takes besides the pieces. */
size_t window_index_bytes(const struct window *window);

/* Give all pieces back. */
void window_forget(struct window *window);

#endif
