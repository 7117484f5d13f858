/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/gotable.h"

#include <errno.h>
#include <string.h>

#include "symbolizer/cfifill.h"
#include "symbolizer/elfparts.h"

#define GOTABLE_CODE_MAX  (128u << 20)
#define GOTABLE_MOVED_MAX (1 << 30)
#define GOTABLE_SCAN_MAX  1024

/* What a run knows of the frame of its function. */
struct gotable_frame {
	uint64_t saved;	   /* from here on the caller's frame pointer is at CFA - 16; UINT64_MAX */
	uint64_t set;	   /* from here on the register is CFA - 16; only where it is needed */
	uint64_t switched; /* from here on sp may be that of another stack */
	struct table_rule away; /* what holds then, where the frame pointer does not help */
};

static const struct table_rule invalid = {.cfa = RULE_INVALID};
static const struct table_rule stop = {.cfa = RULE_STOP};
/* Where a goroutine, a thread or the program begins, in releases that do not mark them. */
static const char *const tops[] = {
    "runtime.goexit", "runtime.mstart", "runtime.rt0_go", "_rt0_amd64", "_rt0_amd64_linux",
};
/* What runs on the stack that they write is the first of it; Go's own traces end there too. */
static const char *const starts[] = {"runtime.morestack", "runtime.mcall", "runtime.clone"};
/* Functions that write the stack pointer, likewise. */
static const char *const switches[] = {"runtime.systemstack", "runtime.asmcgocall", "runtime.mcall",
				       "runtime.cgocallback"};

static bool gotable_among(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* All functions lie between the first and the last one's end, or their code is not looked at. */
static void gotable_read_code(struct gotable *go, struct elffile *file)
{
	struct pclntab_function first, last;
	uint64_t offset, end;

	if (!pclntab_function(&go->tab, 0, &first) ||
	    !pclntab_function(&go->tab, go->tab.functions - 1, &last) || last.end <= first.start ||
	    last.end - first.start > GOTABLE_CODE_MAX ||
	    !elfparts_code(file, first.start, &offset) ||
	    !elfparts_code(file, last.end - 1, &end) || end - offset != last.end - 1 - first.start)
		return;
	go->code = elffile_bytes(file, offset, last.end - first.start);
	go->code_start = first.start;
	go->code_bytes = go->code ? last.end - first.start : 0;
}

int gotable_open(struct gotable *go, struct elffile *file)
{
	int err;

	memset(go, 0, sizeof(*go));
	err = pclntab_open(&go->tab, file);
	if (err == 0 && go->tab.functions == 0)
		err = -ENOENT;
	if (err == 0)
		gotable_read_code(go, file);
	return err;
}

/* The code at an address; NULL when n bytes are not there. */
static const uint8_t *gotable_code(const struct gotable *go, uint64_t vaddr, uint64_t n)
{
	uint64_t at = vaddr - go->code_start;

	if (vaddr < go->code_start || at > go->code_bytes || go->code_bytes - at < n)
		return NULL;
	return go->code + at;
}

bool gotable_is_sigreturn(const struct gotable *go, const struct pclntab_function *function)
{
	const uint8_t *code = gotable_code(go, function->start, CFIFILL_SIGRETURN_BYTES);

	return code && cfifill_is_sigreturn(code);
}

/* The bytes of `mov %rbp,N(%rsp)` (what 0x89) or `lea N(%rsp),%rbp` (0x8d) at an address; else 0.
 */
static unsigned gotable_slot(const struct gotable *go, uint64_t vaddr, uint8_t what, int64_t slot)
{
	const uint8_t *code = gotable_code(go, vaddr, 8);
	int32_t wide;

	if (!code || code[0] != 0x48 || code[1] != what || code[3] != 0x24)
		return 0;
	memcpy(&wide, code + 4, sizeof(wide));
	if (code[2] == 0x2c && slot == 0)
		return 4;
	if (code[2] == 0x6c && (int8_t)code[4] == slot)
		return 5;
	return code[2] == 0xac && wide == slot ? 8 : 0;
}

/* The stack pointer moves for the first time. Since Go 1.21 by push %rbp; mov %rsp,%rbp. */
static void gotable_enter(const struct gotable *go, const struct pclntab_steps *steps,
			  struct gotable_frame *frame)
{
	const uint8_t *code = gotable_code(go, steps->from - 1, 4);
	unsigned bytes;

	if (code && code[0] == 0x55 && steps->moved == 8) {
		frame->saved = steps->from;
		if (!memcmp(code + 1, "\x48\x89\xe5", 3))
			frame->set = steps->from + 3;
		return;
	}
	bytes = gotable_slot(go, steps->from, 0x89, steps->moved - 8);
	if (!bytes)
		return;
	frame->saved = steps->from + bytes;
	bytes = gotable_slot(go, frame->saved, 0x8d, steps->moved - 8);
	if (bytes)
		frame->set = frame->saved + bytes;
}

/* Behind the first mov N(%reg),%rsp or mov %reg,%rsp; the start when there is none. */
static uint64_t gotable_find_switch(const struct gotable *go,
				    const struct pclntab_function *function)
{
	uint64_t n = function->end - function->start;
	const uint8_t *code;

	n = n < GOTABLE_SCAN_MAX ? n : GOTABLE_SCAN_MAX;
	code = gotable_code(go, function->start, n);
	for (uint64_t i = 0; code && i + 3 < n; i++)
		if ((code[i] == 0x48 || code[i] == 0x49) && code[i + 1] == 0x8b &&
		    (code[i + 2] & 0xf8) == 0x60)
			return function->start + i + 4;
		else if ((code[i] == 0x48 || code[i] == 0x4c) && code[i + 1] == 0x89 &&
			 (code[i + 2] & 0xc7) == 0xc4)
			return function->start + i + 3;
	return function->start;
}

static struct table_rule gotable_rule(const struct gotable_frame *frame, uint64_t at, int64_t moved)
{
	struct table_rule rule = {.cfa = RULE_REGISTER, .ra_offset = -8};

	if (at >= frame->switched)
		return frame->away;
	if (moved < 0 || moved > GOTABLE_MOVED_MAX)
		return invalid;
	rule.cfa_offset = (int32_t)moved + 8;
	if (moved >= 8 && at >= frame->saved) {
		rule.fp = RULE_FP_CFA;
		rule.fp_offset = -16;
		if (at >= frame->set) {
			rule.cfa = RULE_SWITCH;
			rule.cfa_register = RULE_FP;
			rule.cfa_offset = 16;
		}
	}
	return rule;
}

/* Where the return address was popped: by pop %r12, before the child of vfork() writes over it. */
static bool gotable_popped(const struct gotable *go, const struct pclntab_steps *steps)
{
	const uint8_t *code = gotable_code(go, steps->from - 2, 2);

	return steps->moved == -8 && code && code[0] == 0x41 && code[1] == 0x5c;
}

static void gotable_step(const struct gotable *go, const struct gotable_frame *frame,
			 const struct pclntab_steps *steps, gotable_fn *fn, void *arg)
{
	static const struct table_rule popped = {
	    .cfa = RULE_REGISTER, .ra = RULE_RA_REGISTER, .ra_register = RULE_R12};
	const uint64_t edges[] = {frame->saved, frame->set, frame->switched};
	struct table_rule rule = gotable_rule(frame, steps->from, steps->moved);

	fn(arg, steps->from, gotable_popped(go, steps) ? &popped : &rule);
	/* saved <= set, and `switched` is not used together with `set`. */
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		if (edges[i] > steps->from && edges[i] < steps->to) {
			rule = gotable_rule(frame, edges[i], steps->moved);
			fn(arg, edges[i], &rule);
		}
}

static void gotable_find_frame(const struct gotable *go, const struct pclntab_function *function,
			       struct gotable_frame *frame)
{
	struct pclntab_steps steps;

	*frame =
	    (struct gotable_frame){.saved = UINT64_MAX, .set = UINT64_MAX, .switched = UINT64_MAX};
	pclntab_begin(&go->tab, function, &steps);
	while (pclntab_next(&steps))
		if (steps.moved > 0) {
			gotable_enter(go, &steps, frame);
			break;
		}
	if (!(function->flags & PCLNTAB_WRITES_SP) &&
	    !gotable_among(function->name, switches, sizeof(switches) / sizeof(switches[0]))) {
		frame->set = UINT64_MAX;
		return;
	}
	if (frame->set != UINT64_MAX)
		return;
	frame->switched = gotable_find_switch(go, function);
	frame->saved = UINT64_MAX;
	if (gotable_among(function->name, starts, sizeof(starts) / sizeof(starts[0])))
		frame->away = stop;
}

/*
 * runtime.asmcgocall from Go 1.11 to 1.20 has no frame, and does not tell how it moves the stack
 * pointer: what holds behind each of the instructions that matter. False: it is another one.
 */
static bool gotable_noted(const struct gotable *go, const struct pclntab_function *function,
			  gotable_fn *fn, void *arg)
{
	static const struct table_rule here = {
	    .cfa = RULE_REGISTER, .cfa_offset = 8, .ra_offset = -8};
	static const struct table_rule noted = {
	    .cfa = RULE_NOTED, .cfa_register = RULE_SP, .cfa_offset = 0x28, .ra_offset = -8};
	static const struct {
		const char *code;
		size_t n;
		const struct table_rule *rule;
	} steps[] = {
	    {"\x48\x8b\x66\x38", 4, &invalid},	 /* mov 0x38(%rsi),%rsp */
	    {"\x48\x83\xec\x40", 4, &invalid},	 /* sub $0x40,%rsp */
	    {"\x48\x89\x7c\x24\x28", 5, &noted}, /* mov %rdi,0x28(%rsp), behind 0x30 */
	    {"\x48\x89\x54\x24\x28", 5, &noted}, /* mov %rdx,0x28(%rsp), likewise */
	    {"\x48\x89\xf4", 3, &here},		 /* mov %rsi,%rsp */
	};
	uint64_t n = function->end - function->start;
	const uint8_t *code = gotable_code(go, function->start, n);

	if (strcmp(function->name, "runtime.asmcgocall") || !code || n > GOTABLE_SCAN_MAX ||
	    code[0] == 0x55 || /* push %rbp: it keeps the frame pointer */
	    !memmem(code, n, steps[2].code, steps[2].n) ||
	    !memmem(code, n, steps[3].code, steps[3].n))
		return false;
	fn(arg, function->start, &here);
	for (uint64_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++)
			if (n - i > steps[k].n && !memcmp(code + i, steps[k].code, steps[k].n))
				fn(arg, function->start + i + steps[k].n, steps[k].rule);
	return true;
}

static bool gotable_is_top(const struct pclntab_function *function)
{
	/* The kernel called sigtramp; before it is what the signal interrupted. */
	if (!strcmp(function->name, "runtime.sigtramp"))
		return false;
	return (function->flags & PCLNTAB_TOP) ||
	       gotable_among(function->name, tops, sizeof(tops) / sizeof(tops[0]));
}

void gotable_run(const struct gotable *go, const struct pclntab_function *function, gotable_fn *fn,
		 void *arg)
{
	/* sp at the system call is where the kernel put struct ucontext. */
	static const struct table_rule signal_rule = {.cfa = RULE_SIGNAL, .cfa_offset = 40};
	struct gotable_frame frame;
	struct pclntab_steps steps;

	if (gotable_is_sigreturn(go, function)) {
		fn(arg, function->start, &signal_rule);
		return;
	}
	if (gotable_is_top(function)) {
		fn(arg, function->start, &stop);
		return;
	}
	if (gotable_noted(go, function, fn, arg))
		return;
	gotable_find_frame(go, function, &frame);
	pclntab_begin(&go->tab, function, &steps);
	while (pclntab_next(&steps))
		gotable_step(go, &frame, &steps, fn, arg);
}
