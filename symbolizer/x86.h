/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One machine instruction of x86-64: how long it is, where it may go on, which registers it writes,
 * and, of the few that move stack or frame pointers and addresses about, what they do.
 *
 * The decoding is libZydis's, which allocates nothing and reads only the bytes it is given; nobody
 * else includes its headers. What is not one of the kinds below is X86_OTHER, of which `writes`
 * says all that a follower of registers needs.
 */
#ifndef SCONCE_SYMBOLIZER_X86_H
#define SCONCE_SYMBOLIZER_X86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define X86_INSN_BYTES_MAX 15

/* In the order of the machine. */
enum x86_register {
	X86_RAX,
	X86_RCX,
	X86_RDX,
	X86_RBX,
	X86_RSP,
	X86_RBP,
	X86_RSI,
	X86_RDI,
	X86_R8,
	X86_R11 = 11,
	X86_REGISTERS = 16,
	X86_NO_REGISTER = 0xff,
};

enum x86_kind {
	X86_OTHER,
	X86_NOP,
	X86_PUSH, /* `bytes` on the stack, of operand a where there is one */
	X86_POP,
	X86_CALL,	 /* a: where to, unless has_target */
	X86_JUMP,	 /* likewise */
	X86_BRANCH,	 /* conditional; always has_target */
	X86_RETURN,	 /* and `bytes` more than the return address go from the stack */
	X86_HALT,	 /* no instruction follows: hlt, ud2, int3 */
	X86_MOVE,	 /* a = b */
	X86_MOVE_SIGNED, /* a = b, sign-extended from 32 bits */
	X86_LEA,
	X86_ADD, /* a += b */
	X86_SUB,
	X86_COMPARE,
	X86_LEAVE,
};

enum x86_condition { X86_CONDITION_OTHER, X86_ABOVE, X86_ABOVE_EQUAL, X86_BELOW, X86_BELOW_EQUAL };

enum x86_operand_kind { X86_NONE, X86_REGISTER, X86_MEMORY, X86_IMMEDIATE };

struct x86_operand {
	uint8_t kind;
	uint8_t bytes; /* its width; 0: more than 255 */
	uint8_t reg;   /* X86_REGISTER: other than of general purpose: X86_NO_REGISTER */
	uint8_t base, index, scale;
	bool segment; /* relative to fs or gs */
	/* Of memory: the address, or what is added to base and index; rip is added in already. */
	int64_t number;
};

struct x86_insn {
	uint8_t kind, condition;
	uint8_t length;
	bool has_target;
	uint16_t bytes;
	uint16_t writes; /* a bit for each register of which any part may be written */
	uint64_t target;
	struct x86_operand a, b; /* the first two that are written out in assembly */
	bool stores;		 /* the operand in memory (a, or b) may be written */
	bool flags;		 /* and so may the flags */
};

/* The instruction at these bytes, which stand at vaddr. False: they are none. */
bool x86_decode(const uint8_t *code, size_t n, uint64_t vaddr, struct x86_insn *insn);

#endif
