/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/dwarf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/dwarfloaded.h"
#include "symbolizer/dwarfmap.h"
#include "symbolizer/dwarfsplit.h"

/*
 * A unit of 64 MiB takes 0.5 s. The worker is ended when it stands still for ten; a crowd of units
 * that each take their time may have so much at once, and then one part in so many of all time.
 */
#define UNIT_NS	   2000000000ull
#define CREDIT_NS  5000000000ull
#define TIME_SHARE 8
/* ... where waiting, for a disk or for a CPU that others have, counts one part in so many. */
#define WAIT_SHARE 4
/* One unit's arrays, while it is made, and a part of the file's bytes in the end. */
#define BUILD_BYTES_MAX (32ul << 20)

/* Packed sections may take so much of bytes_max in one of the files beside, and the rest of it but
 * as much in the file itself. */
#define UNPACKED_SHARE 4

struct given {
	uint64_t id;
	struct dwarffile *file; /* NULL = there is none */
};

/* In `slots`; every other number is that of its place among the loaded ones, and 1. */
#define UNIT_NEW 0
#define UNIT_BAD UINT32_MAX

struct dwarf {
	struct dwarffile file, alt, dwp;
	bool has_alt, has_dwp, has_map, bad;
	bool refused, resumed; /* questions for lack of time; there is some again */
	struct dwarfmap map;
	uint32_t *slots; /* of each unit */
	struct dwarfloaded **loaded;
	uint32_t loaded_n, loaded_room;
	struct given *given;
	uint32_t given_n, given_room;
	size_t loaded_bytes, bytes_max;
	uint64_t questions, credit_ns, counted_ns, counted_cpu_ns;
	struct dwarf_want want; /* dwo_id 0 = none */
};

struct dwarf *dwarf_open(const struct dwarf_parts *parts, size_t bytes_max)
{
	struct dwarf *dwarf = calloc(1, sizeof(*dwarf));
	int err;

	if (!dwarf)
		return NULL;
	dwarf->bytes_max = bytes_max;
	dwarf->credit_ns = CREDIT_NS;
	dwarf->counted_ns = dwarflimit_now_ns();
	dwarf->has_alt = parts->alt && dwarffile_open(&dwarf->alt, parts->alt, NULL, false,
						      bytes_max / UNPACKED_SHARE) == 0;
	dwarf->has_dwp = parts->dwp && dwarffile_open(&dwarf->dwp, parts->dwp, NULL, true,
						      bytes_max / UNPACKED_SHARE) == 0;
	err = dwarffile_open(&dwarf->file, parts->debug, dwarf->has_alt ? &dwarf->alt : NULL, false,
			     bytes_max - bytes_max / UNPACKED_SHARE);
	if (err) {
		dwarf_close(dwarf);
		errno = -err;
		return NULL;
	}
	return dwarf;
}

static void dwarf_free_given(struct given *given)
{
	if (given->file)
		dwarffile_close(given->file);
	free(given->file);
	given->file = NULL;
}

void dwarf_close(struct dwarf *dwarf)
{
	if (!dwarf)
		return;
	for (uint32_t i = 0; i < dwarf->loaded_n; i++)
		dwarfloaded_free(dwarf->loaded[i]);
	for (uint32_t i = 0; i < dwarf->given_n; i++)
		dwarf_free_given(&dwarf->given[i]);
	dwarfmap_free(&dwarf->map);
	dwarffile_close(&dwarf->file);
	dwarffile_close(&dwarf->alt);
	dwarffile_close(&dwarf->dwp);
	free(dwarf->slots);
	free(dwarf->loaded);
	free(dwarf->given);
	free(dwarf);
}

size_t dwarf_bytes(const struct dwarf *dwarf)
{
	size_t bytes = sizeof(*dwarf) + dwarffile_held(&dwarf->file) +
		       (dwarf->has_alt ? dwarffile_held(&dwarf->alt) : 0) +
		       (dwarf->has_dwp ? dwarffile_held(&dwarf->dwp) : 0) +
		       dwarfmap_held(&dwarf->map) + dwarf->file.units_n * sizeof(*dwarf->slots) +
		       dwarf->loaded_room * sizeof(*dwarf->loaded) +
		       dwarf->given_room * sizeof(*dwarf->given) + dwarf->loaded_bytes;

	for (uint32_t i = 0; i < dwarf->given_n; i++)
		if (dwarf->given[i].file)
			bytes += dwarffile_held(dwarf->given[i].file);
	return bytes;
}

/* --- Time. --- */

/* False: it has had its part for now. */
static bool dwarf_begin(struct dwarf *dwarf, struct dwarflimit *limit)
{
	uint64_t now = dwarflimit_now_ns();

	dwarf->credit_ns += (now - dwarf->counted_ns) / TIME_SHARE;
	if (dwarf->credit_ns > CREDIT_NS)
		dwarf->credit_ns = CREDIT_NS;
	dwarf->counted_ns = now;
	dwarf->counted_cpu_ns = dwarflimit_cpu_ns();
	*limit = (struct dwarflimit){
	    .bytes_max = dwarf->bytes_max < BUILD_BYTES_MAX ? dwarf->bytes_max : BUILD_BYTES_MAX,
	    .until_ns = now + UNIT_NS};
	if (dwarf->credit_ns <= CREDIT_NS / 16)
		dwarf->refused = true;
	if (dwarf->refused && dwarf->credit_ns > CREDIT_NS / 2) {
		dwarf->refused = false;
		dwarf->resumed = true;
	}
	return dwarf->credit_ns > CREDIT_NS / 16;
}

static void dwarf_spend(struct dwarf *dwarf, uint64_t ns)
{
	dwarf->credit_ns -= ns < dwarf->credit_ns ? ns : dwarf->credit_ns;
}

static void dwarf_end(struct dwarf *dwarf)
{
	uint64_t took = dwarflimit_now_ns() - dwarf->counted_ns;
	uint64_t cpu = dwarflimit_cpu_ns() - dwarf->counted_cpu_ns;

	dwarf_spend(dwarf, cpu < took ? cpu + (took - cpu) / WAIT_SHARE : took);
	dwarf->counted_ns += took;
	dwarffile_trim(&dwarf->file);
	dwarffile_trim(&dwarf->alt);
	dwarffile_trim(&dwarf->dwp);
}

/* --- Units. --- */

static void dwarf_drop(struct dwarf *dwarf, uint32_t i)
{
	struct dwarfloaded *loaded = dwarf->loaded[i];

	dwarf->loaded_bytes -= loaded->bytes;
	dwarf->loaded[i] = dwarf->loaded[--dwarf->loaded_n];
	dwarf->slots[dwarf->loaded[i]->number] = i + 1;
	dwarf->slots[loaded->number] = UNIT_NEW;
	dwarfloaded_free(loaded);
}

/* Units that were not asked for longest go; `keep` is asked for. */
static void dwarf_make_room(struct dwarf *dwarf, const struct dwarfloaded *keep)
{
	while (dwarf->loaded_n > 1 && dwarf_bytes(dwarf) > dwarf->bytes_max) {
		uint32_t oldest = dwarf->loaded[0] == keep;

		for (uint32_t i = 0; i < dwarf->loaded_n; i++)
			if (dwarf->loaded[i] != keep &&
			    dwarf->loaded[i]->used < dwarf->loaded[oldest]->used)
				oldest = i;
		dwarf_drop(dwarf, oldest);
	}
}

static const struct given *dwarf_given(const struct dwarf *dwarf, uint64_t id)
{
	for (uint32_t i = 0; i < dwarf->given_n; i++)
		if (dwarf->given[i].id == id)
			return &dwarf->given[i];
	return NULL;
}

/* Where the entries of a skeleton are; false: not here. */
static bool dwarf_split(struct dwarf *dwarf, const struct dwarfunit *unit, struct dwarfunit *split)
{
	const struct given *given = dwarf_given(dwarf, unit->dwo_id);

	return (dwarf->has_dwp && dwarfsplit_open(split, &dwarf->dwp, unit)) ||
	       (given && given->file && dwarfsplit_open(split, given->file, unit));
}

static struct dwarfloaded *dwarf_read(struct dwarf *dwarf, uint32_t number,
				      struct dwarflimit *limit)
{
	struct dwarfunit unit, split;
	struct dwarfloaded *loaded;
	struct dwarfdie root;
	bool skeleton, whole = false;

	if (dwarfunit_open(&unit, &dwarf->file, dwarf->file.units[number]) ||
	    !dwarfunit_root(&unit, &root))
		return NULL;
	skeleton = dwarfsplit_skeleton(&unit, &root);
	if (skeleton)
		whole = dwarf_split(dwarf, &unit, &split);
	loaded = dwarfloaded_open(&unit, &root, whole ? &split : NULL, limit);
	if (whole)
		dwarffile_trim(split.file);
	if (loaded)
		loaded->missing = skeleton && !whole;
	if (loaded && loaded->bytes > dwarf->bytes_max) {
		dwarfloaded_free(loaded);
		loaded = NULL;
	}
	return loaded;
}

static struct dwarfloaded *dwarf_load(struct dwarf *dwarf, uint32_t number)
{
	struct dwarfloaded *loaded;
	struct dwarflimit limit;

	if (!dwarf_begin(dwarf, &limit) ||
	    dwarflimit_grow(&limit, (void **)&dwarf->loaded, dwarf->loaded_n, &dwarf->loaded_room,
			    sizeof(*dwarf->loaded)))
		return NULL;
	loaded = dwarf_read(dwarf, number, &limit);
	dwarf_end(dwarf);
	dwarf->slots[number] = UNIT_BAD;
	if (!loaded)
		return NULL;
	loaded->number = number;
	dwarf->loaded[dwarf->loaded_n++] = loaded;
	dwarf->slots[number] = dwarf->loaded_n;
	dwarf->loaded_bytes += loaded->bytes;
	dwarf_make_room(dwarf, loaded);
	return loaded;
}

/* The unit's index, made when there is none; NULL: there can be none. */
static struct dwarfloaded *dwarf_unit(struct dwarf *dwarf, uint32_t number)
{
	if (dwarf->slots[number] == UNIT_NEW)
		return dwarf_load(dwarf, number);
	return dwarf->slots[number] == UNIT_BAD ? NULL : dwarf->loaded[dwarf->slots[number] - 1];
}

/* Once: which unit is where. */
static bool dwarf_mapped(struct dwarf *dwarf)
{
	struct dwarflimit limit;
	int err;

	if (dwarf->has_map || dwarf->bad)
		return !dwarf->bad;
	if (!dwarf_begin(dwarf, &limit))
		return false;
	limit.bytes_max = dwarf->bytes_max / 2;
	err = dwarfmap_build(&dwarf->map, &dwarf->file, &limit);
	dwarf_end(dwarf);
	if (err == 0)
		dwarf->slots = calloc(dwarf->file.units_n, sizeof(*dwarf->slots));
	dwarf->bad = err || !dwarf->slots;
	dwarf->has_map = !dwarf->bad;
	if (dwarf->bad)
		dwarfmap_free(&dwarf->map);
	return dwarf->has_map;
}

/* --- Split units that come later. --- */

/* Remember what to ask for; longer names than that are not asked for. */
static void dwarf_miss(struct dwarf *dwarf, uint32_t number)
{
	struct dwarfbytes *section;
	struct dwarfunit unit;
	struct dwarfdie root;
	const char *path, *name;
	uint64_t at;
	size_t n;

	if (dwarfunit_open(&unit, &dwarf->file, dwarf->file.units[number]) ||
	    !dwarfunit_root(&unit, &root) || dwarf_given(dwarf, unit.dwo_id) ||
	    !dwarfunit_text(&unit, &root.value[ATTRIBUTE_DWO_NAME], &section, &at))
		return;
	path = dwarfbytes_string(section, at, &n);
	if (!path)
		return;
	name = memrchr(path, '/', n);
	name = name ? name + 1 : path;
	n -= (size_t)(name - path);
	if (n == 0 || n >= DWARF_DWO_NAME_BYTES)
		return;
	memset(&dwarf->want, 0, sizeof(dwarf->want));
	memcpy(dwarf->want.name, name, n);
	dwarf->want.dwo_id = unit.dwo_id;
}

void dwarf_find(struct dwarf *dwarf, uint64_t vaddr, const char *symbol, struct lines *lines)
{
	struct dwarfloaded *loaded;
	uint64_t from;
	size_t before;
	uint32_t unit;

	lines->n = 0;
	dwarf->want.dwo_id = 0;
	if (!dwarf_mapped(dwarf))
		return;
	unit = dwarfmap_find(&dwarf->map, vaddr);
	loaded = unit == DWARFMAP_NONE ? NULL : dwarf_unit(dwarf, unit);
	if (!loaded)
		return;
	loaded->used = ++dwarf->questions;
	before = loaded->bytes;
	from = dwarflimit_now_ns();
	dwarfloaded_find(loaded, vaddr, symbol, lines);
	dwarf->loaded_bytes += loaded->bytes - before;
	/* Names were looked up. */
	if (loaded->bytes != before) {
		dwarf_spend(dwarf, dwarflimit_now_ns() - from);
		dwarf_make_room(dwarf, loaded);
	}
	if (loaded->missing)
		dwarf_miss(dwarf, unit);
}

bool dwarf_resumed(struct dwarf *dwarf)
{
	bool resumed = dwarf->resumed;

	dwarf->resumed = false;
	return resumed;
}

bool dwarf_wants(struct dwarf *dwarf, struct dwarf_want *want)
{
	if (dwarf->want.dwo_id == 0)
		return false;
	*want = dwarf->want;
	return true;
}

/* Is its unit in there? */
static bool dwarf_holds(struct dwarffile *file, uint64_t dwo_id)
{
	const struct dwarfunit skeleton = {.file = file, .addresses = file, .dwo_id = dwo_id};
	struct dwarfunit unit;

	return dwarfsplit_open(&unit, file, &skeleton);
}

static int dwarf_take(struct given *given, struct elffile *dwo, size_t bytes_max)
{
	int err;

	given->file = calloc(1, sizeof(*given->file));
	if (!given->file)
		return -ENOMEM;
	err = dwarffile_open(given->file, dwo, NULL, true, bytes_max / UNPACKED_SHARE);
	if (err == 0 && !dwarf_holds(given->file, given->id))
		err = -ENOENT;
	if (err)
		dwarf_free_given(given);
	return err;
}

int dwarf_give(struct dwarf *dwarf, uint64_t dwo_id, struct elffile *dwo)
{
	const struct dwarflimit limit = {.bytes_max = DWARF_DWO_MAX * sizeof(struct given)};
	struct given given = {.id = dwo_id};
	int err;

	if (dwarf_given(dwarf, dwo_id))
		return 0;
	if (dwo && dwarf_bytes(dwarf) > dwarf->bytes_max)
		return -ENOSPC;
	if (dwarflimit_grow(&limit, (void **)&dwarf->given, dwarf->given_n, &dwarf->given_room,
			    sizeof(given)))
		return -ENOSPC;
	err = dwo ? dwarf_take(&given, dwo, dwarf->bytes_max) : 0;
	dwarf->given[dwarf->given_n++] = given;
	/* What was made of the skeleton alone is made anew. */
	for (uint32_t i = 0; err == 0 && dwo && i < dwarf->loaded_n; i++)
		if (dwarf->loaded[i]->missing && dwarf->loaded[i]->entries.dwo_id == dwo_id)
			dwarf_drop(dwarf, i--);
	return err;
}
