/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug sections of one file (program, debug file, .dwo, .dwp, the common file of dwz), and
 * where its units begin.
 */
#ifndef SCONCE_SYMBOLIZER_DWARFFILE_H
#define SCONCE_SYMBOLIZER_DWARFFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/dwarfbytes.h"

/* Chromium has 40,000 of them, Linux 4,000. */
#define DWARFFILE_UNITS_MAX (1u << 18)

enum dwarf_section {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_STR,
	DWARF_LINE,
	DWARF_LINE_STR,
	DWARF_STR_OFFSETS,
	DWARF_ADDR,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_ARANGES,
	DWARF_CU_INDEX,
	DWARF_SECTIONS
};

struct dwarffile {
	struct dwarfbytes section[DWARF_SECTIONS];
	struct dwarffile *alt; /* dwz; NULL = none */
	bool dwo;	       /* its sections are those of split units */
	uint64_t *units;       /* where they begin in .debug_info, and where the last one ends */
	uint32_t units_n;
	bool walked;
};

/*
 * 0; -ENOENT: it has no .debug_info; -EFBIG: what is packed takes more than that; or what reading
 * gave. Borrows alt, and the file's slot in the reader.
 */
int dwarffile_open(struct dwarffile *df, struct elffile *file, struct dwarffile *alt, bool dwo,
		   size_t unpacked_max);
void dwarffile_close(struct dwarffile *df);
/* Bytes of memory. */
size_t dwarffile_held(const struct dwarffile *df);
/* Give back what only the walk through a unit needs. */
void dwarffile_trim(struct dwarffile *df);

/* Find all units, once. Damaged ones end the list. */
void dwarffile_walk(struct dwarffile *df);
/* The unit that holds this offset of .debug_info; false: none does. */
bool dwarffile_unit_of(struct dwarffile *df, uint64_t offset, uint64_t *unit);

#endif
