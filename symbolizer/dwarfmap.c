/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarfmap.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/dwarfranges.h"

#define WIDE	       0xffffffffu
#define HEAD_BYTES_MAX 32
/* Ranges in one another: an inline function of many units is each one's. More are somebody's error.
 */
#define AROUND_MAX 64

struct building {
	struct dwarfmap *map;
	struct dwarffile *file;
	struct dwarflimit *limit;
	uint32_t room, unit;
	uint8_t *covered; /* a byte for each unit */
	int err;
};

static bool map_add(void *arg, uint64_t start, uint64_t end)
{
	struct building *b = arg;
	struct dwarfmap *map = b->map;
	struct dwarfmap_range *last = map->ranges_n ? &map->ranges[map->ranges_n - 1] : NULL;

	if (dwarflimit_late(b->limit))
		b->err = -ETIME;
	b->covered[b->unit] = 1;
	if (last && last->unit == b->unit && last->end == start) {
		last->end = end;
		return !b->err;
	}
	if (b->err == 0)
		b->err = dwarflimit_grow(b->limit, (void **)&map->ranges, map->ranges_n, &b->room,
					 sizeof(*map->ranges));
	if (b->err == 0)
		map->ranges[map->ranges_n++] =
		    (struct dwarfmap_range){start, end, b->unit, DWARFMAP_NONE};
	return !b->err;
}

/* --- .debug_aranges. --- */

static bool map_unit_at(struct building *b, uint64_t offset)
{
	uint32_t low = 0, high = b->file->units_n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (b->file->units[middle] < offset)
			low = middle + 1;
		else
			high = middle;
	}
	b->unit = low;
	return low < b->file->units_n && b->file->units[low] == offset;
}

struct aranges {
	uint64_t tuples, end, unit;
	uint8_t address_bytes;
};

/* The head of a set; false: damaged. */
static bool map_aranges_head(struct dwarfbytes *section, uint64_t at, struct aranges *set)
{
	struct cursor c = dwarfbytes_cursor(section, at, HEAD_BYTES_MAX);
	const uint8_t *from = c.at;
	uint64_t length = cursor_number(&c, 4), head;
	uint8_t offset_bytes = 4;

	if (length == WIDE) {
		length = cursor_number(&c, 8);
		offset_bytes = 8;
	}
	if (c.bad || length == 0 || length > section->size - at)
		return false;
	set->end = at + (uint64_t)(c.at - from) + length;
	if (cursor_number(&c, 2) != 2 || set->end > section->size)
		return false;
	set->unit = cursor_number(&c, offset_bytes);
	set->address_bytes = (uint8_t)cursor_number(&c, 1);
	if (cursor_number(&c, 1) != 0 || c.bad ||
	    (set->address_bytes != 8 && set->address_bytes != 4))
		return false;
	/* Tuples are aligned to their size, from where the set begins. */
	head = (uint64_t)(c.at - from);
	head += (2u * set->address_bytes - head % (2u * set->address_bytes)) %
		(2u * set->address_bytes);
	set->tuples = at + head;
	return true;
}

static void map_aranges_set(struct building *b, struct dwarfbytes *section,
			    const struct aranges *set)
{
	unsigned n = set->address_bytes;

	for (uint64_t at = set->tuples; at + 2 * n <= set->end && !b->err; at += 2 * n) {
		struct cursor c = dwarfbytes_cursor(section, at, 2 * n);
		uint64_t start = cursor_number(&c, n), bytes = cursor_number(&c, n);

		if (c.bad || (start == 0 && bytes == 0))
			return;
		if (start > 1 && bytes && start + bytes > start)
			map_add(b, start, start + bytes);
	}
}

static void map_aranges(struct building *b)
{
	struct dwarfbytes *section = &b->file->section[DWARF_ARANGES];
	struct aranges set;

	for (uint64_t at = 0; at < section->size && !b->err; at = set.end) {
		if (!map_aranges_head(section, at, &set))
			return;
		if (map_unit_at(b, set.unit))
			map_aranges_set(b, section, &set);
		if (dwarflimit_late(b->limit))
			b->err = -ETIME;
	}
}

/* --- The roots of the others. --- */

static void map_root(struct building *b)
{
	struct dwarfunit unit;
	struct dwarfdie root;

	if (dwarfunit_open(&unit, b->file, b->file->units[b->unit]) ||
	    (unit.type != DW_UT_compile && unit.type != DW_UT_skeleton) ||
	    !dwarfunit_root(&unit, &root))
		return;
	dwarfranges_each(&unit, &root, b->limit, map_add, b);
	/* A root costs more than a step. */
	if (b->err == 0 && dwarflimit_now_ns() > b->limit->until_ns)
		b->err = -ETIME;
}

static int range_compare(const void *a, const void *b)
{
	const struct dwarfmap_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Which ones stand in which. */
static void map_nest(struct dwarfmap *map)
{
	for (uint32_t i = 1; i < map->ranges_n; i++) {
		uint32_t around = i - 1;

		while (around != DWARFMAP_NONE && map->ranges[around].end <= map->ranges[i].end)
			around = map->ranges[around].around;
		map->ranges[i].around = around;
	}
}

int dwarfmap_build(struct dwarfmap *map, struct dwarffile *file, struct dwarflimit *limit)
{
	struct building b = {.map = map, .file = file, .limit = limit};

	memset(map, 0, sizeof(*map));
	dwarffile_walk(file);
	if (file->units_n == 0)
		return -ENOENT;
	b.covered = calloc(file->units_n, 1);
	if (!b.covered)
		return -ENOMEM;
	map_aranges(&b);
	for (b.unit = 0; b.unit < file->units_n && !b.err; b.unit++)
		if (!b.covered[b.unit])
			map_root(&b);
	free(b.covered);
	if (map->ranges_n)
		qsort(map->ranges, map->ranges_n, sizeof(*map->ranges), range_compare);
	map_nest(map);
	return b.err ? b.err : map->ranges_n ? 0 : -ENOENT;
}

void dwarfmap_free(struct dwarfmap *map)
{
	free(map->ranges);
	memset(map, 0, sizeof(*map));
}

size_t dwarfmap_held(const struct dwarfmap *map)
{
	return map->ranges_n * sizeof(*map->ranges);
}

uint32_t dwarfmap_find(const struct dwarfmap *map, uint64_t address)
{
	uint32_t low = 0, high = map->ranges_n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (map->ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	low--; /* DWARFMAP_NONE: they all begin behind it */
	for (uint32_t i = 0; i < AROUND_MAX && low != DWARFMAP_NONE; i++) {
		if (address < map->ranges[low].end)
			return map->ranges[low].unit;
		low = map->ranges[low].around;
	}
	return DWARFMAP_NONE;
}
