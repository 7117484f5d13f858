/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarfsplit.h"

#include <dwarf.h>

#define INDEX_HEAD_BYTES 16
#define COLUMNS_MAX	 16
/* Tables are at most two thirds full, so that a search ends after two or three. */
#define PROBES_MAX 1024
/* A .dwo has one, beside units of types. */
#define UNITS_TRIED 16
/* Columns of the index of version 2 and 5; what we need has the same numbers in both. */
#define COLUMN_INFO	   1
#define COLUMN_ABBREV	   3
#define COLUMN_STR_OFFSETS 6
#define COLUMN_RNGLISTS	   8 /* of 5; in version 2 it is something else, and is not looked at */

struct place {
	uint64_t info, abbrev, str_offsets, rnglists;
};

bool dwarfsplit_skeleton(const struct dwarfunit *unit, const struct dwarfdie *root)
{
	return unit->dwo_id && root->value[ATTRIBUTE_DWO_NAME].form &&
	       unit->type != DW_UT_split_compile;
}

/* The row of this id in the index's hash table, from 1; 0: it has none. */
static uint32_t dwarfsplit_row(struct dwarfbytes *index, uint64_t id, uint32_t slots)
{
	uint64_t slot = id & (slots - 1), step = (id >> 32 & (slots - 1)) | 1, found, row;

	for (uint32_t i = 0; i < slots && i < PROBES_MAX; i++) {
		if (!dwarfbytes_number(index, INDEX_HEAD_BYTES + slot * 8, 8, &found) ||
		    !dwarfbytes_number(index, INDEX_HEAD_BYTES + slots * 8ull + slot * 4, 4, &row))
			return 0;
		if (found == id || row == 0)
			return (uint32_t)row;
		slot = (slot + step) & (slots - 1);
	}
	return 0;
}

static bool dwarfsplit_find(struct dwarfbytes *index, uint64_t id, struct place *place)
{
	struct cursor c = dwarfbytes_cursor(index, 0, INDEX_HEAD_BYTES);
	uint32_t version = (uint32_t)cursor_number(&c, 4);
	uint32_t columns = (uint32_t)cursor_number(&c, 4), units = (uint32_t)cursor_number(&c, 4);
	uint32_t slots = (uint32_t)cursor_number(&c, 4), row;
	uint64_t table;

	/* In version 5 it has two bytes, and two that are not used. */
	if (c.bad || (version != 2 && (version & 0xffff) != 5) || columns > COLUMNS_MAX ||
	    slots == 0 || slots & (slots - 1) || slots > index->size / 12)
		return false;
	row = dwarfsplit_row(index, id, slots);
	if (row == 0 || row > units)
		return false;
	table = INDEX_HEAD_BYTES + slots * 12ull;
	for (uint32_t i = 0; i < columns; i++) {
		uint64_t column, offset;

		if (!dwarfbytes_number(index, table + i * 4, 4, &column) ||
		    !dwarfbytes_number(index, table + ((uint64_t)row * columns + i) * 4, 4,
				       &offset))
			return false;
		switch (column) {
		case COLUMN_INFO:
			place->info = offset;
			break;
		case COLUMN_ABBREV:
			place->abbrev = offset;
			break;
		case COLUMN_STR_OFFSETS:
			place->str_offsets = offset;
			break;
		case COLUMN_RNGLISTS:
			place->rnglists = version == 2 ? 0 : offset;
			break;
		default:
			break;
		}
	}
	return true;
}

static bool dwarfsplit_at(struct dwarfunit *unit, struct dwarffile *file, const struct place *place,
			  const struct dwarfunit *skeleton)
{
	struct dwarfdie root;

	if (dwarfunit_open(unit, file, place->info) ||
	    (unit->type != DW_UT_compile && unit->type != DW_UT_split_compile))
		return false;
	unit->abbrev_at += place->abbrev;
	unit->str_offsets_at += place->str_offsets;
	unit->rnglists_at += place->rnglists;
	unit->addresses = skeleton->file;
	unit->addr_at = skeleton->addr_at;
	unit->ranges_at = skeleton->ranges_at;
	unit->low = skeleton->low;
	return dwarfunit_root(unit, &root) && unit->dwo_id == skeleton->dwo_id;
}

bool dwarfsplit_open(struct dwarfunit *unit, struct dwarffile *file,
		     const struct dwarfunit *skeleton)
{
	struct place place = {0};

	if (file->section[DWARF_CU_INDEX].size)
		return dwarfsplit_find(&file->section[DWARF_CU_INDEX], skeleton->dwo_id, &place) &&
		       dwarfsplit_at(unit, file, &place, skeleton);
	dwarffile_walk(file);
	for (uint32_t i = 0, tried = 0; i < file->units_n && tried < UNITS_TRIED; i++) {
		place.info = file->units[i];
		if (dwarfsplit_at(unit, file, &place, skeleton))
			return true;
		tried += unit->type == DW_UT_compile || unit->type == DW_UT_split_compile;
	}
	return false;
}
