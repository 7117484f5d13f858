/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a jitdump. Whatever they are: reading ends, what is found has texts that end, at any
 * time, and memory is bounded.
 */
#include <stdlib.h>
#include <string.h>

#include "symbolizer/jitdump.h"
#include "tests/fuzz/fuzz.h"

#define ROOM 65536
#define NOW  1000

const unsigned fuzz_mutations = 4000;

static void check(const struct jitdump *dump)
{
	static struct lines lines;

	for (uint32_t i = 0; i < dump->index.n; i++)
		for (uint64_t time = 0; time <= NOW; time += NOW / 4) {
			jitdump_find(dump, dump->index.pieces[i].start, time, &lines);
			if (lines.n > 1 ||
			    (lines.n && strlen(lines.line[0].name) > JITDUMP_NAME_MAX) ||
			    (lines.n && lines.line[0].file &&
			     strlen(lines.line[0].file) > JITDUMP_NAME_MAX))
				abort();
		}
	if (jitdump_bytes(dump) > 2 * ROOM)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jitdump dump;
	uint64_t at = 0, by;

	jitdump_init(&dump, ROOM);
	/* As a file that grows: half of what is left each time. */
	for (size_t end = size / 2; at < size; end += (size - end + 1) / 2) {
		by = at < end ? jitdump_feed(&dump, data + at, end - at, NOW) : 0;
		at += by;
		if (jitdump_settle(&dump))
			abort();
		if (by == 0 && end >= size)
			break;
	}
	check(&dump);
	jitdump_fini(&dump);
	return 0;
}

struct seed {
	uint8_t *data;
	size_t n;
};

static void put(struct seed *seed, uint64_t value, size_t bytes)
{
	memcpy(seed->data + seed->n, &value, bytes);
	seed->n += bytes;
}

static void put_text(struct seed *seed, const char *text)
{
	memcpy(seed->data + seed->n, text, strlen(text) + 1);
	seed->n += strlen(text) + 1;
}

static void put_prefix(struct seed *seed, uint32_t id, uint32_t body, uint64_t time)
{
	put(seed, id, 4);
	put(seed, 16 + body, 4);
	put(seed, time, 8);
}

static void put_code(struct seed *seed, unsigned i)
{
	uint64_t start = 0x1000 + i % 7 * 0x30;

	put_prefix(seed, 2, 16 + 16 + 4 + 16 + 2, i);
	put(seed, start, 8);
	put(seed, 2, 8);
	put(seed, start, 8);
	put(seed, i, 8);
	put_text(seed, "a.c");
	put(seed, start + 8, 8);
	put(seed, i + 1, 8);
	put_text(seed, "\xff");
	put_prefix(seed, 0, 40 + 2 + 16, i);
	put(seed, 1, 8);
	put(seed, start, 8);
	put(seed, start, 8);
	put(seed, 0x40, 8);
	put(seed, i, 8);
	put_text(seed, "f");
	put(seed, 0x90, 16 - 8);
	put(seed, 0x90, 8);
	if (i % 3)
		return;
	put_prefix(seed, 1, 48, i);
	put(seed, 1, 8);
	put(seed, 0x2000, 8);
	put(seed, start, 8);
	put(seed, 0x2000 + start, 8);
	put(seed, 0x40, 8);
	put(seed, i, 8);
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	struct seed seed = {data, 0};

	if (n > 1)
		return 0;
	put(&seed, 0x000000014a695444, 8);
	put(&seed, 62ull << 32 | 40, 8);
	put(&seed, 1ull << 32, 8);
	put(&seed, 5, 8);
	put(&seed, 0, 8);
	for (unsigned i = 0; i < (n ? 100 : 3); i++)
		put_code(&seed, i);
	return seed.n;
}
