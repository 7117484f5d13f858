/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a perf map. Whatever they are: pieces are sorted and do not overlap, names end, and
 * what is found is the same if the text comes in two parts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/perfmap.h"
#include "tests/fuzz/fuzz.h"

#define ROOM 65536

const unsigned fuzz_mutations = 3000;

static void check(const struct perfmap *map)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < map->index.n; i++) {
		const struct jitindex_piece *piece = &map->index.pieces[i];
		const char *name = perfmap_find(map, piece->start);

		if (piece->start < at || !piece->bytes || !name || !*name ||
		    strlen(name) > PERFMAP_NAME_MAX ||
		    name != perfmap_find(map, piece->start + piece->bytes - 1))
			abort();
		at = piece->start + piece->bytes;
	}
	if (perfmap_bytes(map) > 2 * ROOM)
		abort();
}

static void read_in_two(struct perfmap *map, const uint8_t *data, size_t size, size_t first)
{
	const char *text = (const char *)data;
	size_t taken;

	perfmap_init(map, ROOM);
	taken = perfmap_feed(map, text, first);
	taken += perfmap_feed(map, text + taken, size - taken);
	if (taken > size)
		abort();
	perfmap_settle(map);
	check(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perfmap whole, parts;

	read_in_two(&whole, data, size, size);
	read_in_two(&parts, data, size, size / 2);
	if (whole.lines != parts.lines || whole.index.n != parts.index.n)
		abort();
	for (uint32_t i = 0; i < whole.index.n; i++)
		if (strcmp(perfmap_find(&whole, whole.index.pieces[i].start),
			   perfmap_find(&parts, whole.index.pieces[i].start)))
			abort();
	perfmap_fini(&whole);
	perfmap_fini(&parts);
	return 0;
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	char *to = (char *)data;
	size_t at = 0;

	if (n == 0)
		return (size_t)sprintf(to, "1000 10 one\n0x1008 10 two three\n1010\t1 _ZN1a1bEv\n"
					   "1000 100 over all\n10f0 20 beyond\n2000 0 none\n");
	if (n == 1) {
		for (unsigned i = 0; i < 200; i++)
			at += (size_t)sprintf(to + at, "%x %x JS:*f%u /srv/app.js:%u:1\n",
					      0x7f0000 + i * 37 % 64 * 16, 8 + i % 40, i, i);
		return at;
	}
	if (n == 2) {
		memset(data, 'y', 3 * PERFMAP_LINE_MAX);
		memcpy(data, "1000 10 ", 8);
		memcpy(data + PERFMAP_LINE_MAX / 2, "\n2000 10 ", 9);
		memcpy(data + 2 * PERFMAP_LINE_MAX, "\n3000 10 end\n", 13);
		return 3 * PERFMAP_LINE_MAX;
	}
	return 0;
}
