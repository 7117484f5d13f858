/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DWARF expressions that occur in call frame information, recognized by their form. Nothing is
 * computed: a walk in the kernel knows a few forms and no stack machine. Any other is
 * DWARFEXPR_OTHER.
 */
#ifndef SCONCE_SYMBOLIZER_DWARFEXPR_H
#define SCONCE_SYMBOLIZER_DWARFEXPR_H

#include <stddef.h>
#include <stdint.h>

#define DWARFEXPR_BYTES_MAX 64
#define DWARFEXPR_CFA	    0xffffffffu /* in place of a register's number */

enum dwarfexpr_form {
	DWARFEXPR_OTHER = 0,
	DWARFEXPR_SUM,	 /* reg + offset */
	DWARFEXPR_DEREF, /* *(reg + offset) + add */
	DWARFEXPR_PLT,	 /* sp + 8 + ((pc & 15) >= add ? 8 : 0) */
};

struct dwarfexpr {
	enum dwarfexpr_form form;
	uint32_t reg; /* DWARF's number, or DWARFEXPR_CFA: a register's expression starts with it */
	int64_t offset, add;
};

struct dwarfexpr dwarfexpr_read(const uint8_t *bytes, size_t n);

#endif
