/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/ehreturn.h"

#include <string.h>

#define EHRETURN_CODE_MAX     4096
#define EHRETURN_PROLOGUE_MAX 160 /* to the first call; 68 to 100 bytes in libgcc 12 */
/* struct _Unwind_Context: 18 registers and the CFA stand before it (libgcc/unwind-dw2.c since
 * GCC 4.4). */
#define CONTEXT_RA   0x98
#define CALL_BYTES   5
#define CALL_OPCODE  0xe8
#define MOVE_BYTES   3
#define FRAME_OFFSET 16 /* of the CFA, from rbp */

/*
 * Its note has rdx and rax saved side by side, which no other function does: DW_CFA_offset of
 * register 1 and 0, with two factored offsets that follow one another.
 */
int ehreturn_may_be(const struct cfi_fde *fde)
{
	const uint8_t *p = fde->program;

	for (size_t i = 0; i + 4 <= fde->program_bytes; i++)
		if ((p[i] == 0x81 && p[i + 2] == 0x80 && p[i + 1] + 1 == p[i + 3]) ||
		    (p[i] == 0x80 && p[i + 2] == 0x81 && p[i + 3] + 1 == p[i + 1]))
			return 1;
	return 0;
}

/* Where `move` and a call behind it stand, the first one from `at` on; n when there is none. */
static size_t ehreturn_find_call(const uint8_t *code, size_t n, size_t at, const uint8_t *move)
{
	while (at + MOVE_BYTES + CALL_BYTES <= n &&
	       (memcmp(code + at, move, MOVE_BYTES) || code[at + MOVE_BYTES] != CALL_OPCODE))
		at++;
	return at + MOVE_BYTES + CALL_BYTES <= n ? at + MOVE_BYTES : n;
}

/* lea disp32(%rbp),%reg and mov %reg,%rdi: the context, as the first argument. False: not there. */
static int ehreturn_find_context(const uint8_t *code, size_t n, uint8_t *move, int32_t *disp)
{
	for (size_t i = 0; i + 7 <= n; i++) {
		uint8_t rex = code[i], reg = (code[i + 2] >> 3) & 7;

		if ((rex != 0x48 && rex != 0x4c) || code[i + 1] != 0x8d ||
		    (code[i + 2] & 0xc7) != 0x85)
			continue;
		move[0] = rex;
		move[1] = 0x89;
		move[2] = (uint8_t)(0xc7 | reg << 3);
		memcpy(disp, code + i + 3, sizeof(*disp));
		if (memmem(code, n, move, MOVE_BYTES))
			return 1;
	}
	return 0;
}

void ehreturn_find(const struct cfi_fde *fde, const uint8_t *code, size_t n, struct ehreturn *found)
{
	/* mov 0x8(%rbp),%rdx: the return address as an argument of uw_init_context_1() */
	static const uint8_t argument[] = {0x48, 0x8b, 0x55, 0x08};
	/* mov 0x0(%rbp),%rbp; mov %rcx,%rsp */
	static const uint8_t leave[] = {0x48, 0x8b, 0x6d, 0x00, 0x48, 0x89, 0xcc};
	const uint8_t *begin, *end, *first, *call, *next;
	uint8_t move[MOVE_BYTES];
	int32_t disp;

	memset(found, 0, sizeof(*found));
	if (n > EHRETURN_CODE_MAX)
		return;
	begin = memmem(code, n, argument, sizeof(argument));
	end = memmem(code, n, leave, sizeof(leave));
	if (!begin || !end || end < begin)
		return;
	/* The call stands right behind its arguments, in any order. */
	first = memchr(begin, CALL_OPCODE, (size_t)(end - begin));
	if (!first || first - code > EHRETURN_PROLOGUE_MAX ||
	    !ehreturn_find_context(code, (size_t)(first - code), move, &disp))
		return;
	disp += CONTEXT_RA - FRAME_OFFSET;
	if (disp >= 0 || disp < INT16_MIN)
		return;
	/* The last function that is given the same context overwrites what was saved. */
	call = NULL;
	for (size_t at = (size_t)(first - code); at < (size_t)(end - code);) {
		at = ehreturn_find_call(code, (size_t)(end - code), at, move);
		if (at < (size_t)(end - code))
			call = code + at;
	}
	next = first + CALL_BYTES;
	if (!call || call < next)
		return;
	found->edges[0] = fde->start + (uint64_t)(next - code);
	/* Looked up one byte before its end, by the function that was called. */
	found->edges[1] = fde->start + (uint64_t)(call + CALL_BYTES - 1 - code);
	found->edges[2] = fde->start + (uint64_t)(end + 4 - code);
	found->ra_offset = (int16_t)disp;
}

void ehreturn_correct(const struct ehreturn *found, uint64_t vaddr, struct table_rule *rule)
{
	if (vaddr < found->edges[0] || vaddr >= found->edges[2] || rule->cfa != RULE_REGISTER ||
	    rule->cfa_register != RULE_FP || rule->cfa_offset != FRAME_OFFSET ||
	    rule->ra != RULE_RA_CFA || rule->ra_offset != -8)
		return;
	rule->ra_offset = found->ra_offset;
	if (vaddr < found->edges[1])
		return;
	rule->fp = RULE_FP_UNDEFINED;
	rule->rbx = RULE_RBX_UNKNOWN;
}
