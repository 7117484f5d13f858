/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads numbers from bytes that somebody else wrote. A read past the end gives 0, moves to the end
 * and is remembered in `bad`, so that a parser may look once, after a group of reads.
 */
#ifndef SCONCE_SYMBOLIZER_CURSOR_H
#define SCONCE_SYMBOLIZER_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static inline struct cursor cursor_over(const uint8_t *bytes, size_t n)
{
	return (struct cursor){bytes, bytes + n, false};
}

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->at);
}

/* The next n bytes; NULL when there are fewer. */
const uint8_t *cursor_take(struct cursor *c, uint64_t n);
/* Little-endian, of 1, 2, 4 or 8 bytes. */
uint64_t cursor_number(struct cursor *c, unsigned bytes);
int64_t cursor_signed(struct cursor *c, unsigned bytes);
/* Bits beyond the 64th are dropped. */
uint64_t cursor_uleb(struct cursor *c);
int64_t cursor_sleb(struct cursor *c);

#endif
