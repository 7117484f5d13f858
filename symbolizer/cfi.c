/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of call frame information. Instructions are rows of a table: two operands, which are
 * decoded alike for all of them, and an effect.
 */
#include "symbolizer/cfi.h"

#include <dwarf.h>

#include "symbolizer/cfientry.h"
#include "symbolizer/cursor.h"

enum cfi_operand {
	NONE,
	U8,
	U16,
	U32,
	U64,
	ULEB,
	ULEB_DATA,
	SLEB,
	SLEB_DATA,
	NEGATIVE_DATA,
	BLOCK,
	ADDRESS
};

enum cfi_effect {
	UNKNOWN = 0,
	NOTHING,
	ADVANCE,
	SET_LOC,
	SET_RULE,
	RESTORE,
	REMEMBER,
	RECALL,
	CFA_REGISTER_OFFSET,
	CFA_REGISTER,
	CFA_OFFSET,
	CFA_EXPRESSION,
};

struct cfi_instruction {
	uint8_t effect, operands[2], where;
};

/* Instructions with an operand in the low six bits of the opcode. */
static const struct cfi_instruction short_instructions[4] = {
    [DW_CFA_advance_loc >> 6] = {ADVANCE, {NONE, NONE}, 0},
    [DW_CFA_offset >> 6] = {SET_RULE, {NONE, ULEB_DATA}, CFI_OFFSET},
    [DW_CFA_restore >> 6] = {RESTORE, {NONE, NONE}, 0},
};

static const struct cfi_instruction instructions[64] = {
    [DW_CFA_nop] = {NOTHING, {NONE, NONE}, 0},
    [DW_CFA_set_loc] = {SET_LOC, {ADDRESS, NONE}, 0},
    [DW_CFA_advance_loc1] = {ADVANCE, {U8, NONE}, 0},
    [DW_CFA_advance_loc2] = {ADVANCE, {U16, NONE}, 0},
    [DW_CFA_advance_loc4] = {ADVANCE, {U32, NONE}, 0},
    [DW_CFA_MIPS_advance_loc8] = {ADVANCE, {U64, NONE}, 0},
    [DW_CFA_offset_extended] = {SET_RULE, {ULEB, ULEB_DATA}, CFI_OFFSET},
    [DW_CFA_offset_extended_sf] = {SET_RULE, {ULEB, SLEB_DATA}, CFI_OFFSET},
    [DW_CFA_GNU_negative_offset_extended] = {SET_RULE, {ULEB, NEGATIVE_DATA}, CFI_OFFSET},
    [DW_CFA_val_offset] = {SET_RULE, {ULEB, ULEB_DATA}, CFI_VAL_OFFSET},
    [DW_CFA_val_offset_sf] = {SET_RULE, {ULEB, SLEB_DATA}, CFI_VAL_OFFSET},
    [DW_CFA_restore_extended] = {RESTORE, {ULEB, NONE}, 0},
    [DW_CFA_undefined] = {SET_RULE, {ULEB, NONE}, CFI_UNDEFINED},
    [DW_CFA_same_value] = {SET_RULE, {ULEB, NONE}, CFI_SAME},
    [DW_CFA_register] = {SET_RULE, {ULEB, ULEB}, CFI_REGISTER},
    [DW_CFA_expression] = {SET_RULE, {ULEB, BLOCK}, CFI_EXPRESSION},
    [DW_CFA_val_expression] = {SET_RULE, {ULEB, BLOCK}, CFI_VAL_EXPRESSION},
    [DW_CFA_remember_state] = {REMEMBER, {NONE, NONE}, 0},
    [DW_CFA_restore_state] = {RECALL, {NONE, NONE}, 0},
    [DW_CFA_def_cfa] = {CFA_REGISTER_OFFSET, {ULEB, ULEB}, 0},
    [DW_CFA_def_cfa_sf] = {CFA_REGISTER_OFFSET, {ULEB, SLEB_DATA}, 0},
    [DW_CFA_def_cfa_register] = {CFA_REGISTER, {ULEB, NONE}, 0},
    [DW_CFA_def_cfa_offset] = {CFA_OFFSET, {ULEB, NONE}, 0},
    [DW_CFA_def_cfa_offset_sf] = {CFA_OFFSET, {SLEB_DATA, NONE}, 0},
    [DW_CFA_def_cfa_expression] = {CFA_EXPRESSION, {BLOCK, NONE}, 0},
    /* How much the callee pops of its arguments: of use when an exception is thrown, not here. */
    [DW_CFA_GNU_args_size] = {NOTHING, {ULEB, NONE}, 0},
};

struct cfi_value {
	uint64_t number; /* of a block: its bytes */
	const uint8_t *block;
};

struct cfi_machine {
	const struct cfi_section *section;
	const struct cfi_fde *fde;
	struct cursor code;
	struct cfi_row row, initial, states[CFI_STATES_MAX];
	unsigned states_n;
	uint64_t vaddr;
	bool ended;	/* the FDE's last address was passed */
	cfi_row_fn *fn; /* NULL: the CIE's instructions, which describe no address */
	void *arg;
};

static struct cfi_value cfi_decode(struct cfi_machine *m, enum cfi_operand operand)
{
	const struct cfi_cie *cie = &m->fde->cie;
	uint64_t align = (uint64_t)cie->data_align;
	struct cfi_value v = {0, NULL};

	switch (operand) {
	case NONE:
		break;
	case U8:
	case U16:
	case U32:
	case U64:
		v.number = cursor_number(&m->code, 1u << (operand - U8));
		break;
	case ULEB:
		v.number = cursor_uleb(&m->code);
		break;
	case ULEB_DATA:
		v.number = cursor_uleb(&m->code) * align;
		break;
	case NEGATIVE_DATA:
		v.number = -(cursor_uleb(&m->code) * align);
		break;
	case SLEB:
		v.number = (uint64_t)cursor_sleb(&m->code);
		break;
	case SLEB_DATA:
		v.number = (uint64_t)cursor_sleb(&m->code) * align;
		break;
	case BLOCK:
		v.number = cursor_uleb(&m->code);
		v.block = cursor_take(&m->code, v.number);
		break;
	case ADDRESS:
		if (!cfientry_address(m->section, cie->encoding, &m->code, &v.number))
			m->code.bad = true;
		break;
	}
	return v;
}

static int cfi_followed(uint64_t reg)
{
	switch (reg) {
	case CFI_DWARF_FP:
		return CFI_FP;
	case CFI_DWARF_SP:
		return CFI_SP;
	case CFI_DWARF_RA:
		return CFI_RA;
	case CFI_DWARF_RBX:
		return CFI_RBX;
	}
	return -1;
}

/* The row as it stands holds from m->vaddr up to `to`. */
static bool cfi_advance(struct cfi_machine *m, uint64_t to)
{
	if (!m->fn || to < m->vaddr)
		return false;
	if (to > m->vaddr)
		m->fn(m->arg, m->vaddr, &m->row);
	m->vaddr = to;
	m->ended = to >= m->fde->end;
	return true;
}

static void cfi_set_rule(struct cfi_rule *rule, uint8_t where, struct cfi_value v)
{
	*rule = (struct cfi_rule){
	    .where = where, .value = (int64_t)v.number, .expr = v.block, .expr_bytes = v.number};
	if (!v.block)
		rule->expr_bytes = 0;
}

static bool cfi_restore(struct cfi_machine *m, uint64_t reg)
{
	int followed = cfi_followed(reg);

	if (!m->fn)
		return false;
	if (followed >= 0)
		m->row.registers[followed] = m->initial.registers[followed];
	return true;
}

static bool cfi_remember(struct cfi_machine *m, bool recall)
{
	if (recall ? m->states_n == 0 : m->states_n == CFI_STATES_MAX)
		return false;
	if (recall)
		m->row = m->states[--m->states_n];
	else
		m->states[m->states_n++] = m->row;
	return true;
}

/* False: from here on the program makes no sense. */
static bool cfi_apply(struct cfi_machine *m, const struct cfi_instruction *in, struct cfi_value a,
		      struct cfi_value b)
{
	struct cfi_rule *cfa = &m->row.cfa;
	uint64_t advance;

	switch (in->effect) {
	case NOTHING:
		return true;
	case ADVANCE:
		if (__builtin_mul_overflow(a.number, m->fde->cie.code_align, &advance) ||
		    __builtin_add_overflow(m->vaddr, advance, &advance))
			return false;
		return cfi_advance(m, advance);
	case SET_LOC:
		return cfi_advance(m, a.number);
	case SET_RULE:
		if (cfi_followed(a.number) >= 0)
			cfi_set_rule(&m->row.registers[cfi_followed(a.number)], in->where, b);
		return true;
	case RESTORE:
		return cfi_restore(m, a.number);
	case REMEMBER:
	case RECALL:
		return cfi_remember(m, in->effect == RECALL);
	case CFA_REGISTER_OFFSET:
		cfi_set_rule(cfa, CFI_REGISTER, b);
		cfa->reg = a.number > UINT32_MAX ? UINT32_MAX : (uint32_t)a.number;
		return true;
	case CFA_REGISTER:
		cfa->reg = a.number > UINT32_MAX ? UINT32_MAX : (uint32_t)a.number;
		return cfa->where == CFI_REGISTER;
	case CFA_OFFSET:
		cfa->value = (int64_t)a.number;
		return cfa->where == CFI_REGISTER;
	case CFA_EXPRESSION:
		cfi_set_rule(cfa, CFI_EXPRESSION, a);
		return true;
	}
	return false;
}

static bool cfi_step(struct cfi_machine *m)
{
	uint8_t opcode = (uint8_t)cursor_number(&m->code, 1);
	const struct cfi_instruction *in = &short_instructions[opcode >> 6];
	struct cfi_value a = {opcode & 63, NULL}, b;

	if (opcode >> 6 == 0) {
		in = &instructions[opcode];
		a = cfi_decode(m, in->operands[0]);
	}
	b = cfi_decode(m, in->operands[1]);
	return !m->code.bad && cfi_apply(m, in, a, b);
}

static bool cfi_execute(struct cfi_machine *m, const uint8_t *program, size_t bytes)
{
	m->code = cursor_over(program, bytes);
	while (!m->ended && cursor_left(&m->code) > 0)
		if (!cfi_step(m))
			return false;
	return true;
}

void cfi_run(const struct cfi_section *section, const struct cfi_fde *fde, cfi_row_fn *fn,
	     void *arg)
{
	struct cfi_machine m;

	m.section = section;
	m.fde = fde;
	m.vaddr = fde->start;
	m.row = (struct cfi_row){0};
	m.states_n = 0;
	m.ended = false;
	m.arg = arg;
	m.fn = NULL;
	if (!cfi_execute(&m, fde->cie.program, fde->cie.program_bytes)) {
		fn(arg, fde->start, NULL);
		return;
	}
	m.initial = m.row;
	m.states_n = 0;
	m.fn = fn;
	if (!cfi_execute(&m, fde->program, fde->program_bytes))
		fn(arg, m.vaddr, NULL);
	else if (!m.ended)
		fn(arg, m.vaddr, &m.row);
}
