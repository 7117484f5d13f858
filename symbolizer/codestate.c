/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/codestate.h"

#include <string.h>

/* No frame is larger; it keeps all sums in range. */
#define CODESTATE_FRAME_MAX (1 << 28)
/* What a function may change without saving it: rax, rcx, rdx, rsi, rdi, r8 to r11. */
#define CODESTATE_CALLER_SAVED 0x0fc7u
#define CODESTATE_SLOT	       8

struct codestate codestate_start(void)
{
	struct codestate state;

	memset(&state, 0, sizeof(state));
	state.is[X86_RSP] = CODE_FRAME;
	state.n[X86_RSP] = -CODESTATE_SLOT;
	state.is[X86_RBP] = CODE_FP;
	state.compared = UINT32_MAX;
	return state;
}

static void codestate_set(struct codestate *state, uint8_t reg, enum code_value is, int64_t n)
{
	int64_t max = is == CODE_FRAME ? CODESTATE_FRAME_MAX : INT32_MAX;

	if (reg >= X86_REGISTERS)
		return;
	if (n < -max || n > max)
		is = CODE_UNKNOWN;
	state->is[reg] = (uint8_t)is;
	state->n[reg] = is == CODE_UNKNOWN ? 0 : (int32_t)n;
}

static void codestate_forget(struct codestate *state, unsigned registers)
{
	for (uint8_t i = 0; i < X86_REGISTERS; i++)
		if (registers & 1u << i)
			codestate_set(state, i, CODE_UNKNOWN, 0);
}

/* sp has gone up: what it has passed may be overwritten at any time, by a signal handler too. */
static void codestate_drop_below_sp(struct codestate *state)
{
	if (state->is[X86_RSP] == CODE_FRAME && state->fp_slot < state->n[X86_RSP])
		state->fp_slot = 0;
	if (state->is[X86_RSP] == CODE_FRAME && state->n[X86_RSP] > -CODESTATE_SLOT) {
		state->popped = state->n[X86_RSP] > 0 ? CODE_POPPED_MORE : CODE_POPPED_RETURN;
		codestate_forget(state, 0xffff);
	}
}

/* Whether an operand in memory has a known place in the frame. */
static bool codestate_place(const struct codestate *state, const struct x86_operand *o, int64_t *n)
{
	if (o->kind != X86_MEMORY || o->segment || o->base >= X86_REGISTERS ||
	    o->index != X86_NO_REGISTER || state->is[o->base] != CODE_FRAME ||
	    o->number < -CODESTATE_FRAME_MAX || o->number > CODESTATE_FRAME_MAX)
		return false;
	*n = state->n[o->base] + o->number;
	return true;
}

/* Something is written to the frame. is_fp: it is the caller's frame pointer, all of it. */
static void codestate_store(struct codestate *state, int64_t n, unsigned bytes, bool is_fp)
{
	int64_t end = n + (bytes ? bytes : 256);

	if (n < 0 && end > -CODESTATE_SLOT) /* over the return address */
		codestate_forget(state, 0xffff);
	if (state->fp_slot && n < state->fp_slot + CODESTATE_SLOT && end > state->fp_slot)
		state->fp_slot = 0;
	if (is_fp && state->fp_slot == 0 && n <= -2 * CODESTATE_SLOT)
		state->fp_slot = (int32_t)n;
}

/* The address of a jump table whose entries are this large, as a number counted from origin. */
static bool codestate_table(const struct codestate *state, const struct x86_operand *o,
			    unsigned entry_bytes, uint64_t origin, int64_t *n)
{
	if (o->kind != X86_MEMORY || o->segment || o->index == X86_NO_REGISTER ||
	    o->scale != entry_bytes || o->bytes != entry_bytes)
		return false;
	*n = (int64_t)((uint64_t)o->number - origin);
	if (o->base == X86_NO_REGISTER)
		return true;
	*n = o->number + state->n[o->base];
	return state->is[o->base] == CODE_ADDRESS && o->number >= -INT32_MAX &&
	       o->number <= INT32_MAX;
}

/* sp is taken from the caller's frame pointer: it is the caller's frame that is given up. */
static void codestate_leave_caller(struct codestate *state)
{
	codestate_forget(state, 0xffff);
	state->popped = CODE_POPPED_MORE;
}

static void codestate_move(struct codestate *state, const struct x86_insn *insn, uint64_t origin)
{
	const struct x86_operand *a = &insn->a, *b = &insn->b;
	int64_t n;

	if (a->kind != X86_REGISTER)
		return;
	if (b->kind == X86_REGISTER && a->bytes == 8 && b->reg < X86_REGISTERS) {
		codestate_set(state, a->reg, state->is[b->reg], state->n[b->reg]);
		if (state->is[X86_RSP] == CODE_FP)
			codestate_leave_caller(state);
		return;
	}
	codestate_set(state, a->reg, CODE_UNKNOWN, 0);
	if (b->kind == X86_IMMEDIATE && a->bytes >= 4) {
		n = a->bytes == 4 ? (int64_t)(uint32_t)b->number : b->number;
		codestate_set(state, a->reg, CODE_ADDRESS, (int64_t)((uint64_t)n - origin));
	} else if (a->bytes == 8 && codestate_place(state, b, &n) && n == state->fp_slot && n) {
		codestate_set(state, a->reg, CODE_FP, 0);
	} else if (a->bytes == 8 && codestate_table(state, b, 8, origin, &n)) {
		codestate_set(state, a->reg, CODE_POINTER, n);
	}
}

static void codestate_move_signed(struct codestate *state, const struct x86_insn *insn,
				  uint64_t origin)
{
	int64_t n;
	bool is_entry = insn->a.bytes == 8 && codestate_table(state, &insn->b, 4, origin, &n);

	codestate_set(state, insn->a.reg, is_entry ? CODE_ENTRY : CODE_UNKNOWN, is_entry ? n : 0);
}

static void codestate_lea(struct codestate *state, const struct x86_insn *insn, uint64_t origin)
{
	const struct x86_operand *b = &insn->b;
	int64_t n;

	if (insn->a.bytes != 8)
		codestate_set(state, insn->a.reg, CODE_UNKNOWN, 0);
	else if (codestate_place(state, b, &n))
		codestate_set(state, insn->a.reg, CODE_FRAME, n);
	else if (b->base == X86_NO_REGISTER && b->index == X86_NO_REGISTER)
		codestate_set(state, insn->a.reg, CODE_ADDRESS,
			      (int64_t)((uint64_t)b->number - origin));
	else
		codestate_set(state, insn->a.reg, CODE_UNKNOWN, 0);
}

/* sp moved by a constant, or an entry of a table added to the table. */
static void codestate_add(struct codestate *state, const struct x86_insn *insn)
{
	const struct x86_operand *a = &insn->a, *b = &insn->b;
	bool known = a->kind == X86_REGISTER && a->bytes == 8 && a->reg < X86_REGISTERS;

	if (known && b->kind == X86_IMMEDIATE && state->is[a->reg] == CODE_FRAME) {
		codestate_set(state, a->reg, CODE_FRAME,
			      insn->kind == X86_ADD ? state->n[a->reg] + b->number
						    : state->n[a->reg] - b->number);
	} else if (known && b->kind == X86_REGISTER && b->reg < X86_REGISTERS &&
		   insn->kind == X86_ADD && state->n[a->reg] == state->n[b->reg] &&
		   ((state->is[a->reg] == CODE_ENTRY && state->is[b->reg] == CODE_ADDRESS) ||
		    (state->is[a->reg] == CODE_ADDRESS && state->is[b->reg] == CODE_ENTRY))) {
		codestate_set(state, a->reg, CODE_TARGET, state->n[a->reg]);
	} else if (a->kind == X86_REGISTER) {
		codestate_set(state, a->reg, CODE_UNKNOWN, 0);
	}
}

static void codestate_push(struct codestate *state, const struct x86_insn *insn)
{
	bool is_fp = insn->a.kind == X86_REGISTER && insn->a.reg < X86_REGISTERS &&
		     insn->bytes == 8 && state->is[insn->a.reg] == CODE_FP;

	if (state->is[X86_RSP] != CODE_FRAME)
		return;
	codestate_set(state, X86_RSP, CODE_FRAME, (int64_t)state->n[X86_RSP] - insn->bytes);
	if (state->is[X86_RSP] == CODE_FRAME)
		codestate_store(state, state->n[X86_RSP], insn->bytes, is_fp);
}

static void codestate_pop(struct codestate *state, const struct x86_insn *insn)
{
	bool known = state->is[X86_RSP] == CODE_FRAME;
	bool is_fp =
	    known && insn->bytes == 8 && state->fp_slot && state->fp_slot == state->n[X86_RSP];
	int64_t n;

	if (known)
		codestate_set(state, X86_RSP, CODE_FRAME, (int64_t)state->n[X86_RSP] + insn->bytes);
	if (insn->a.kind == X86_REGISTER)
		codestate_set(state, insn->a.reg, is_fp ? CODE_FP : CODE_UNKNOWN, 0);
	else if (codestate_place(state, &insn->a, &n))
		codestate_store(state, n, insn->bytes, false);
}

static void codestate_leave(struct codestate *state)
{
	bool known = state->is[X86_RBP] == CODE_FRAME;
	bool is_fp = known && state->fp_slot && state->fp_slot == state->n[X86_RBP];

	codestate_set(state, X86_RSP, known ? CODE_FRAME : CODE_UNKNOWN,
		      known ? (int64_t)state->n[X86_RBP] + CODESTATE_SLOT : 0);
	if (state->is[X86_RBP] == CODE_FP)
		codestate_leave_caller(state);
	else
		codestate_set(state, X86_RBP, is_fp ? CODE_FP : CODE_UNKNOWN, 0);
}

static void codestate_compare(struct codestate *state, const struct x86_insn *insn)
{
	uint64_t mask = insn->a.bytes < 8 ? (1ull << 8 * insn->a.bytes) - 1 : UINT64_MAX;
	uint64_t value = (uint64_t)insn->b.number & mask;

	state->compared = insn->b.kind == X86_IMMEDIATE && insn->a.bytes && value < UINT32_MAX
			      ? (uint32_t)value
			      : UINT32_MAX;
}

void codestate_apply(struct codestate *state, const struct x86_insn *insn, uint64_t origin)
{
	const struct x86_operand *memory = insn->a.kind == X86_MEMORY ? &insn->a : &insn->b;
	bool has_fp = insn->b.kind == X86_REGISTER && insn->b.reg < X86_REGISTERS &&
		      state->is[insn->b.reg] == CODE_FP;
	int64_t n;

	/* Pops say themselves what they write. */
	if (insn->stores && insn->kind != X86_POP && codestate_place(state, memory, &n))
		codestate_store(state, n, memory->bytes,
				insn->kind == X86_MOVE && memory->bytes == 8 && has_fp);
	if (insn->flags)
		state->compared = UINT32_MAX;
	switch (insn->kind) {
	case X86_NOP:
		break;
	case X86_PUSH:
		codestate_push(state, insn);
		break;
	case X86_POP:
		codestate_pop(state, insn);
		break;
	case X86_CALL:
		codestate_forget(state, CODESTATE_CALLER_SAVED);
		state->compared = UINT32_MAX;
		state->entries = 0;
		break;
	case X86_MOVE:
		codestate_move(state, insn, origin);
		break;
	case X86_MOVE_SIGNED:
		codestate_move_signed(state, insn, origin);
		break;
	case X86_LEA:
		codestate_lea(state, insn, origin);
		break;
	case X86_ADD:
	case X86_SUB:
		codestate_add(state, insn);
		break;
	case X86_COMPARE:
		codestate_compare(state, insn);
		break;
	case X86_LEAVE:
		codestate_leave(state);
		break;
	default:
		codestate_forget(state, insn->writes);
		break;
	}
	codestate_drop_below_sp(state);
}

void codestate_branch(struct codestate *state, const struct x86_insn *insn, bool taken)
{
	uint32_t n = state->compared;

	codestate_forget(state, insn->writes); /* loop counts rcx */
	if (n >= INT32_MAX)
		return;
	if (insn->condition == (taken ? X86_BELOW_EQUAL : X86_ABOVE))
		state->entries = n + 1;
	else if (insn->condition == (taken ? X86_BELOW : X86_ABOVE_EQUAL))
		state->entries = n;
}

void codestate_push_number(struct codestate *state)
{
	struct x86_insn push = {.kind = X86_PUSH, .bytes = CODESTATE_SLOT};

	codestate_push(state, &push);
}

void codestate_lose(struct codestate *state, enum x86_register reg)
{
	codestate_forget(state, 1u << reg);
}

bool codestate_join(struct codestate *state, const struct codestate *other)
{
	bool agree =
	    state->is[X86_RSP] == other->is[X86_RSP] && state->n[X86_RSP] == other->n[X86_RSP];

	for (uint8_t i = 0; i < X86_REGISTERS; i++)
		if (state->is[i] != other->is[i] || state->n[i] != other->n[i])
			codestate_set(state, i, CODE_UNKNOWN, 0);
	if (state->fp_slot != other->fp_slot)
		state->fp_slot = 0;
	if (state->compared != other->compared)
		state->compared = UINT32_MAX;
	if (state->entries != other->entries)
		state->entries = 0;
	if (state->popped < other->popped)
		state->popped = other->popped;
	return agree;
}

bool codestate_same_sp(const struct codestate *a, const struct codestate *b)
{
	return a->is[X86_RSP] == b->is[X86_RSP] && a->n[X86_RSP] == b->n[X86_RSP];
}

bool codestate_same_frame(const struct codestate *a, const struct codestate *b)
{
	return codestate_same_sp(a, b) && a->is[X86_RBP] == b->is[X86_RBP] &&
	       a->n[X86_RBP] == b->n[X86_RBP] && a->fp_slot == b->fp_slot;
}

bool codestate_is_return(const struct codestate *state)
{
	return state->is[X86_RSP] == CODE_FRAME && state->n[X86_RSP] == -CODESTATE_SLOT;
}

bool codestate_knows_sp(const struct codestate *state)
{
	return state->is[X86_RSP] == CODE_FRAME;
}

enum code_value codestate_jump_table(const struct codestate *state, const struct x86_insn *insn,
				     uint64_t origin, int32_t *n)
{
	const struct x86_operand *a = &insn->a;
	int64_t table;

	if (a->kind == X86_REGISTER && a->reg < X86_REGISTERS) {
		*n = state->n[a->reg];
		return state->is[a->reg];
	}
	if (!codestate_table(state, a, 8, origin, &table) || table < -INT32_MAX ||
	    table > INT32_MAX)
		return CODE_UNKNOWN;
	*n = (int32_t)table;
	return CODE_POINTER;
}

/*
 * The frame pointer is the base where it is set up as one, or where sp is lost. A register that a
 * function does not keep serves while nothing was called, which is when a walk knows it.
 */
static uint8_t codestate_base(const struct codestate *state)
{
	bool has_sp = state->is[X86_RSP] == CODE_FRAME;

	if (state->is[X86_RBP] == CODE_FRAME &&
	    (!has_sp || (state->fp_slot && state->n[X86_RBP] == state->fp_slot)))
		return X86_RBP;
	if (has_sp)
		return X86_RSP;
	for (uint8_t i = 0; i < X86_REGISTERS; i++)
		if (state->is[i] == CODE_FRAME)
			return i;
	return X86_NO_REGISTER;
}

struct table_rule codestate_rule(const struct codestate *state)
{
	static const uint8_t registers[X86_REGISTERS] = {
	    RULE_RAX, RULE_RCX, RULE_RDX, RULE_RBX, RULE_SP,  RULE_FP,	RULE_RSI, RULE_RDI,
	    RULE_R8,  RULE_R9,	RULE_R10, RULE_R11, RULE_R12, RULE_R13, RULE_R14, RULE_R15};
	struct table_rule rule = {.cfa = RULE_REGISTER, .ra_offset = -CODESTATE_SLOT};
	uint8_t base = codestate_base(state);

	if (base == X86_NO_REGISTER)
		return (struct table_rule){.cfa = RULE_INVALID};
	rule.cfa_register = registers[base];
	rule.cfa_offset = -state->n[base];
	if (state->fp_slot && state->fp_slot >= INT16_MIN) {
		rule.fp = RULE_FP_CFA;
		rule.fp_offset = (int16_t)state->fp_slot;
	} else if (state->is[X86_RBP] != CODE_FP) {
		rule.fp = RULE_FP_UNDEFINED;
	}
	return rule;
}
