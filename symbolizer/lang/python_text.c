/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/lang/python_text.h"

#include <string.h>

#define TEXT_CHARACTERS_MAX 1024u
#define TEXT_LENGTH_MAX	    (1u << 20) /* longer ones are none */

/* Of the state, above the kind, which is the bytes of a character: 1, 2 or 4. */
#define KIND_MASK     7u
#define STATE_COMPACT 8u
#define STATE_ASCII   16u

/* A character in UTF-8; how many bytes. */
static size_t python_encode(uint32_t c, char to[4])
{
	if (c < 0x20 || c == 0x7f || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		c = '?';
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

static void python_convert(const uint8_t *from, uint64_t n, uint32_t kind, char *to, size_t size)
{
	size_t done = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint32_t c = 0;
		char bytes[4];
		size_t length;

		memcpy(&c, from + i * kind, kind);
		length = python_encode(c, bytes);
		if (done + length >= size)
			break;
		memcpy(to + done, bytes, length);
		done += length;
	}
	to[done] = 0;
}

bool python_text(struct remote *remote, const struct python_strings *strings, uint64_t at, char *to,
		 size_t size)
{
	struct {
		uint64_t length, hash;
		uint32_t state, padding;
	} head;
	uint8_t text[4 * TEXT_CHARACTERS_MAX];
	uint32_t kind;

	to[0] = 0;
	if (!at || at % 8 || !remote_read(remote, at + strings->header, &head, sizeof(head)))
		return false;
	head.state >>= strings->kind_shift;
	kind = head.state & KIND_MASK;
	if ((kind != 1 && kind != 2 && kind != 4) || !(head.state & STATE_COMPACT) ||
	    ((head.state & STATE_ASCII) && kind != 1) || head.length > TEXT_LENGTH_MAX)
		return false;
	if (head.length > TEXT_CHARACTERS_MAX)
		head.length = TEXT_CHARACTERS_MAX;
	at += head.state & STATE_ASCII ? strings->ascii : strings->compact;
	if (!remote_read(remote, at, text, head.length * kind))
		return false;
	python_convert(text, head.length, kind, to, size);
	return true;
}
