/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/textmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TEXTMAP_RANGES_ROOM 1024u

static int textmap_compare_segments(const void *a, const void *b)
{
	const struct elffile_segment *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Where two segments overlap, the second gives way. */
int textmap_init(struct textmap *map, const struct elffile *file)
{
	struct elffile_segment sorted[ELFFILE_SEGMENTS_MAX];
	uint64_t end = 0;

	memcpy(sorted, file->segments, sizeof(sorted));
	qsort(sorted, file->segments_n, sizeof(sorted[0]), textmap_compare_segments);
	for (uint32_t i = 0; i < file->segments_n; i++) {
		struct elffile_segment s = sorted[i];
		uint64_t skip = s.offset < end ? end - s.offset : 0;

		if (skip >= s.bytes)
			continue;
		s = (struct elffile_segment){s.offset + skip, s.vaddr + skip, s.bytes - skip};
		map->segments[map->segments_n++] = s;
		end = s.offset + s.bytes;
	}
	return map->segments_n ? 0 : -ENOENT;
}

void textmap_fini(struct textmap *map)
{
	free(map->ranges);
	memset(map, 0, sizeof(*map));
}

int textmap_add(struct textmap *map, struct textmap_range range)
{
	const struct elffile_segment *s =
	    elffile_find_segment(map->segments, map->segments_n, range.offset);

	if (!s)
		return 0;
	if (map->ranges_n == map->ranges_room) {
		uint32_t room = map->ranges_room ? 2 * map->ranges_room : TEXTMAP_RANGES_ROOM;
		void *ranges;

		if (room > TEXTMAP_RANGES_MAX)
			return -EFBIG;
		ranges = realloc(map->ranges, room * sizeof(*map->ranges));
		if (!ranges)
			return -ENOMEM;
		map->ranges = ranges;
		map->ranges_room = room;
	}
	if (range.bytes > s->offset + s->bytes - range.offset)
		range.bytes = s->offset + s->bytes - range.offset;
	range.offset -= range.lead;
	range.bytes += range.lead;
	map->ranges[map->ranges_n++] = range;
	return 0;
}

static int textmap_compare(const void *a, const void *b)
{
	const struct textmap_range *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

void textmap_sort(struct textmap *map)
{
	uint32_t kept = 0, i = 1;

	/* Compilers and linkers mostly write them in order. */
	while (i < map->ranges_n && textmap_compare(&map->ranges[i - 1], &map->ranges[i]) < 0)
		i++;
	if (i < map->ranges_n)
		qsort(map->ranges, map->ranges_n, sizeof(*map->ranges), textmap_compare);
	for (i = 0; i < map->ranges_n; i++)
		if (i == 0 || map->ranges[i].offset != map->ranges[kept - 1].offset)
			map->ranges[kept++] = map->ranges[i];
	map->ranges_n = map->sorted_n = kept;
}

uint32_t textmap_find(const struct textmap *map, uint64_t offset)
{
	uint32_t low = 0, high = map->sorted_n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (map->ranges[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool textmap_is_free(const struct textmap *map, uint64_t start, uint64_t end)
{
	uint32_t next = textmap_find(map, end);

	return next == 0 || textmap_end(&map->ranges[next - 1]) <= start;
}
