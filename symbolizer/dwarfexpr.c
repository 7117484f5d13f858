/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarfexpr.h"

#include <dwarf.h>
#include <stdbool.h>
#include <string.h>

#include "symbolizer/cursor.h"

#define DWARFEXPR_PLT_LIMIT 6 /* index of the literal in plt_form */

/* Linkers write this for .plt: rsp + 8 + (((rip & 15) >= limit) << 3). */
static const uint8_t plt_form[] = {DW_OP_breg7, 8,	   DW_OP_breg16, 0,
				   DW_OP_lit15, DW_OP_and, DW_OP_lit0,	 DW_OP_ge,
				   DW_OP_lit3,	DW_OP_shl, DW_OP_plus};

static bool dwarfexpr_is_plt(const uint8_t *bytes, size_t n, int64_t *limit)
{
	size_t rest = DWARFEXPR_PLT_LIMIT + 1;

	if (n != sizeof(plt_form) || memcmp(bytes, plt_form, DWARFEXPR_PLT_LIMIT) ||
	    memcmp(bytes + rest, plt_form + rest, n - rest))
		return false;
	*limit = bytes[DWARFEXPR_PLT_LIMIT] - DW_OP_lit0;
	return *limit >= 0 && *limit <= 15;
}

static bool dwarfexpr_constant(uint8_t op, struct cursor *c, uint64_t *value)
{
	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		*value = op - DW_OP_lit0;
	else if (op == DW_OP_constu)
		*value = cursor_uleb(c);
	else if (op == DW_OP_consts)
		*value = (uint64_t)cursor_sleb(c);
	else if (op < DW_OP_const1u || op > DW_OP_const8s)
		return false;
	else if ((op - DW_OP_const1u) & 1) /* unsigned and signed in turn, of 1, 2, 4, 8 bytes */
		*value = (uint64_t)cursor_signed(c, 1u << ((op - DW_OP_const1u) / 2));
	else
		*value = cursor_number(c, 1u << ((op - DW_OP_const1u) / 2));
	return true;
}

/* A number that is added to what stands on the stack: plus_uconst, or a constant and plus or minus.
 */
static bool dwarfexpr_addend(uint8_t op, struct cursor *c, uint64_t *value)
{
	if (op == DW_OP_plus_uconst) {
		*value = cursor_uleb(c);
		return true;
	}
	if (!dwarfexpr_constant(op, c, value))
		return false;
	op = (uint8_t)cursor_number(c, 1);
	if (op == DW_OP_minus)
		*value = -*value;
	return op == DW_OP_plus || op == DW_OP_minus;
}

/* The register that an expression begins with. */
static bool dwarfexpr_base(struct cursor *c, struct dwarfexpr *e)
{
	uint8_t op = *c->at;

	e->reg = DWARFEXPR_CFA;
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		e->reg = op - DW_OP_breg0;
	else if (op != DW_OP_bregx)
		return true;
	c->at++;
	if (op == DW_OP_bregx) {
		uint64_t reg = cursor_uleb(c);

		e->reg = reg < DWARFEXPR_CFA ? (uint32_t)reg : DWARFEXPR_CFA - 1;
	}
	e->offset = cursor_sleb(c);
	return !c->bad;
}

struct dwarfexpr dwarfexpr_read(const uint8_t *bytes, size_t n)
{
	struct dwarfexpr e = {.form = DWARFEXPR_OTHER}, other = e;
	struct cursor c = cursor_over(bytes, n);
	uint64_t addend;

	if (n == 0 || n > DWARFEXPR_BYTES_MAX)
		return other;
	if (dwarfexpr_is_plt(bytes, n, &e.add)) {
		e.form = DWARFEXPR_PLT;
		return e;
	}
	if (!dwarfexpr_base(&c, &e))
		return other;
	e.form = DWARFEXPR_SUM;
	while (cursor_left(&c) > 0) {
		uint8_t op = (uint8_t)cursor_number(&c, 1);

		if (op == DW_OP_deref && e.form == DWARFEXPR_SUM)
			e.form = DWARFEXPR_DEREF;
		else if (!dwarfexpr_addend(op, &c, &addend) || c.bad)
			return other;
		else if (e.form == DWARFEXPR_SUM)
			e.offset = (int64_t)((uint64_t)e.offset + addend);
		else
			e.add = (int64_t)((uint64_t)e.add + addend);
	}
	return e;
}
