/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarfranges.h"

#include <dwarf.h>

/* A kind and two numbers of at most 10 bytes; two addresses. */
#define ENTRY_BYTES_MAX 24
/* Linkers write 0, 1, -1 or -2 for what they dropped; addresses of programs are far below. */
#define DROPPED_BELOW 2
#define DROPPED_ABOVE (1ull << 62)

struct list {
	const struct dwarfunit *unit;
	struct dwarfbytes *section;
	uint64_t at, base;
	dwarfranges_fn *fn;
	void *arg;
};

/* What counts from one that was dropped is dropped. */
static uint64_t dwarfranges_base(uint64_t base)
{
	return base < DROPPED_ABOVE ? base : DROPPED_ABOVE;
}

static bool dwarfranges_tell(const struct list *list, uint64_t start, uint64_t end)
{
	if (start < DROPPED_BELOW || start >= end || end >= DROPPED_ABOVE)
		return true;
	return list->fn(list->arg, start, end);
}

/* 1 = go on, 0 = the end, -1 = damaged or enough. */
static int dwarfranges_pair(struct list *list)
{
	unsigned n = list->unit->address_bytes;
	struct cursor c = dwarfbytes_cursor(list->section, list->at, 2 * n);
	uint64_t start = cursor_number(&c, n), end = cursor_number(&c, n);
	uint64_t all = n == 8 ? UINT64_MAX : UINT32_MAX;

	list->at += 2 * n;
	if (c.bad)
		return -1;
	if (start == 0 && end == 0)
		return 0;
	if (start == all) {
		list->base = dwarfranges_base(end);
		return 1;
	}
	return dwarfranges_tell(list, list->base + start, list->base + end) ? 1 : -1;
}

static bool dwarfranges_indexed(struct list *list, uint64_t index, uint64_t *address)
{
	const struct dwarfvalue value = {DW_FORM_addrx, index};

	return dwarfunit_address(list->unit, &value, address);
}

static int dwarfranges_entry(struct list *list)
{
	struct cursor c = dwarfbytes_cursor(list->section, list->at, ENTRY_BYTES_MAX);
	const uint8_t *from = c.at;
	uint8_t kind = (uint8_t)cursor_number(&c, 1);
	unsigned n = list->unit->address_bytes;
	uint64_t start = 0, end = 0;
	bool ok = true, tell = true;

	switch (kind) {
	case DW_RLE_end_of_list:
		return c.bad ? -1 : 0;
	case DW_RLE_base_addressx:
		tell = false;
		ok = dwarfranges_indexed(list, cursor_uleb(&c), &list->base);
		list->base = dwarfranges_base(list->base);
		break;
	case DW_RLE_base_address:
		tell = false;
		list->base = dwarfranges_base(cursor_number(&c, n));
		break;
	case DW_RLE_startx_endx:
		ok = dwarfranges_indexed(list, cursor_uleb(&c), &start) &&
		     dwarfranges_indexed(list, cursor_uleb(&c), &end);
		break;
	case DW_RLE_startx_length:
		ok = dwarfranges_indexed(list, cursor_uleb(&c), &start);
		end = start + cursor_uleb(&c);
		break;
	case DW_RLE_offset_pair:
		start = list->base + cursor_uleb(&c);
		end = list->base + cursor_uleb(&c);
		break;
	case DW_RLE_start_end:
		start = cursor_number(&c, n);
		end = cursor_number(&c, n);
		break;
	case DW_RLE_start_length:
		start = cursor_number(&c, n);
		end = start + cursor_uleb(&c);
		break;
	default:
		return -1;
	}
	list->at += (uint64_t)(c.at - from);
	if (c.bad || !ok)
		return -1;
	return !tell || dwarfranges_tell(list, start, end) ? 1 : -1;
}

/* Where the list begins; false: it is none. */
static bool dwarfranges_begin(struct list *list, const struct dwarfvalue *value)
{
	const struct dwarfunit *unit = list->unit;
	uint64_t offset;

	if (unit->version < 5) {
		/* Of a split unit they are in the file of its skeleton. */
		list->section = &unit->addresses->section[DWARF_RANGES];
		list->at = value->number + (unit->file->dwo ? unit->ranges_at : 0);
		return true;
	}
	list->section = &unit->file->section[DWARF_RNGLISTS];
	list->at = value->number;
	if (value->form != DW_FORM_rnglistx)
		return true;
	if (value->number >= list->section->size / unit->offset_bytes ||
	    !dwarfbytes_number(list->section,
			       unit->rnglists_at + value->number * unit->offset_bytes,
			       unit->offset_bytes, &offset))
		return false;
	list->at = unit->rnglists_at + offset;
	return true;
}

bool dwarfranges_each(const struct dwarfunit *unit, const struct dwarfdie *die,
		      struct dwarflimit *limit, dwarfranges_fn *fn, void *arg)
{
	const struct dwarfvalue *high = &die->value[ATTRIBUTE_HIGH];
	struct list list = {
	    .unit = unit, .base = dwarfranges_base(unit->low), .fn = fn, .arg = arg};
	uint64_t start, end;
	int go = 1;

	if (die->value[ATTRIBUTE_RANGES].form) {
		if (!dwarfranges_begin(&list, &die->value[ATTRIBUTE_RANGES]))
			return false;
		for (uint32_t i = 0; i < DWARFRANGES_MAX && go > 0 && !dwarflimit_late(limit); i++)
			go = unit->version < 5 ? dwarfranges_pair(&list) : dwarfranges_entry(&list);
		return go == 0;
	}
	if (!high->form || !dwarfunit_address(unit, &die->value[ATTRIBUTE_LOW], &start))
		return true;
	if (!dwarfunit_address(unit, high, &end))
		end = start + high->number;
	return dwarfranges_tell(&list, start, end);
}
