/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/symbolizer/cfa_world.h"

#include <dwarf.h>

#define STACK_MAX 16

enum { DWARF_RBX = 3, DWARF_FP = 6, DWARF_SP = 7, DWARF_RA = 16 };

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x7fb5d329728ea185ull;
	x = (x ^ x >> 27) * 0x81dadef4bc2dd44dull;
	return x ^ x >> 33;
}

/* By DWARF's numbers of x86-64. */
static uint64_t world_register(const struct cfa_world *w, uint64_t number)
{
	return number == DWARF_RA ? w->pc : mix(w->seed + number) & ~7ull;
}

static uint64_t world_memory(const struct cfa_world *w, uint64_t address)
{
	return mix(address ^ ~w->seed) & ~7ull;
}

static uint64_t rule_register(const struct cfa_world *w, uint8_t number)
{
	static const uint8_t dwarf[] = {7, 6, 0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

	return world_register(w, dwarf[number]);
}

struct cfa_result cfa_world_rule(const struct cfa_world *w, const struct table_rule *rule)
{
	struct cfa_result r = {.valid = true, .fp_known = true};
	uint64_t base = rule_register(w, rule->cfa_register) + (uint64_t)(int64_t)rule->cfa_offset;

	switch (rule->cfa) {
	case RULE_INVALID:
		r.valid = false;
		return r;
	case RULE_STOP:
		r.stop = true;
		return r;
	case RULE_SIGNAL:
		r.fp = world_memory(w, base + 80);
		r.sp = world_memory(w, base + 120);
		r.ra = world_memory(w, base + 128);
		return r;
	case RULE_DEREF:
		base = world_memory(w, base) + rule->add;
		break;
	case RULE_PLT:
		base = world_register(w, DWARF_SP) + 8 + ((w->pc & 15) >= rule->add ? 8 : 0);
		break;
	}
	r.sp = base;
	r.fp = world_register(w, DWARF_FP);
	if (rule->fp == RULE_FP_CFA)
		r.fp = world_memory(w, base + (uint64_t)(int64_t)rule->fp_offset);
	else if (rule->fp == RULE_FP_FP)
		r.fp = world_memory(w, r.fp + (uint64_t)(int64_t)rule->fp_offset);
	r.fp_known = rule->fp != RULE_FP_UNDEFINED;
	r.rbx_known = rule->ra == RULE_RA_CFA && rule->rbx != RULE_RBX_UNKNOWN;
	r.rbx = rule->rbx == RULE_RBX_SAME ? world_register(w, DWARF_RBX)
					   : world_memory(w, base - 8 * (uint64_t)rule->rbx);
	r.ra = rule->ra == RULE_RA_REGISTER
		   ? rule_register(w, rule->ra_register)
		   : world_memory(w, base + (uint64_t)(int64_t)rule->ra_offset);
	return r;
}

/* Operations on the two uppermost values. */
static bool world_binary(uint8_t atom, uint64_t a, uint64_t b, uint64_t *value)
{
	switch (atom) {
	case DW_OP_plus:
		*value = a + b;
		return true;
	case DW_OP_minus:
		*value = a - b;
		return true;
	case DW_OP_and:
		*value = a & b;
		return true;
	case DW_OP_mul:
		*value = a * b;
		return true;
	case DW_OP_shl:
		*value = a << (b & 63);
		return true;
	case DW_OP_ge:
		*value = (int64_t)a >= (int64_t)b;
		return true;
	}
	return false;
}

static bool world_push(const struct cfa_world *w, const Dwarf_Op *op, uint64_t cfa, uint64_t *value)
{
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		*value = world_register(w, op->atom - DW_OP_breg0) + op->number;
	else if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		*value = op->atom - DW_OP_lit0;
	else if (op->atom == DW_OP_bregx)
		*value = world_register(w, op->number) + op->number2;
	else if (op->atom == DW_OP_call_frame_cfa)
		*value = cfa;
	else if ((op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts))
		*value = op->number;
	else
		return false;
	return true;
}

/* False: not understood. *is_value: the result is the value itself, not its address. */
static bool world_run(const struct cfa_world *w, const Dwarf_Op *ops, size_t n, uint64_t cfa,
		      uint64_t *value, bool *is_value)
{
	uint64_t stack[STACK_MAX], pushed;
	size_t depth = 0;

	*is_value = false;
	for (size_t i = 0; i < n; i++) {
		if (ops[i].atom >= DW_OP_reg0 && ops[i].atom <= DW_OP_reg31 && n == 1) {
			stack[depth++] = world_register(w, ops[i].atom - DW_OP_reg0);
			*is_value = true;
		} else if (ops[i].atom == DW_OP_regx && n == 1) {
			stack[depth++] = world_register(w, ops[i].number);
			*is_value = true;
		} else if (depth < STACK_MAX && world_push(w, &ops[i], cfa, &pushed)) {
			stack[depth++] = pushed;
		} else if (ops[i].atom == DW_OP_plus_uconst && depth > 0) {
			stack[depth - 1] += ops[i].number;
		} else if (ops[i].atom == DW_OP_deref && depth > 0) {
			stack[depth - 1] = world_memory(w, stack[depth - 1]);
		} else if (ops[i].atom == DW_OP_stack_value && i == n - 1) {
			*is_value = true;
		} else if (depth > 1 &&
			   world_binary(ops[i].atom, stack[depth - 2], stack[depth - 1], &pushed)) {
			stack[--depth - 1] = pushed;
		} else {
			return false;
		}
	}
	if (depth == 0)
		return false;
	*value = stack[depth - 1];
	return true;
}

/* 1: the value; 0: undefined; -1: not understood. */
static int frame_register(const struct cfa_world *w, Dwarf_Frame *frame, int number, uint64_t cfa,
			  uint64_t *value)
{
	Dwarf_Op room[3], *ops;
	bool is_value;
	size_t n;

	if (dwarf_frame_register(frame, number, room, &ops, &n))
		return -1;
	if (n == 0 && ops == room)
		return 0;
	if (n == 0) {
		*value = world_register(w, (uint64_t)number);
		return 1;
	}
	if (!world_run(w, ops, n, cfa, value, &is_value))
		return -1;
	if (!is_value)
		*value = world_memory(w, *value);
	return 1;
}

struct cfa_result cfa_world_frame(const struct cfa_world *w, Dwarf_Frame *frame)
{
	struct cfa_result r = {.valid = true};
	uint64_t cfa = 0;
	Dwarf_Op *ops;
	bool is_value;
	size_t n;
	int ra;

	if (dwarf_frame_cfa(frame, &ops, &n) || n == 0 || !world_run(w, ops, n, 0, &cfa, &is_value))
		r.valid = false;
	ra = frame_register(w, frame, DWARF_RA, cfa, &r.ra);
	r.stop = ra == 0;
	if (ra < 0 || frame_register(w, frame, DWARF_SP, cfa, &r.sp) != 1)
		r.valid = false;
	r.fp_known = frame_register(w, frame, DWARF_FP, cfa, &r.fp) == 1;
	r.rbx_known = frame_register(w, frame, DWARF_RBX, cfa, &r.rbx) >= 0;
	/* The ABI lets a callee keep rbx; libdw 0.188 has rax in its place and calls rbx undefined. */
	if (frame_register(w, frame, DWARF_RBX, cfa, &r.rbx) == 0)
		r.rbx = world_register(w, DWARF_RBX);
	return r;
}
