/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function, instruction by instruction in the order of its bytes: what its registers hold is
 * followed through moves and additions, and where ways meet only what both agree on is kept. Loops
 * are not looked for: accessors have none.
 */
#include <elf.h>
#include <string.h>

#include "symbolizer/elfparts.h"
#include "symbolizer/lang/facts.h"
#include "symbolizer/x86.h"

#define WAYS_MAX 16

/* What the registers hold; a function may change these in a call: rax, rcx, rdx, rsi, rdi, r8 to
 * r11. */
#define CALL_CLOBBERS 0x0fc7u

struct code_state {
	struct facts_value regs[X86_REGISTERS];
};

struct code {
	struct facts *facts;
	struct facts_step *steps;
	uint32_t n, max;
	struct code_state now;
	bool dead; /* nothing comes here but by a jump */
	struct {
		uint64_t target;
		struct code_state state;
	} ways[WAYS_MAX];
	uint32_t ways_n;
	uint64_t start, end,
	    pair; /* pair: what rdi points to, made by the form that asks for a variable */
};

static const struct facts_value unknown = {.kind = FACTS_UNKNOWN};

static struct facts_value code_constant(int64_t number)
{
	return (struct facts_value){.kind = FACTS_CONSTANT, .number = number};
}

static bool code_same(const struct facts_value *a, const struct facts_value *b)
{
	return a->kind == b->kind && a->of == b->of && a->number == b->number;
}

static struct facts_step *code_push(struct code *c, enum facts_form form, struct facts_value at)
{
	struct facts_step *step;

	if (c->n == c->max)
		return NULL;
	step = &c->steps[c->n++];
	*step = (struct facts_step){.form = form, .at = at, .into = X86_NO_REGISTER};
	return step;
}

/* Is it what was loaded from a fixed address? Then that, too. */
static bool code_is_slot(const struct code *c, const struct facts_value *v, uint64_t *slot)
{
	if (v->kind != FACTS_LOADED || v->number || v->of >= c->n ||
	    c->steps[v->of].at.kind != FACTS_CONSTANT)
		return false;
	*slot = (uint64_t)c->steps[v->of].at.number;
	return true;
}

/* The sum of the thread pointer (+ number) and a value. */
static struct facts_value code_thread(const struct code *c, const struct facts_value *v,
				      int64_t number)
{
	uint64_t slot;

	if (v->kind == FACTS_CONSTANT)
		return (struct facts_value){.kind = FACTS_THREAD, .number = v->number + number};
	if (code_is_slot(c, v, &slot))
		return (struct facts_value){.kind = FACTS_THREAD_GOT, .of = slot, .number = number};
	return unknown;
}

static struct facts_value code_place(const struct code *c, const struct x86_operand *o)
{
	struct facts_value v;

	if (o->index != X86_NO_REGISTER || o->base == X86_RSP)
		return unknown;
	v = o->base == X86_NO_REGISTER ? code_constant(0) : c->now.regs[o->base];
	if (o->segment)
		return code_thread(c, &v, o->number);
	if (v.kind != FACTS_UNKNOWN)
		v.number += o->number;
	return v;
}

/* What a variable of the file holds that does not change any more, when that is an address. */
static bool code_fixed(struct code *c, const struct facts_value *at, uint64_t *pointer)
{
	uint64_t slot = (uint64_t)at->number;

	if (at->kind != FACTS_CONSTANT)
		return false;
	switch (facts_relocation_type(c->facts, slot)) {
	case R_X86_64_GLOB_DAT:
		break;
	case R_X86_64_RELATIVE:
	case R_X86_64_64:
		if (slot < c->facts->constant || slot >= c->facts->constant_end)
			return false;
		break;
	default:
		return false;
	}
	return facts_pointer(c->facts, slot, pointer) == 0;
}

/* An operand in memory: the value that is read; a step for the access, unless it is a slot of the
 * GOT. */
static struct facts_value code_access(struct code *c, const struct x86_insn *insn,
				      const struct x86_operand *o)
{
	struct facts_value at = code_place(c, o);
	struct facts_step *step;
	uint64_t pointer;

	if (at.kind == FACTS_UNKNOWN)
		return unknown;
	if (at.kind == FACTS_THREAD && at.number == 0 && o->bytes == 8)
		return at; /* the thread pointer points to itself */
	if (o->bytes == 8 && !insn->stores && code_fixed(c, &at, &pointer))
		return code_constant((int64_t)pointer);
	step = code_push(c, insn->stores ? FACTS_STORE : FACTS_LOAD, at);
	if (!step)
		return unknown;
	step->bytes = o->bytes;
	if (insn->kind == X86_COMPARE && insn->b.kind == X86_IMMEDIATE)
		step->compared = insn->b.number;
	if (o == &insn->b && insn->a.kind == X86_REGISTER && !insn->stores &&
	    insn->kind != X86_COMPARE)
		step->into = insn->a.reg;
	return (struct facts_value){.kind = FACTS_LOADED, .of = c->n - 1};
}

static bool code_is_data(struct code *c, const struct facts_value *v)
{
	struct elffile_segment segment;
	uint64_t offset;

	return v->kind == FACTS_CONSTANT &&
	       elfparts_loaded(c->facts->elf, (uint64_t)v->number, &segment) &&
	       !elfparts_code(c->facts->elf, (uint64_t)v->number, &offset);
}

static struct facts_value code_lea(struct code *c, const struct x86_insn *insn)
{
	struct facts_value v = code_place(c, &insn->b);

	if (v.kind == FACTS_CONSTANT || v.kind >= FACTS_THREAD)
		code_push(c, FACTS_ADDRESS, v);
	return v;
}

/* `mov $address,%edi` of programs that are not moved. */
static struct facts_value code_immediate(struct code *c, const struct x86_insn *insn)
{
	struct facts_value v =
	    code_constant(insn->a.bytes == 4 ? (uint32_t)insn->b.number : insn->b.number);

	if (code_is_data(c, &v))
		code_push(c, FACTS_ADDRESS, v);
	return v;
}

static struct facts_value code_add(struct code *c, const struct x86_insn *insn,
				   const struct facts_value *b)
{
	struct facts_value a = c->now.regs[insn->a.reg], sum = unknown;

	if (insn->b.kind == X86_IMMEDIATE && a.kind != FACTS_UNKNOWN) {
		a.number += insn->kind == X86_ADD ? insn->b.number : -insn->b.number;
		return a;
	}
	if (insn->kind == X86_ADD && a.kind == FACTS_THREAD)
		sum = code_thread(c, b, a.number);
	else if (insn->kind == X86_ADD && b->kind == FACTS_THREAD)
		sum = code_thread(c, &a, b->number);
	if (sum.kind != FACTS_UNKNOWN)
		code_push(c, FACTS_ADDRESS, sum);
	return sum;
}

/* What the instruction leaves in operand a, a register. */
static struct facts_value code_result(struct code *c, const struct x86_insn *insn,
				      const struct facts_value *b)
{
	switch (insn->kind) {
	case X86_MOVE:
	case X86_MOVE_SIGNED:
		if (insn->b.kind == X86_IMMEDIATE)
			return code_immediate(c, insn);
		return *b;
	case X86_LEA:
		return code_lea(c, insn);
	case X86_ADD:
	case X86_SUB:
		return code_add(c, insn, b);
	}
	return unknown;
}

static void code_forget(struct code *c, uint16_t registers)
{
	for (int i = 0; i < X86_REGISTERS; i++)
		if (registers & 1u << i)
			c->now.regs[i] = unknown;
}

static void code_call(struct code *c, const struct x86_insn *insn)
{
	struct facts_value to = unknown, at = {.kind = FACTS_LOADED};
	struct facts_step *step;

	if (insn->kind == X86_CALL && c->pair) {
		at = (struct facts_value){.kind = FACTS_THREAD_DTV, .of = c->pair};
		code_push(c, FACTS_ADDRESS, at);
		code_forget(c, CALL_CLOBBERS);
		c->now.regs[X86_RAX] = at;
		return;
	}
	/* `lea slot(%rip),%rax; call *(%rax)` leaves in rax how far the variable is from the thread
	 * pointer. */
	if (insn->a.kind == X86_MEMORY && insn->a.base == X86_RAX &&
	    c->now.regs[X86_RAX].kind == FACTS_CONSTANT &&
	    facts_relocation_type(c->facts, (uint64_t)c->now.regs[X86_RAX].number) ==
		R_X86_64_TLSDESC) {
		code_push(c, FACTS_LOAD, code_constant(c->now.regs[X86_RAX].number + 8));
		at.of = c->n - 1;
		c->now.regs[X86_RAX] = at;
		return;
	}
	if (insn->has_target)
		to = code_constant((int64_t)insn->target);
	step = code_push(c, FACTS_CALL, to);
	if (step)
		step->rdi = c->now.regs[X86_RDI];
	if (insn->kind == X86_CALL)
		code_forget(c, CALL_CLOBBERS);
}

static void code_jump(struct code *c, const struct x86_insn *insn, uint64_t at)
{
	bool inside = insn->has_target && insn->target >= c->start && insn->target < c->end;

	if (inside && insn->target > at && c->ways_n < WAYS_MAX) {
		c->ways[c->ways_n].target = insn->target;
		c->ways[c->ways_n++].state = c->now;
	}
	if (insn->kind == X86_BRANCH)
		return;
	if (!inside)
		code_call(c, insn);
	c->dead = true;
}

/* Ways that meet here. */
static void code_meet(struct code *c, uint64_t at)
{
	for (uint32_t w = 0; w < c->ways_n; w++) {
		if (c->ways[w].target != at)
			continue;
		for (int i = 0; i < X86_REGISTERS && !c->dead; i++)
			if (!code_same(&c->now.regs[i], &c->ways[w].state.regs[i]))
				c->now.regs[i] = unknown;
		if (c->dead)
			c->now = c->ways[w].state;
		c->dead = false;
	}
	if (c->dead)
		code_forget(c, 0xffff);
}

/* `data16 lea pair(%rip),%rdi`, before a call of __tls_get_addr. */
static uint64_t code_pair(struct code *c, const struct x86_insn *insn, const uint8_t *bytes)
{
	uint64_t pair = (uint64_t)insn->b.number;

	if (insn->kind != X86_LEA || bytes[0] != 0x66 || insn->a.reg != X86_RDI ||
	    insn->b.base != X86_NO_REGISTER || insn->b.index != X86_NO_REGISTER)
		return 0;
	return facts_relocation_type(c->facts, pair) == R_X86_64_DTPMOD64 ? pair : 0;
}

static void code_plain(struct code *c, const struct x86_insn *insn)
{
	struct facts_value b = unknown, result = unknown;
	bool lea = insn->kind == X86_LEA, into = insn->a.kind == X86_REGISTER &&
						 insn->a.reg != X86_NO_REGISTER &&
						 insn->writes & 1u << insn->a.reg;

	if (insn->b.kind == X86_REGISTER && insn->b.reg != X86_NO_REGISTER)
		b = c->now.regs[insn->b.reg];
	if (insn->a.kind == X86_MEMORY)
		code_access(c, insn, &insn->a);
	else if (insn->b.kind == X86_MEMORY && !lea)
		b = code_access(c, insn, &insn->b);
	if (into)
		result = code_result(c, insn, &b);
	code_forget(c, insn->writes);
	if (into && insn->a.bytes >= 4)
		c->now.regs[insn->a.reg] = result;
}

static void code_step(struct code *c, const struct x86_insn *insn, uint64_t at,
		      const uint8_t *bytes)
{
	uint64_t pair = code_pair(c, insn, bytes);

	code_meet(c, at);
	switch (insn->kind) {
	case X86_NOP:
		break;
	case X86_CALL:
		code_call(c, insn);
		break;
	case X86_JUMP:
	case X86_BRANCH:
		code_jump(c, insn, at);
		break;
	case X86_RETURN:
	case X86_HALT:
		c->dead = true;
		break;
	default:
		code_plain(c, insn);
	}
	c->pair = pair;
}

uint32_t facts_trace(struct facts *facts, uint64_t vaddr, struct facts_step *steps, uint32_t max)
{
	static const uint8_t arguments[] = {X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_R8, X86_R8 + 1};
	uint64_t at = vaddr, size;
	struct code c = {.facts = facts, .steps = steps, .max = max};
	struct x86_insn insn;
	const uint8_t *bytes;

	if (facts_function(facts, vaddr, &c.start, &c.end))
		c.end = vaddr + FACTS_INSNS_MAX;
	c.start = vaddr;
	size = c.end - vaddr;
	if (size > FACTS_INSNS_MAX * X86_INSN_BYTES_MAX)
		size = FACTS_INSNS_MAX * X86_INSN_BYTES_MAX;
	bytes = elfparts_data(facts->elf, vaddr, size);
	for (size_t i = 0; i < sizeof(arguments); i++)
		c.now.regs[arguments[i]] =
		    (struct facts_value){.kind = FACTS_ARGUMENT, .of = arguments[i]};
	for (uint32_t i = 0; bytes && i < FACTS_INSNS_MAX && c.n < max; i++, at += insn.length) {
		uint64_t done = at - vaddr;

		if (done >= size || !x86_decode(bytes + done, size - done, at, &insn))
			break;
		code_step(&c, &insn, at, bytes + done);
	}
	return c.n;
}
