/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/lang/python_lines.h"

#include "symbolizer/cursor.h"

#define NO_LINE_310  (-128) /* of a range of 3.10 */
#define UNIT_BYTES   2u	    /* the table of 3.11 counts in these */
#define VARINT_SHIFT 30	    /* of the last six bits that are kept; longer ones are none */

/* Of an entry of 3.11; below PYTHON_ONE_LINE the line stays, and a byte of columns follows. */
#define PYTHON_ONE_LINE	 10
#define PYTHON_NO_COLUMN 13
#define PYTHON_LONG	 14
#define PYTHON_NONE	 15

static uint32_t python_lnotab(struct cursor c, int64_t line, uint32_t offset)
{
	uint64_t at = 0;

	while (cursor_left(&c) >= 2) {
		at += cursor_number(&c, 1);
		if (at > offset)
			break;
		line += cursor_signed(&c, 1);
	}
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static uint32_t python_linetable(struct cursor c, int64_t line, uint32_t offset)
{
	uint64_t end = 0;

	while (cursor_left(&c) >= 2) {
		int64_t delta;

		end += cursor_number(&c, 1);
		delta = cursor_signed(&c, 1);
		if (delta != NO_LINE_310)
			line += delta;
		if (offset >= end)
			continue;
		return delta != NO_LINE_310 && line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
	}
	return 0;
}

/* Six bits a byte, the lowest first; bit 6: more follow. */
static uint32_t python_varint(struct cursor *c)
{
	uint32_t value = 0;

	for (unsigned shift = 0;; shift += 6) {
		uint32_t byte = (uint32_t)cursor_number(c, 1);

		if (shift <= VARINT_SHIFT)
			value |= (byte & 63) << shift;
		if (!(byte & 64))
			return value;
	}
}

/* The sign is the lowest bit. */
static int64_t python_signed(struct cursor *c)
{
	uint32_t value = python_varint(c);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* What an entry adds to the line; what follows of columns is passed over. */
static int64_t python_entry(struct cursor *c, unsigned code)
{
	int64_t delta = 0;

	switch (code) {
	case PYTHON_NONE:
		break;
	case PYTHON_LONG:
		delta = python_signed(c);
		for (int i = 0; i < 3; i++)
			python_varint(c);
		break;
	case PYTHON_NO_COLUMN:
		delta = python_signed(c);
		break;
	case PYTHON_ONE_LINE:
	case PYTHON_ONE_LINE + 1:
	case PYTHON_ONE_LINE + 2:
		delta = code - PYTHON_ONE_LINE;
		cursor_take(c, 2);
		break;
	default:
		cursor_take(c, 1);
	}
	return delta;
}

static uint32_t python_locations(struct cursor c, int64_t line, uint32_t offset)
{
	uint64_t end = 0;

	while (cursor_left(&c)) {
		unsigned head = (unsigned)cursor_number(&c, 1), code = (head >> 3) & 15;

		/* The first byte of an entry, and no other, has bit 7. */
		if (!(head & 0x80))
			return 0;
		line += python_entry(&c, code);
		end += UNIT_BYTES * ((head & 7) + 1);
		if (c.bad)
			return 0;
		if (offset < end)
			return code != PYTHON_NONE && line > 0 && line <= INT32_MAX ? (uint32_t)line
										    : 0;
	}
	return 0;
}

uint32_t python_line(enum python_lines kind, const uint8_t *table, size_t bytes, uint32_t first,
		     uint32_t offset)
{
	struct cursor c = cursor_over(table, bytes);

	/* Not begun, or in what the compiler put before: the line of `def`. */
	if ((int32_t)offset < 0)
		return first;
	switch (kind) {
	case PYTHON_LNOTAB:
		return python_lnotab(c, first, offset);
	case PYTHON_LINETABLE:
		return python_linetable(c, first, offset);
	case PYTHON_LOCATIONS:
		return python_locations(c, first, offset);
	}
	return 0;
}
