/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarffile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WIDE 0xffffffffu /* a length of 64 bits follows */
/* Of what is all over its section: roots and single entries, tables of 1 to 4 KiB, strings. A walk
 * through a unit asks for all of it. */
#define AHEAD_INFO   512
#define AHEAD_TABLES 4096
#define AHEAD_TEXT   1024

/* Windows that stay: of a file, and of a .dwo, of which there may be thousands. */
#define KEPT_BYTES   131072
#define KEPT_OF_MANY AHEAD_TABLES

static const struct {
	const char *name, *dwo; /* NULL = such a file has none, or it is no use */
} names[DWARF_SECTIONS] = {
    [DWARF_INFO] = {".debug_info", ".debug_info.dwo"},
    [DWARF_ABBREV] = {".debug_abbrev", ".debug_abbrev.dwo"},
    [DWARF_STR] = {".debug_str", ".debug_str.dwo"},
    [DWARF_LINE] = {".debug_line", NULL},
    [DWARF_LINE_STR] = {".debug_line_str", NULL},
    [DWARF_STR_OFFSETS] = {".debug_str_offsets", ".debug_str_offsets.dwo"},
    [DWARF_ADDR] = {".debug_addr", NULL},
    [DWARF_RANGES] = {".debug_ranges", NULL},
    [DWARF_RNGLISTS] = {".debug_rnglists", ".debug_rnglists.dwo"},
    [DWARF_ARANGES] = {".debug_aranges", NULL},
    [DWARF_CU_INDEX] = {NULL, ".debug_cu_index"},
};

int dwarffile_open(struct dwarffile *df, struct elffile *file, struct dwarffile *alt, bool dwo,
		   size_t unpacked_max)
{
	int err = 0;

	memset(df, 0, sizeof(*df));
	df->alt = alt;
	df->dwo = dwo;
	for (int i = 0; i < DWARF_SECTIONS && (err == 0 || err == -ENOENT); i++) {
		const char *name = dwo ? names[i].dwo : names[i].name;
		size_t held = dwarffile_held(df);

		if (name)
			err = dwarfbytes_open(&df->section[i], file, name,
					      held < unpacked_max ? unpacked_max - held : 0);
	}
	if (!df->section[DWARF_INFO].size || !df->section[DWARF_ABBREV].size ||
	    (err && err != -ENOENT)) {
		dwarffile_close(df);
		return err ? err : -ENOENT;
	}
	df->section[DWARF_INFO].ahead = AHEAD_INFO;
	df->section[DWARF_ABBREV].ahead = AHEAD_TABLES;
	df->section[DWARF_STR_OFFSETS].ahead = AHEAD_TABLES;
	df->section[DWARF_STR].ahead = AHEAD_TEXT;
	df->section[DWARF_LINE_STR].ahead = AHEAD_TEXT;
	return 0;
}

void dwarffile_close(struct dwarffile *df)
{
	for (int i = 0; i < DWARF_SECTIONS; i++)
		dwarfbytes_close(&df->section[i]);
	free(df->units);
	df->units = NULL;
	df->units_n = 0;
}

size_t dwarffile_held(const struct dwarffile *df)
{
	size_t bytes = sizeof(*df) + (df->units ? (df->units_n + 1ul) * sizeof(*df->units) : 0);

	for (int i = 0; i < DWARF_SECTIONS; i++)
		bytes += dwarfbytes_held(&df->section[i]);
	return bytes;
}

void dwarffile_trim(struct dwarffile *df)
{
	for (int i = 0; i < DWARF_SECTIONS; i++)
		dwarfbytes_trim(&df->section[i], df->dwo ? KEPT_OF_MANY : KEPT_BYTES);
}

/* Where the unit at `at` ends; 0: it is damaged. */
static uint64_t dwarffile_unit_end(struct dwarfbytes *info, uint64_t at)
{
	struct cursor c = dwarfbytes_cursor(info, at, 12);
	uint64_t length = cursor_number(&c, 4), head = 4;

	if (length == WIDE) {
		length = cursor_number(&c, 8);
		head = 12;
	}
	if (c.bad || length == 0 || length > info->size - at || head + length > info->size - at)
		return 0;
	return at + head + length;
}

static bool dwarffile_add(struct dwarffile *df, uint32_t *room, uint64_t at)
{
	uint64_t *grown;

	if (df->units_n + 2 > *room) {
		*room = *room ? 2 * *room : 64;
		grown = realloc(df->units, *room * sizeof(*grown));
		if (!grown)
			return false;
		df->units = grown;
	}
	df->units[df->units_n++] = at;
	return true;
}

void dwarffile_walk(struct dwarffile *df)
{
	struct dwarfbytes *info = &df->section[DWARF_INFO];
	uint64_t at = 0, end = 0;
	uint32_t room = 0;

	if (df->walked)
		return;
	df->walked = true;
	while (at < info->size && df->units_n < DWARFFILE_UNITS_MAX &&
	       (end = dwarffile_unit_end(info, at)) && dwarffile_add(df, &room, at))
		at = end;
	if (df->units)
		df->units[df->units_n] = at;
}

bool dwarffile_unit_of(struct dwarffile *df, uint64_t offset, uint64_t *unit)
{
	uint32_t low = 0, high;

	dwarffile_walk(df);
	high = df->units_n;
	if (high == 0 || offset >= df->units[high])
		return false;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (df->units[middle] <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return false;
	*unit = df->units[low - 1];
	return true;
}
