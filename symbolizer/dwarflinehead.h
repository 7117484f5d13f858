/* SPDX-License-Identifier: Apache-2.0 */
/* What stands before the instructions of a line program: its parameters, its directories and files.
 */
#ifndef SCONCE_SYMBOLIZER_DWARFLINEHEAD_H
#define SCONCE_SYMBOLIZER_DWARFLINEHEAD_H

#include "symbolizer/dwarfline.h"

#define DWARFLINEHEAD_OPCODES 256

struct dwarflinehead {
	const struct dwarfunit *unit;
	struct dwarflimit *limit;
	struct dwarflines *out; /* gets files, directories and version */
	struct cursor c;	/* over the program */
	const uint8_t *base;	/* of .debug_line at base_at */
	uint64_t base_at;
	uint8_t offset_bytes, address_bytes;
	uint8_t min_length, line_range, opcode_base, operands[DWARFLINEHEAD_OPCODES];
	int8_t line_base;
	uint32_t files_room, directories_room;
};

/*
 * unit, limit and out are set. Then the cursor is at the first instruction. 0, -ENOEXEC, -EFBIG or
 * -ENOMEM.
 */
int dwarflinehead_read(struct dwarflinehead *h, uint64_t at);
/* One more file, at the cursor, as DWARF 2 to 4 may have it between instructions. */
int dwarflinehead_define(struct dwarflinehead *h);

#endif
