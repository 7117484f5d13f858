/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules from machine code made by hand: each construct that is understood, and each that must not
 * be; then random bytes, and the limits.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "symbolizer/codeconfirm.h"
#include "symbolizer/codeflow.h"
#include "symbolizer/coderows.h"
#include "symbolizer/codetry.h"
#include "tests/symbolizer/tables.h"

#define VADDR	      0x100000
#define CODE_MAX      256
#define RANDOM_ROUNDS 3000

struct subject {
	struct codegraph_area area;
	struct codegraph graph;
	struct table_rule rules[CODE_MAX + 1]; /* for each byte */
	uint64_t at;
};

static const uint8_t *data(void *arg, uint64_t vaddr, uint64_t bytes)
{
	const struct subject *s = arg;
	uint64_t at = vaddr - VADDR;

	return at < s->area.n && bytes <= s->area.n - at ? s->area.bytes + at : NULL;
}

static void keep_row(void *arg, uint64_t vaddr, const struct table_rule *rule)
{
	struct subject *s = arg;

	assert_true(vaddr >= s->at && vaddr - VADDR < s->area.n);
	for (s->at = vaddr; vaddr - VADDR < s->area.n && vaddr - VADDR < CODE_MAX; vaddr++)
		s->rules[vaddr - VADDR] = *rule;
}

static void begin(struct subject *s, const char *code, size_t n)
{
	memset(s, 0, sizeof(*s));
	s->area =
	    (struct codegraph_area){.vaddr = VADDR, .bytes = (const uint8_t *)code, .n = (uint32_t)n};
	assert_int_equal(codegraph_open(&s->graph, &s->area, 1, data, s), 0);
}

static void finish(struct subject *s)
{
	codeflow_run(&s->graph);
	codetry_all(&s->graph);
	codeconfirm_all(&s->graph);
	coderows_area(&s->graph, 0, keep_row, s);
}

struct code_case {
	const char *name, *code;
	size_t bytes;
	struct {
		uint32_t at;
		const char *rule; /* NULL: the end */
	} want[8];
	bool entry;	 /* the code is reached, not called */
	uint32_t second; /* another place that is called; 0 = none */
};
#define CODE(text) text, sizeof(text) - 1
#define START	   "sp+8 fp= ra@cfa-8"

/* clang-format off */
static const struct code_case cases[] = {
    /* 0: push %rbp; 1: push %rbx; 2: sub $24,%rsp; 3: lea 24(%rsp),%rsp; 4: pop %rbx; 5: pop
     * %rbp; 6: ret */
    {"pushes and pops",
     CODE("\x55\x53\x48\x83\xec\x18\x48\x8d\x64\x24\x18\x5b\x5d\xc3"),
     .want = {{0, START}, {1, "sp+16 fp@cfa-16 ra@cfa-8"}, {2, "sp+24 fp@cfa-16 ra@cfa-8"},
	      {6, "sp+48 fp@cfa-16 ra@cfa-8"}, {11, "sp+24 fp@cfa-16 ra@cfa-8"},
	      {12, "sp+16 fp@cfa-16 ra@cfa-8"}, {13, START}}},
    /* 0: push $5; 1: pushf; 2: push 8(%rdi); 3: pushw %ax; 4: popw %ax; 5: pop (%rdi); 6: popf;
     * 7: pop %rcx; 8: ret */
    {"numbers, flags, memory, 16 bits",
     CODE("\x6a\x05\x9c\xff\x77\x08\x66\x50\x66\x58\x8f\x07\x9d\x59\xc3"),
     .want = {{2, "sp+16 fp= ra@cfa-8"}, {3, "sp+24 fp= ra@cfa-8"}, {6, "sp+32 fp= ra@cfa-8"},
	      {8, "sp+34 fp= ra@cfa-8"}, {10, "sp+32 fp= ra@cfa-8"}, {13, "sp+16 fp= ra@cfa-8"},
	      {14, START}}},
    /* 0: push %rbp; 1: mov %rsp,%rbp; 2: sub $16,%rsp; 3: leave; 4: ret */
    {"frame pointer",
     CODE("\x55\x48\x89\xe5\x48\x83\xec\x10\xc9\xc3"),
     .want = {{1, "sp+16 fp@cfa-16 ra@cfa-8"}, {4, "fp+16 fp@cfa-16 ra@cfa-8"},
	      {8, "fp+16 fp@cfa-16 ra@cfa-8"}, {9, START}}},
    /* 0: push %rbp; 1: mov %rsp,%rbp; 2: push %rbx; 3: sub %rax,%rsp; 4: lea -8(%rbp),%rsp; 5:
     * pop %rbx; 6: pop %rbp; 7: ret */
    {"frame of unknown size",
     CODE("\x55\x48\x89\xe5\x53\x48\x29\xc4\x48\x8d\x65\xf8\x5b\x5d\xc3"),
     .want = {{5, "fp+16 fp@cfa-16 ra@cfa-8"}, {8, "fp+16 fp@cfa-16 ra@cfa-8"},
	      {13, "fp+16 fp@cfa-16 ra@cfa-8"}, {14, START}}},
    /* 0: sub %rax,%rsp; 1: add $8,%rsp; 2: ret */
    {"unknown size without frame pointer",
     CODE("\x48\x29\xc4\x48\x83\xc4\x08\xc3"),
     .want = {{0, START}, {3, "invalid"}, {7, "invalid"}}},
    /* 0: lea 8(%rsp),%r10; 1: and $-32,%rsp; 2: push %rbx; 3: lea -8(%r10),%rsp; 4: ret */
    {"realigned, counted from another register",
     CODE("\x4c\x8d\x54\x24\x08\x48\x83\xe4\xe0\x53\x49\x8d\x62\xf8\xc3"),
     .want = {{5, START}, {9, "r10+0 fp= ra@cfa-8"}, {10, "r10+0 fp= ra@cfa-8"}, {14, START}}},
    /* 0: sub $24,%rsp; 1: mov %rbp,8(%rsp); 2: mov %rsp,%rbp; 3: nop; 4: mov 8(%rsp),%rbp; 5:
     * add $24,%rsp; 6: ret */
    {"frame pointer stored and loaded",
     CODE("\x48\x83\xec\x18\x48\x89\x6c\x24\x08\x48\x89\xe5\x90\x48\x8b\x6c\x24\x08"
	  "\x48\x83\xc4\x18\xc3"),
     .want = {{4, "sp+32 fp= ra@cfa-8"}, {9, "sp+32 fp@cfa-24 ra@cfa-8"},
	      {12, "sp+32 fp@cfa-24 ra@cfa-8"}, {18, "sp+32 fp@cfa-24 ra@cfa-8"}, {22, START}}},
    /* 0: xor %ebp,%ebp; 1: nop; 2: ret */
    {"frame pointer lost",
     CODE("\x31\xed\x90\xc3"),
     .want = {{0, START}, {2, "sp+8 fp? ra@cfa-8"}}},
    /* 0: mov %rbp,%rax; 1: xor %ebp,%ebp; 2: mov %rax,%rbp; 3: ret */
    {"frame pointer in another register",
     CODE("\x48\x89\xe8\x31\xed\x48\x89\xc5\xc3"),
     .want = {{5, "sp+8 fp? ra@cfa-8"}, {8, START}}},
    /* 0: push %rbp; 1: xor %ebp,%ebp; 2: movl $0,4(%rsp); 3: pop %rbp; 4: ret */
    {"its place overwritten",
     CODE("\x55\x31\xed\xc7\x44\x24\x04\x00\x00\x00\x00\x5d\xc3"),
     .want = {{3, "sp+16 fp@cfa-16 ra@cfa-8"}, {11, "sp+16 fp? ra@cfa-8"},
	      {12, "sp+8 fp? ra@cfa-8"}}},
    /* 0: push %rbp; 1: xor %ebp,%ebp; 2: add $8,%rsp; 3: push %rax; 4: pop %rax; 5: ret */
    {"its place popped",
     CODE("\x55\x31\xed\x48\x83\xc4\x08\x50\x58\xc3"),
     .want = {{3, "sp+16 fp@cfa-16 ra@cfa-8"}, {7, "sp+8 fp? ra@cfa-8"},
	      {8, "sp+16 fp? ra@cfa-8"}}},
    /* 0: mov %rax,(%rsp); 1: nop; 2: ret */
    {"return address overwritten",
     CODE("\x48\x89\x04\x24\x90\xc3"),
     .want = {{0, START}, {4, "invalid"}, {5, "invalid"}}},
    /* 0: pop %rdx; 1: syscall; 2: push %rdx; 3: ret */
    {"return address popped",
     CODE("\x5a\x0f\x05\x52\xc3"),
     .want = {{0, START}, {1, "invalid"}, {3, "invalid"}, {4, "invalid"}}},
    /* 0: push %rbx; 1: test %eax,%eax; 2: je 4f; 3: nop; 4: pop %rbx; 5: ret */
    {"branches that agree",
     CODE("\x53\x85\xc0\x74\x01\x90\x5b\xc3"),
     .want = {{6, "sp+16 fp= ra@cfa-8"}, {7, START}}},
    /* 0: test %eax,%eax; 1: je 3f; 2: push %rbx; 3: nop; 4: nop; 5: ud2 */
    {"branches that do not",
     CODE("\x85\xc0\x74\x01\x53\x90\x90\x0f\x0b"),
     .want = {{4, START}, {5, "invalid"}, {6, "invalid"}}},
    /* 0: push %rbx; 1: dec %eax; 2: jne 1b; 3: pop %rbx; 4: ret */
    {"a loop",
     CODE("\x53\xff\xc8\x75\xfc\x5b\xc3"),
     .want = {{1, "sp+16 fp= ra@cfa-8"}, {5, "sp+16 fp= ra@cfa-8"}, {6, START}}},
    /* 0: push %rbx; 1: push %rbx; 2: jne 1b; 3: ud2 */
    {"a loop that eats the stack",
     CODE("\x53\x53\x75\xfd\x0f\x0b"),
     .want = {{0, START}, {1, "invalid"}}},
    /* 0: mov (%rdi),%rsp; 1: ret */
    {"sp from memory", CODE("\x48\x8b\x27\xc3"), .want = {{0, START}, {3, "invalid"}}},
    /* 0: xchg %rsp,%rax; 1: ret */
    {"sp exchanged", CODE("\x48\x94\xc3"), .want = {{2, "invalid"}}},
    /* 0: push %rbx; 1: ret */
    {"a return that does not fit", CODE("\x53\xc3"), .want = {{0, "invalid"}, {1, "invalid"}}},
    /* 0: nop; 1: add $24,%rsp; 2: jmp *%r11 */
    {"more popped than pushed",
     CODE("\x90\x48\x83\xc4\x18\x41\xff\xe3"),
     .want = {{0, "invalid"}, {1, "invalid"}, {5, "invalid"}}},
    /* 0: nop; 1: mov %rbp,%rsp; 4: pop %rbp; 5: ret */
    {"the caller's frame given up", CODE("\x90\x48\x89\xec\x5d\xc3"),
     .want = {{0, "invalid"}, {1, "invalid"}, {4, "invalid"}, {5, "invalid"}}},
    /* 0: nop; 1: leave; 2: jmp *%r11 */
    {"the caller's frame left", CODE("\x90\xc9\x41\xff\xe3"),
     .want = {{0, "invalid"}, {1, "invalid"}, {2, "invalid"}}},
    /* 0: push %rbx; 1: .byte 6; 2: ret */
    {"no instruction",
     CODE("\x53\x06\xc3"),
     .want = {{0, START}, {1, "invalid"}, {2, "invalid"}}},
    /* 0: push %rbx; 1: mov $0x90909090,%eax; 2: je 1b+2; 3: pop %rbx; 4: ret */
    {"into an instruction",
     CODE("\x53\xb8\x90\x90\x90\x90\x74\xfb\x5b\xc3"),
     .want = {{1, "sp+16 fp= ra@cfa-8"}, {8, "sp+16 fp= ra@cfa-8"}}},
    /* 0: push %rbx; 1: call 8f; 2: pop %rbx; 3: ret; 8: ret */
    {"a call that returns",
     CODE("\x53\xe8\x02\x00\x00\x00\x5b\xc3\xc3"),
     .want = {{6, "sp+16 fp= ra@cfa-8"}, {7, START}, {8, START}}},
    /* 0: push %rbx; 1: call 8f; 2: pop %rbx; 3: ret; 8: push %rax; 9: jmp 9b */
    {"a call that does not",
     CODE("\x53\xe8\x02\x00\x00\x00\x5b\xc3\x50\xeb\xfe"),
     .want = {{1, "sp+16 fp= ra@cfa-8"}, {6, "invalid"}, {7, "invalid"}, {8, START},
	      {9, "sp+16 fp= ra@cfa-8"}}},
    /* 0: call 7f; 1: ret; 7: jmp 8f; 8: jmp 8b */
    {"a call by way of a jump that does not",
     CODE("\xe8\x01\x00\x00\x00\xc3\xeb\x00\xeb\xfe"),
     .want = {{0, START}, {5, "invalid"}, {6, START}, {8, START}}},
    /* 0: push %rbx; 1: call 8f; 2: nop; 3: ud2; 8: ret $8 */
    {"a call that pops its arguments",
     CODE("\x53\xe8\x03\x00\x00\x00\x90\x0f\x0b\xc2\x08\x00"),
     .want = {{1, "sp+16 fp= ra@cfa-8"}, {6, "invalid"}}},
    /* 0: push %rbx; 1: call 8f; 2: pop %rbx; 3: ret; 8: xor %ebp,%ebp; 9: ret */
    {"a call that loses the frame pointer",
     CODE("\x53\xe8\x02\x00\x00\x00\x5b\xc3\x31\xed\xc3"),
     .want = {{1, "sp+16 fp= ra@cfa-8"}, {6, "sp+16 fp? ra@cfa-8"}}},
    /* 0: call 1f; 1: pop %rax; 2: ret */
    {"a call to the next instruction",
     CODE("\xe8\x00\x00\x00\x00\x58\xc3"),
     .want = {{5, "sp+16 fp= ra@cfa-8"}, {6, START}}},
    /* 0: lea 8f(%rip),%rax; 1: call *%rax; 2: ret; 8: push %rbx; 9: pop %rbx; ret */
    {"a call by a constant",
     CODE("\x48\x8d\x05\x03\x00\x00\x00\xff\xd0\xc3\x53\x5b\xc3"),
     .want = {{9, START}, {10, START}, {11, "sp+16 fp= ra@cfa-8"}}},
    /* 0: push %rbx; 1: lea 8f(%rip),%rax; 2: pop %rbx; 3: jmp *%rax; 8: push %rbp; 9: jmp 9b */
    {"a jump by a constant",
     CODE("\x53\x48\x8d\x05\x03\x00\x00\x00\x5b\xff\xe0\x55\xeb\xfe"),
     .want = {{9, START}, {11, START}, {12, "sp+16 fp@cfa-16 ra@cfa-8"}}},
    /* 0: push %rbx; 1: call far; 2: pop %rbx; 3: ret */
    {"out of the file, and back in order",
     CODE("\x53\xe8\xfa\xff\xf0\xff\x5b\xc3"),
     .want = {{6, "sp+16 fp= ra@cfa-8"}, {7, START}}},
    /* 0: push %rbx; 1: call far; 2: nopw 0(%rax,%rax,1); 3: mov %eax,%ebx; 4: ret */
    {"out of the file, never back",
     CODE("\x53\xe8\xfa\xff\xf0\xff\x66\x0f\x1f\x04\x00\x89\xc3\xc3"),
     .want = {{1, "sp+16 fp= ra@cfa-8"}, {6, "invalid"}, {11, "invalid"}, {13, "invalid"}}},
    /* 0: push %rbx; 1: call far; 2: (16); 3: pop %rbx; 4: ret */
    {"out of the file, then padding",
     CODE("\x53\xe8\xfa\xff\xf0\xff\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00\x5b\xc3"),
     .want = {{1, "sp+16 fp= ra@cfa-8"}, {16, "invalid"}}},
    /* 0: push %rbx; 1: call *%rax; 2: ud2 */
    {"a pointer that returns",
     CODE("\x53\xff\xd0\x0f\x0b"),
     .want = {{1, "sp+16 fp= ra@cfa-8"}, {3, "sp+16 fp= ra@cfa-8"}}},
    /* 0: push %rbx; 1: pop %rbx; 2: jmp *%rax */
    {"the last call", CODE("\x53\x5b\xff\xe0"), .want = {{2, START}}},
    /* 0: push %rbx; 1: jmp *%rax; 2: pop %rbx; 3: ret */
    {"an unknown jump",
     CODE("\x53\xff\xe0\x5b\xc3"),
     .want = {{1, "sp+16 fp= ra@cfa-8"}, {3, "invalid"}, {4, "invalid"}}},
    /* 0: push %rbx; 1: cmp $2,%edi; 2: ja 5f; lea table(%rip),%rdx; movslq (%rdx,%rdi,4),%rax;
     * add %rdx,%rax; 3: jmp *%rax; 4: mov %eax,%eax; 5: pop %rbx; 6: ret; 7: jmp 5b; 8: jmp 5b;
     * .p2align 2; table: .long 4b-table,7b-table,5b-table */
    {"a table of distances",
     CODE("\x53\x83\xff\x02\x77\x12\x48\x8d\x15\x13\x00\x00\x00\x48\x63\x04\xba\x48"
	  "\x01\xd0\xff\xe0\x89\xc0\x5b\xc3\xeb\xfc\xeb\xfa\x66\x90\xf6\xff\xff\xff"
	  "\xfa\xff\xff\xff\xf8\xff\xff\xff"),
     .want = {{20, "sp+16 fp= ra@cfa-8"}, {22, "sp+16 fp= ra@cfa-8"},
	      {26, "sp+16 fp= ra@cfa-8"}, {28, "invalid"}}},
    /* 0: push %rbx; 1: test %edi,%edi; 2: je 5f; lea table(%rip),%rdx; movslq
     * (%rdx,%rdi,4),%rax; add %rdx,%rax; 3: jmp *%rax; 4: mov %eax,%eax; 5: pop %rbx; 6: ret;
     * 7: jmp 5b; 8: jmp 5b; .p2align 2; table: .long 4b-table,7b-table,5b-table */
    {"a table without a check",
     CODE("\x53\x85\xff\x74\x12\x48\x8d\x15\x14\x00\x00\x00\x48\x63\x04\xba\x48\x01"
	  "\xd0\xff\xe0\x89\xc0\x5b\xc3\xeb\xfc\xeb\xfa\x0f\x1f\x00\xf5\xff\xff\xff"
	  "\xf9\xff\xff\xff\xf7\xff\xff\xff"),
     .want = {{21, "invalid"}, {23, "sp+16 fp= ra@cfa-8"}, {25, "invalid"}}},
    /* 0: push %rbx; 1: cmp $2,%edi; dec %eax; 2: ja 5f; lea table(%rip),%rdx; movslq
     * (%rdx,%rdi,4),%rax; add %rdx,%rax; 3: jmp *%rax; 4: mov %eax,%eax; 5: pop %rbx; 6: ret;
     * 7: jmp 5b; 8: jmp 5b; .p2align 2; table: .long 4b-table,7b-table,5b-table */
    {"a check that was overtaken",
     CODE("\x53\x83\xff\x02\xff\xc8\x77\x12\x48\x8d\x15\x11\x00\x00\x00\x48\x63\x04"
	  "\xba\x48\x01\xd0\xff\xe0\x89\xc0\x5b\xc3\xeb\xfc\xeb\xfa\xf8\xff\xff\xff"
	  "\xfc\xff\xff\xff\xfa\xff\xff\xff"),
     .want = {{24, "invalid"}, {28, "invalid"}}},
    /* 0: push %rbx; 1: cmp $1,%al; 2: ja 5f; movzbl %al,%eax; 3: jmp *table(,%rax,8); 4: nop;
     * 5: pop %rbx; 6: ret; 7: jmp 5b; table: .quad 4b,7b */
    {"a table of addresses",
     CODE("\x53\x3c\x01\x77\x0b\x0f\xb6\xc0\xff\x24\xc5\x14\x00\x10\x00\x90\x5b\xc3"
	  "\xeb\xfc\x0f\x00\x10\x00\x00\x00\x00\x00\x12\x00\x10\x00\x00\x00\x00\x00"),
     .want = {{15, "sp+16 fp= ra@cfa-8"}, {18, "sp+16 fp= ra@cfa-8"}}},
    /* 0: push %rbx; 1: jmp 8f; 7: call 8f; ret; 8: nop; 9: ret */
    {"a function entered with something on the stack",
     CODE("\x53\xeb\x06\xe8\x01\x00\x00\x00\xc3\x90\xc3"),
     .want = {{1, "sp+16 fp= ra@cfa-8"}, {9, "invalid"}, {10, "invalid"}}, .second = 3},
    /* 0: xor %ebp,%ebp; 1: call 8f; ud2; 8: push %rbx; 9: pop %rbx; ret */
    {"the entry of a program",
     CODE("\x31\xed\xe8\x02\x00\x00\x00\x0f\x0b\x53\x5b\xc3"),
     .want = {{0, "invalid"}, {2, "invalid"}, {9, START}, {10, "sp+16 fp= ra@cfa-8"}},
     .entry = true},
    /* 0: ret; (16); 8: push %rbx; 9: pop %rbx; ret */
    {"behind padding",
     CODE("\xc3\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00\x0f\x1f\x40\x00\x53\x5b"
	  "\xc3"),
     .want = {{0, START}, {16, START}, {17, "sp+16 fp= ra@cfa-8"}}},
    /* 0: ret; (16); 8: pop %rbx; 9: ret */
    {"behind padding, but no function",
     CODE("\xc3\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00\x0f\x1f\x40\x00\x5b\xc3"),
     .want = {{0, START}, {16, "invalid"}, {17, "invalid"}}},
    /* 0: ret; (16); 8: xor %ebp,%ebp; 9: ret */
    {"behind padding, loses the frame pointer",
     CODE("\xc3\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00\x0f\x1f\x40\x00\x31\xed"
	  "\xc3"),
     .want = {{0, START}, {16, "invalid"}, {18, "invalid"}}},
    /* 0: lea 8f(%rip),%rdi; 1: jmp far; 8: push %rbx; 9: jmp 9b */
    {"an address taken",
     CODE("\x48\x8d\x3d\x05\x00\x00\x00\xe9\xf4\xff\xf0\xff\x53\xeb\xfe"),
     .want = {{12, START}, {13, "sp+16 fp= ra@cfa-8"}}},
    /* 0: lea 8f(%rip),%rdi; 1: jmp far; 8: .byte 6,6,6,6; 9: .byte 6 */
    {"an address taken, of data",
     CODE("\x48\x8d\x3d\x05\x00\x00\x00\xe9\xf4\xff\xf0\xff\x06\x06\x06\x06\x06"),
     .want = {{12, "invalid"}, {16, "invalid"}}},
    /* 0: ret; 1: nop; 2: nopl 0(%rax) */
    {"padding goes on", CODE("\xc3\x90\x0f\x1f\x00"), .want = {{1, START}, {2, START}}},
    /* 0: push %rbx; 1: hlt; 2: pop %rbx */
    {"halt", CODE("\x53\xf4\x5b"), .want = {{1, "sp+16 fp= ra@cfa-8"}, {2, "invalid"}}},
};
/* clang-format on */

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct code_case *c = &cases[i];
		char text[TABLES_TEXT_BYTES];
		struct subject s;

		begin(&s, c->code, c->bytes);
		if (c->entry)
			codeflow_enter(&s.graph, VADDR);
		codeflow_prove(&s.graph, VADDR);
		if (c->second)
			codeflow_prove(&s.graph, VADDR + c->second);
		finish(&s);
		assert_int_equal(s.graph.err, 0);
		for (size_t k = 0; k < 8 && c->want[k].rule; k++)
			if (strcmp(tables_text(&s.rules[c->want[k].at], text), c->want[k].rule))
				fail_msg("%s, at %u: %s, not %s", c->name, c->want[k].at, text,
					 c->want[k].rule);
		codegraph_close(&s.graph);
	}
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	return *seed ^= *seed << 17;
}

/* Bytes of the cases, shuffled: closer to code than noise is. */
static void test_random(void **state)
{
	uint64_t seed = 0x5eed;
	unsigned rows = 0;
	char code[CODE_MAX];

	(void)state;
	for (int round = 0; round < RANDOM_ROUNDS; round++) {
		struct subject s;

		for (size_t n = 0; n < sizeof(code);) {
			const struct code_case *c =
			    &cases[next_random(&seed) % (sizeof(cases) / sizeof(cases[0]))];
			size_t from = next_random(&seed) % c->bytes, more = c->bytes - from;

			more = more < sizeof(code) - n ? more : sizeof(code) - n;
			memcpy(code + n, c->code + from, more);
			n += more;
		}
		begin(&s, code, sizeof(code));
		for (int i = 0; i < 4; i++)
			codeflow_prove(&s.graph, VADDR + next_random(&seed) % sizeof(code));
		finish(&s);
		rows += coderows_any(&s.graph);
		codegraph_close(&s.graph);
	}
	print_message("%u of %d had rules\n", rows, RANDOM_ROUNDS);
	assert_true(rows > RANDOM_ROUNDS / 2);
}

static void test_limits(void **state)
{
	size_t n = CODEGRAPH_BYTES_MAX;
	char *code = malloc(n);
	struct subject s;

	(void)state;
	assert_non_null(code);
	/* As much as may be, of which each instruction is a block of its own, many times over. */
	for (size_t i = 0; i + 2 <= n; i += 2)
		memcpy(code + i, "\x74\xfc", 2); /* je to the instruction before */
	begin(&s, code, n);
	codeflow_prove(&s.graph, VADDR + 2);
	finish(&s);
	assert_int_equal(s.graph.err, -EFBIG);
	assert_false(coderows_any(&s.graph));
	assert_int_equal(s.rules[64].cfa, RULE_INVALID);
	codegraph_close(&s.graph);
	/* Too many instructions. */
	memset(code, 0xf8, n);
	begin(&s, code, n);
	codeflow_prove(&s.graph, VADDR);
	finish(&s);
	assert_int_equal(s.graph.err, -EFBIG);
	codegraph_close(&s.graph);
	s.area.n = CODEGRAPH_BYTES_MAX + 1;
	assert_int_equal(codegraph_open(&s.graph, &s.area, 1, data, &s), -EFBIG);
	codegraph_close(&s.graph);
	free(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
