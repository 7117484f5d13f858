/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of the registers at one instruction of a function without call frame information,
 * what the next instruction makes of that, and the rule (shm/table.h) that follows from it.
 *
 * All is counted from the CFA, the caller's stack pointer: at the first instruction sp is CFA - 8.
 * A value that is not known for certain is CODE_UNKNOWN, and there is no way back from it but the
 * code's own (lea -40(%rbp),%rsp). Taken for granted is the calling convention, as call frame
 * information does too: a call gives back sp, and rbx, rbp, r12 to r15.
 */
#ifndef SCONCE_SYMBOLIZER_CODESTATE_H
#define SCONCE_SYMBOLIZER_CODESTATE_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/table.h"
#include "symbolizer/x86.h"

enum code_value {
	CODE_UNKNOWN = 0,
	CODE_FRAME,   /* CFA + n */
	CODE_FP,      /* the caller's frame pointer */
	CODE_ADDRESS, /* the address codestate.origin + n; so are the tables below */
	CODE_ENTRY,   /* a 4-byte entry of the table at n, which is relative to the table */
	CODE_TARGET,  /* what such an entry means */
	CODE_POINTER, /* an 8-byte entry of the table at n */
};

/* More went from the stack than the function has put there. */
enum code_popped {
	CODE_POPPED_NOTHING,
	CODE_POPPED_RETURN, /* the return address */
	CODE_POPPED_MORE,   /* and what lies above: it was not called, or not as functions are */
};

struct codestate {
	int32_t n[X86_REGISTERS];
	uint8_t is[X86_REGISTERS]; /* enum code_value */
	int32_t fp_slot;	   /* the caller's frame pointer is at CFA + this; 0 = nowhere */
	uint32_t compared;	   /* a register was compared with this */
	uint32_t entries;	   /* the last check of a range allows so many values; 0 = none */
	uint8_t popped;		   /* enum code_popped */
};

struct codestate codestate_start(void);

/*
 * The state behind an instruction that does not transfer control, or behind a call that returns.
 * origin: what addresses are counted from, so that they fit.
 */
void codestate_apply(struct codestate *state, const struct x86_insn *insn, uint64_t origin);
/* Behind a conditional branch, taken or not. */
void codestate_branch(struct codestate *state, const struct x86_insn *insn, bool taken);

/* Behind a call to the next instruction, which is a push. */
void codestate_push_number(struct codestate *state);
/* A register is not what it was. */
void codestate_lose(struct codestate *state, enum x86_register reg);

/* Keep what both know. False: they disagree about sp, of which then nothing is known. */
bool codestate_join(struct codestate *state, const struct codestate *other);
/* Whether both say the same of the frame. */
bool codestate_same_sp(const struct codestate *a, const struct codestate *b);
bool codestate_same_frame(const struct codestate *a, const struct codestate *b);

/* As it has to be at a return, or at a jump to another function. */
bool codestate_is_return(const struct codestate *state);
bool codestate_knows_sp(const struct codestate *state);

/* Where an indirect jump goes by a table: enum code_value, and the table's n. */
enum code_value codestate_jump_table(const struct codestate *state, const struct x86_insn *insn,
				     uint64_t origin, int32_t *n);

/* RULE_INVALID when the CFA is not known. */
struct table_rule codestate_rule(const struct codestate *state);

#endif
