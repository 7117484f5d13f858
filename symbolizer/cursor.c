/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/cursor.h"

#include <string.h>

const uint8_t *cursor_take(struct cursor *c, uint64_t n)
{
	const uint8_t *bytes = c->at;

	if (n > cursor_left(c)) {
		c->bad = true;
		c->at = c->end;
		return NULL;
	}
	c->at += n;
	return bytes;
}

uint64_t cursor_number(struct cursor *c, unsigned bytes)
{
	const uint8_t *from = cursor_take(c, bytes);
	uint64_t value = 0;

	if (from)
		memcpy(&value, from, bytes);
	return value;
}

int64_t cursor_signed(struct cursor *c, unsigned bytes)
{
	unsigned unused = 64 - 8 * bytes;

	return (int64_t)(cursor_number(c, bytes) << unused) >> unused;
}

static uint64_t cursor_leb(struct cursor *c, bool extend)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)cursor_number(c, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += shift < 64 ? 7 : 0;
	} while (byte & 0x80);
	if (extend && (byte & 0x40) && shift < 64)
		value |= ~0ull << shift;
	return value;
}

uint64_t cursor_uleb(struct cursor *c)
{
	return cursor_leb(c, false);
}

int64_t cursor_sleb(struct cursor *c)
{
	return (int64_t)cursor_leb(c, true);
}
