/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what CPython keeps of a function: a table of lines of each kind, and a string. The
 * first byte is the kind, the next two the offset in the bytecode.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolizer/lang/python_lines.h"
#include "symbolizer/lang/python_text.h"
#include "tests/fuzz/fuzz.h"

#define HEAD	   3
#define NAME_BYTES 64

const unsigned fuzz_mutations = 4000;

/* What comes out is UTF-8 without controls. */
static void check_text(const char *text)
{
	size_t n = strnlen(text, NAME_BYTES);

	if (n == NAME_BYTES)
		abort();
	for (size_t i = 0; i < n; i++) {
		uint8_t c = (uint8_t)text[i];
		size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;

		if (c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0xc0) || i + more >= n)
			abort();
		while (more--)
			if (((uint8_t)text[++i] & 0xc0) != 0x80)
				abort();
	}
}

static void look_at_text(const uint8_t *data, size_t size)
{
	static const struct python_strings strings[] = {{16, 40, 56, 2}, {32, 56, 72, 16}};
	struct remote remote = {.fd = memfd_create("memory", MFD_CLOEXEC)};
	char name[NAME_BYTES];

	if (remote.fd < 0 || write(remote.fd, data, size) != (ssize_t)size)
		abort();
	for (size_t i = 0; i < 2; i++)
		for (uint64_t at = 8; at <= 24; at += 8) {
			remote_begin(&remote);
			if (python_text(&remote, &strings[i], at, name, sizeof(name)))
				check_text(name);
		}
	close(remote.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t offset, line;

	if (size < HEAD)
		return 0;
	offset = (uint32_t)(data[1] | data[2] << 8);
	/* As a reader of its own, so that the end of the bytes is the end of what may be read. */
	line = python_line((enum python_lines)(data[0] % 3), data + HEAD, size - HEAD, 7, offset);
	if (line > INT32_MAX)
		abort();
	look_at_text(data, size);
	return 0;
}

static size_t seed_text(uint8_t *data, uint32_t kind, uint32_t ascii)
{
	uint64_t words[16] = {0};

	words[0] = 0x0101; /* a table of lines, too */
	words[3] = 7;
	words[5] = kind << 2 | 1 << 5 | ascii << 6;
	words[8] = 0x0001f60000e96162;
	words[9] = 0xd83d20ac00410042;
	memcpy(data, words, sizeof(words));
	return sizeof(words);
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	static const uint8_t lnotab[] = {0, 40, 0, 0, 1, 8, 2, 255, 0, 1, 127, 6, 0x80, 4, 3};
	static const uint8_t linetable[] = {1, 30, 0, 4, 1, 8, 0x80, 6, 255, 10, 2};
	static const uint8_t locations[] = {2,	  20, 0,    0x80, 0, 0xd2, 1,	 2, 0xda, 3,	4,
					    0xf0, 3,  0x41, 1,	  2, 3,	   0xe8, 2, 0xf8, 0x82, 5};

	switch (n) {
	case 0:
		memcpy(data, lnotab, sizeof(lnotab));
		return sizeof(lnotab);
	case 1:
		memcpy(data, linetable, sizeof(linetable));
		return sizeof(linetable);
	case 2:
		memcpy(data, locations, sizeof(locations));
		return sizeof(locations);
	case 3:
	case 4:
	case 5:
		return seed_text(data, 1u << (n - 3), 0);
	case 6:
		return seed_text(data, 1, 1);
	}
	return 0;
}
