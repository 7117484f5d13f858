/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

size_t window_index_bytes(const struct window *window)
{
	return window->file_bytes / WINDOW_PIECE_BYTES / 8 + 1;
}

void window_close(struct window *window)
{
	if (window->image)
		munmap(window->image, window->file_bytes);
	free(window->here);
	memset(window, 0, sizeof(*window));
}

int window_open(struct window *window, struct reader *reader, int slot, uint64_t file_bytes,
		size_t bytes_max)
{
	void *image;

	memset(window, 0, sizeof(*window));
	window->reader = reader;
	window->slot = slot;
	window->file_bytes = file_bytes;
	window->bytes_max = bytes_max;
	window->here = calloc(1, window_index_bytes(window));
	if (!window->here)
		return -ENOMEM;
	image =
	    mmap(NULL, file_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (image == MAP_FAILED) {
		window_close(window);
		return -ENOMEM;
	}
	window->image = image;
	return 0;
}

static bool window_has(const struct window *window, uint64_t piece)
{
	return window->here[piece / 8] & 1u << piece % 8;
}

/* A piece that cannot be read in full is not kept: the file is shorter than it was. */
static bool window_read(struct window *window, uint64_t piece)
{
	uint64_t offset = piece * WINDOW_PIECE_BYTES, left = window->file_bytes - offset;
	size_t n = left < WINDOW_PIECE_BYTES ? left : WINDOW_PIECE_BYTES;
	struct reader_part part = {window->image + offset, n, offset, 0};

	if (window->slot < 0)
		return false;
	/* The kernel may refuse too: a piece that lies alone is a mapping, and they are counted. */
	if (window->bytes + WINDOW_PIECE_BYTES > window->bytes_max ||
	    mprotect(part.buf, n, PROT_READ | PROT_WRITE)) {
		window->refused = true;
		return false;
	}
	reader_read(window->reader, window->slot, &part, 1);
	if (part.result != (long)n) {
		madvise(part.buf, n, MADV_DONTNEED);
		mprotect(part.buf, n, PROT_READ);
		return false;
	}
	window->here[piece / 8] |= (uint8_t)(1u << piece % 8);
	window->bytes += WINDOW_PIECE_BYTES;
	return true;
}

const uint8_t *window_bytes(struct window *window, uint64_t offset, uint64_t bytes)
{
	uint64_t last;

	if (offset >= window->file_bytes || bytes > window->file_bytes - offset || bytes == 0)
		return NULL;
	last = (offset + bytes - 1) / WINDOW_PIECE_BYTES;
	for (uint64_t piece = offset / WINDOW_PIECE_BYTES; piece <= last; piece++)
		if (!window_has(window, piece) && !window_read(window, piece))
			return NULL;
	return (const uint8_t *)window->image + offset;
}

void window_forget(struct window *window)
{
	if (window->bytes == 0)
		return;
	madvise(window->image, window->file_bytes, MADV_DONTNEED);
	mprotect(window->image, window->file_bytes, PROT_READ);
	memset(window->here, 0, window_index_bytes(window));
	window->bytes = 0;
}
