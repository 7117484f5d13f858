/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/utf8.h"

#include <stdint.h>
#include <string.h>

/* Bytes of the character at p, 0 when it is none: overlong forms, surrogates, beyond U+10FFFF. */
static size_t utf8_char(const unsigned char *p, size_t len)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = p[0] < 0x80		   ? 1
		   : (p[0] & 0xe0) == 0xc0 ? 2
		   : (p[0] & 0xf0) == 0xe0 ? 3
		   : (p[0] & 0xf8) == 0xf0 ? 4
					   : 0;
	uint32_t c;

	if (n <= 1 || n > len)
		return n == 1;
	c = p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3fu);
	}
	return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

size_t utf8_clean(char *to, size_t size, const char *text, size_t len_bytes)
{
	size_t len = strnlen(text, len_bytes), used = 0, n;

	for (size_t i = 0; i < len; i += n) {
		size_t valid = utf8_char((const unsigned char *)text + i, len - i);

		n = valid ? valid : 1;
		if (used + n >= size)
			break;
		if (valid)
			memcpy(to + used, text + i, n);
		else
			to[used] = '?';
		used += n;
	}
	to[used] = '\0';
	return used;
}
