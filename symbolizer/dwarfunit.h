/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unit's head, its entries (DIEs) with those attributes that names, ranges and call sites need,
 * and what the values of attributes stand for. DWARF 2 to 5, split units (GNU's of DWARF 4 too).
 *
 * An entry's values are read as they stand, and made sense of by the functions below, because bases
 * that they count from may come later in the same entry.
 */
#ifndef SCONCE_SYMBOLIZER_DWARFUNIT_H
#define SCONCE_SYMBOLIZER_DWARFUNIT_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/dwarfabbrev.h"
#include "symbolizer/dwarffile.h"

enum dwarf_attribute {
	ATTRIBUTE_NAME,
	ATTRIBUTE_LINKAGE_NAME,
	ATTRIBUTE_LOW,
	ATTRIBUTE_HIGH,
	ATTRIBUTE_RANGES,
	ATTRIBUTE_ORIGIN,
	ATTRIBUTE_SPECIFICATION,
	ATTRIBUTE_DECL_LINE,
	ATTRIBUTE_CALL_FILE,
	ATTRIBUTE_CALL_LINE,
	ATTRIBUTE_LINES,
	ATTRIBUTE_DIRECTORY,
	ATTRIBUTE_LANGUAGE,
	ATTRIBUTE_STR_OFFSETS_BASE,
	ATTRIBUTE_ADDR_BASE,
	ATTRIBUTE_RANGES_BASE,
	ATTRIBUTE_RNGLISTS_BASE,
	ATTRIBUTE_DWO_NAME,
	ATTRIBUTE_DWO_ID,
	ATTRIBUTES
};

struct dwarfvalue {
	uint16_t form;	 /* 0 = the entry has no such attribute */
	uint64_t number; /* of a string in the entry itself: where it stands in .debug_info */
};

struct dwarfdie {
	uint16_t tag; /* 0 = none: the end of a row of siblings */
	bool children;
	struct dwarfvalue value[ATTRIBUTES];
};

struct dwarfunit {
	struct dwarffile *file;
	struct dwarffile *addresses; /* has .debug_addr: the file itself, or that of the skeleton */
	uint64_t offset, end, first; /* in .debug_info: its head, what follows it, its root */
	uint64_t abbrev_at, dwo_id;
	uint64_t low; /* what ranges count from */
	uint64_t str_offsets_at, addr_at, ranges_at, rnglists_at;
	uint8_t version, type, address_bytes, offset_bytes;
};

/* Through a unit's entries, from `at` on. */
struct dwarfdies {
	const struct dwarfunit *unit;
	const struct dwarfabbrevs *abbrevs;
	struct cursor c;
	const uint8_t *base;
	uint64_t base_at; /* in .debug_info */
};

/* 0; -ENOEXEC: it is damaged, or no DWARF 2 to 5. */
int dwarfunit_open(struct dwarfunit *unit, struct dwarffile *file, uint64_t offset);
/* Read the unit's root, and the bases that stand in it. */
bool dwarfunit_root(struct dwarfunit *unit, struct dwarfdie *root);
/* A single entry, of this unit. */
bool dwarfunit_die(const struct dwarfunit *unit, uint64_t offset, struct dwarfdie *die);

/* Room for the size of what an abbreviation describes, where that is fixed. */
void dwarfunit_sizes(const struct dwarfunit *unit, const struct dwarfabbrevs *abbrevs,
		     uint32_t *sizes);
/* The attributes of the entry at the cursor, behind its code. */
void dwarfunit_values(struct dwarfdies *dies, const struct dwarfattribute *attributes, uint16_t n,
		      struct dwarfdie *die);

bool dwarfunit_address(const struct dwarfunit *unit, const struct dwarfvalue *value,
		       uint64_t *address);
/* Where a string stands; false: it is none. */
bool dwarfunit_text(const struct dwarfunit *unit, const struct dwarfvalue *value,
		    struct dwarfbytes **section, uint64_t *at);
/* The entry that is referred to; alt: in the common file. */
bool dwarfunit_reference(const struct dwarfunit *unit, const struct dwarfvalue *value,
			 uint64_t *offset, bool *alt);

/* One value of any form, which the cursor steps over. Number 0 where it is a block. */
struct dwarfvalue dwarfunit_value(const struct dwarfunit *unit, struct cursor *c, uint16_t form,
				  int64_t implicit);

#endif
