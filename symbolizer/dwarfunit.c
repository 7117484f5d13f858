/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarfunit.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#define WIDE	       0xffffffffu
#define HEAD_BYTES_MAX 40
#define DIE_BYTES_MAX  (1u << 20) /* of an entry that is looked at alone */
#define DIE_BYTES      512
#define NOT_FIXED      UINT32_MAX
/* DWARF 5, 7.26 and 7.28: length, version, two bytes; and in .debug_rnglists a count. */
#define STR_OFFSETS_HEAD(u) ((u)->offset_bytes == 8 ? 16u : 8u)
#define RNGLISTS_HEAD(u)    ((u)->offset_bytes == 8 ? 20u : 12u)

int dwarfunit_open(struct dwarfunit *unit, struct dwarffile *file, uint64_t offset)
{
	struct cursor c = dwarfbytes_cursor(&file->section[DWARF_INFO], offset, HEAD_BYTES_MAX);
	const uint8_t *from = c.at;
	uint64_t length = cursor_number(&c, 4);

	*unit = (struct dwarfunit){
	    .file = file, .addresses = file, .offset = offset, .offset_bytes = 4};
	if (length == WIDE) {
		length = cursor_number(&c, 8);
		unit->offset_bytes = 8;
	}
	if (c.bad || length > file->section[DWARF_INFO].size)
		return -ENOEXEC;
	unit->end = offset + (uint64_t)(c.at - from) + length;
	unit->version = (uint8_t)cursor_number(&c, 2);
	unit->type = DW_UT_compile;
	if (unit->version >= 5) {
		unit->type = (uint8_t)cursor_number(&c, 1);
		unit->address_bytes = (uint8_t)cursor_number(&c, 1);
	}
	unit->abbrev_at = cursor_number(&c, unit->offset_bytes);
	if (unit->version < 5)
		unit->address_bytes = (uint8_t)cursor_number(&c, 1);
	if (unit->type == DW_UT_skeleton || unit->type == DW_UT_split_compile)
		unit->dwo_id = cursor_number(&c, 8);
	if (unit->type == DW_UT_type || unit->type == DW_UT_split_type)
		cursor_take(&c, 8 + unit->offset_bytes);
	unit->first = offset + (uint64_t)(c.at - from);
	if (unit->version >= 5) {
		unit->str_offsets_at = STR_OFFSETS_HEAD(unit);
		unit->rnglists_at = RNGLISTS_HEAD(unit);
		unit->addr_at = 8;
	}
	if (c.bad || unit->version < 2 || unit->version > 5 || unit->first > unit->end ||
	    unit->end > file->section[DWARF_INFO].size ||
	    (unit->address_bytes != 8 && unit->address_bytes != 4))
		return -ENOEXEC;
	return 0;
}

/* --- Values as they stand. --- */

/* Bytes of a form; NOT_FIXED where they depend on what stands there. */
static uint32_t dwarfunit_form_bytes(const struct dwarfunit *unit, uint16_t form)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return unit->address_bytes;
	case DW_FORM_ref_addr:
		return unit->version == 2 ? unit->address_bytes : unit->offset_bytes;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return unit->offset_bytes;
	default:
		return NOT_FIXED;
	}
}

static void dwarfunit_skip_string(struct cursor *c)
{
	const uint8_t *end = cursor_left(c) ? memchr(c->at, 0, cursor_left(c)) : NULL;

	cursor_take(c, end ? (uint64_t)(end - c->at) + 1 : cursor_left(c) + 1);
}

static uint64_t dwarfunit_number(struct cursor *c, uint32_t bytes)
{
	uint64_t low;

	if (bytes == 16) {
		cursor_take(c, 16);
		return 0;
	}
	if (bytes != 3)
		return cursor_number(c, bytes);
	low = cursor_number(c, 2);
	return low | cursor_number(c, 1) << 16;
}

struct dwarfvalue dwarfunit_value(const struct dwarfunit *unit, struct cursor *c, uint16_t form,
				  int64_t implicit)
{
	struct dwarfvalue value = {.form = form};
	uint32_t bytes;

	/* Once: an indirect one of an indirect one is nobody's. */
	if (form == DW_FORM_indirect) {
		uint64_t real = cursor_uleb(c);

		if (real > UINT16_MAX || real == DW_FORM_indirect ||
		    real == DW_FORM_implicit_const) {
			c->bad = true;
			return value;
		}
		value.form = form = (uint16_t)real;
	}
	bytes = dwarfunit_form_bytes(unit, form);
	if (bytes != NOT_FIXED) {
		value.number = form == DW_FORM_implicit_const ? (uint64_t)implicit
			       : form == DW_FORM_flag_present ? 1
							      : dwarfunit_number(c, bytes);
		return value;
	}
	switch (form) {
	case DW_FORM_sdata:
		value.number = (uint64_t)cursor_sleb(c);
		break;
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		value.number = cursor_uleb(c);
		break;
	case DW_FORM_string:
		dwarfunit_skip_string(c);
		break;
	case DW_FORM_block1:
		cursor_take(c, cursor_number(c, 1));
		break;
	case DW_FORM_block2:
		cursor_take(c, cursor_number(c, 2));
		break;
	case DW_FORM_block4:
		cursor_take(c, cursor_number(c, 4));
		break;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		cursor_take(c, cursor_uleb(c));
		break;
	default:
		c->bad = true;
	}
	return value;
}

void dwarfunit_sizes(const struct dwarfunit *unit, const struct dwarfabbrevs *abbrevs,
		     uint32_t *sizes)
{
	for (uint32_t i = 0; i < abbrevs->abbrevs_n; i++) {
		const struct dwarfabbrev *a = &abbrevs->abbrevs[i];

		sizes[i] = 0;
		for (uint32_t k = 0; k < a->attributes_n && sizes[i] != NOT_FIXED; k++) {
			uint32_t bytes =
			    dwarfunit_form_bytes(unit, abbrevs->attributes[a->first + k].form);

			sizes[i] = bytes == NOT_FIXED ? NOT_FIXED : sizes[i] + bytes;
		}
	}
}

static enum dwarf_attribute dwarfunit_attribute(uint16_t name)
{
	switch (name) {
	case DW_AT_name:
		return ATTRIBUTE_NAME;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return ATTRIBUTE_LINKAGE_NAME;
	case DW_AT_low_pc:
		return ATTRIBUTE_LOW;
	case DW_AT_high_pc:
		return ATTRIBUTE_HIGH;
	case DW_AT_ranges:
		return ATTRIBUTE_RANGES;
	case DW_AT_abstract_origin:
		return ATTRIBUTE_ORIGIN;
	case DW_AT_specification:
		return ATTRIBUTE_SPECIFICATION;
	case DW_AT_decl_line:
		return ATTRIBUTE_DECL_LINE;
	case DW_AT_call_file:
		return ATTRIBUTE_CALL_FILE;
	case DW_AT_call_line:
		return ATTRIBUTE_CALL_LINE;
	case DW_AT_stmt_list:
		return ATTRIBUTE_LINES;
	case DW_AT_comp_dir:
		return ATTRIBUTE_DIRECTORY;
	case DW_AT_language:
		return ATTRIBUTE_LANGUAGE;
	case DW_AT_str_offsets_base:
		return ATTRIBUTE_STR_OFFSETS_BASE;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return ATTRIBUTE_ADDR_BASE;
	case DW_AT_GNU_ranges_base:
		return ATTRIBUTE_RANGES_BASE;
	case DW_AT_rnglists_base:
		return ATTRIBUTE_RNGLISTS_BASE;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return ATTRIBUTE_DWO_NAME;
	case DW_AT_GNU_dwo_id:
		return ATTRIBUTE_DWO_ID;
	default:
		return ATTRIBUTES;
	}
}

void dwarfunit_values(struct dwarfdies *dies, const struct dwarfattribute *attributes, uint16_t n,
		      struct dwarfdie *die)
{
	for (uint16_t i = 0; i < n && !dies->c.bad; i++) {
		enum dwarf_attribute which = dwarfunit_attribute(attributes[i].name);
		uint64_t at = dies->base_at + (uint64_t)(dies->c.at - dies->base);
		struct dwarfvalue value = dwarfunit_value(dies->unit, &dies->c, attributes[i].form,
							  attributes[i].implicit);

		if (value.form == DW_FORM_string)
			value.number = at;
		if (which != ATTRIBUTES)
			die->value[which] = value;
	}
}

bool dwarfunit_die(const struct dwarfunit *unit, uint64_t offset, struct dwarfdie *die)
{
	struct dwarfattribute attributes[DWARFABBREV_OF_ONE_MAX];
	struct dwarfdies dies = {.unit = unit, .base_at = offset};
	struct dwarfabbrev abbrev;
	uint64_t code;

	if (offset < unit->first || offset >= unit->end)
		return false;
	for (uint64_t need = DIE_BYTES; need <= DIE_BYTES_MAX; need *= 8) {
		dies.c = dwarfbytes_cursor(&unit->file->section[DWARF_INFO], offset, need);
		dies.base = dies.c.at;
		if (cursor_left(&dies.c) > unit->end - offset)
			dies.c.end = dies.c.at + (unit->end - offset);
		code = cursor_uleb(&dies.c);
		if (!code || !dwarfabbrev_find(&unit->file->section[DWARF_ABBREV], unit->abbrev_at,
					       code, &abbrev, attributes))
			return false;
		*die = (struct dwarfdie){.tag = abbrev.tag, .children = abbrev.children};
		dwarfunit_values(&dies, attributes, abbrev.attributes_n, die);
		if (!dies.c.bad)
			return true;
		if (need >= unit->end - offset)
			return false;
	}
	return false;
}

bool dwarfunit_root(struct dwarfunit *unit, struct dwarfdie *root)
{
	const struct dwarfvalue *v = root->value;

	if (!dwarfunit_die(unit, unit->first, root))
		return false;
	if (v[ATTRIBUTE_STR_OFFSETS_BASE].form)
		unit->str_offsets_at = v[ATTRIBUTE_STR_OFFSETS_BASE].number;
	if (v[ATTRIBUTE_ADDR_BASE].form)
		unit->addr_at = v[ATTRIBUTE_ADDR_BASE].number;
	if (v[ATTRIBUTE_RNGLISTS_BASE].form)
		unit->rnglists_at = v[ATTRIBUTE_RNGLISTS_BASE].number;
	if (v[ATTRIBUTE_RANGES_BASE].form)
		unit->ranges_at = v[ATTRIBUTE_RANGES_BASE].number;
	if (v[ATTRIBUTE_DWO_ID].form)
		unit->dwo_id = v[ATTRIBUTE_DWO_ID].number;
	if (v[ATTRIBUTE_LOW].form && !dwarfunit_address(unit, &v[ATTRIBUTE_LOW], &unit->low))
		unit->low = 0;
	return true;
}

/* --- What they stand for. --- */

/* base + index * bytes, where that does not wrap. */
static bool dwarfunit_indexed(struct dwarfbytes *section, uint64_t base, uint64_t index,
			      unsigned bytes, uint64_t *value)
{
	if (index >= section->size / bytes || base >= section->size)
		return false;
	return dwarfbytes_number(section, base + index * bytes, bytes, value);
}

bool dwarfunit_address(const struct dwarfunit *unit, const struct dwarfvalue *value,
		       uint64_t *address)
{
	switch (value->form) {
	case DW_FORM_addr:
		*address = value->number;
		return true;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return dwarfunit_indexed(&unit->addresses->section[DWARF_ADDR], unit->addr_at,
					 value->number, unit->address_bytes, address);
	default:
		return false;
	}
}

bool dwarfunit_text(const struct dwarfunit *unit, const struct dwarfvalue *value,
		    struct dwarfbytes **section, uint64_t *at)
{
	struct dwarffile *file = unit->file;

	*at = value->number;
	switch (value->form) {
	case DW_FORM_string:
		*section = &file->section[DWARF_INFO];
		return true;
	case DW_FORM_strp:
		*section = &file->section[DWARF_STR];
		return true;
	case DW_FORM_line_strp:
		*section = &file->section[DWARF_LINE_STR];
		return true;
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		*section = file->alt ? &file->alt->section[DWARF_STR] : NULL;
		return file->alt;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		*section = &file->section[DWARF_STR];
		return dwarfunit_indexed(&file->section[DWARF_STR_OFFSETS], unit->str_offsets_at,
					 value->number, unit->offset_bytes, at);
	default:
		return false;
	}
}

bool dwarfunit_reference(const struct dwarfunit *unit, const struct dwarfvalue *value,
			 uint64_t *offset, bool *alt)
{
	*offset = value->number;
	*alt = false;
	switch (value->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		*offset = unit->offset + value->number;
		return *offset >= unit->first && *offset < unit->end;
	case DW_FORM_ref_addr:
		return true;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		*alt = true;
		return unit->file->alt;
	default:
		return false;
	}
}
