/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 OR BSD-2-Clause */
/*
 * The unwind table of a file: how to get from a pc to the caller's registers without frame pointers.
 *
 * Who writes, who reads
 *   A symbolizer compiles `.eh_frame` into such a table and hands it over as a sealed memfd. The
 *   sampler checks its shape and copies the body, word by word as it is, into BPF's chunks. The BPF
 *   program and the symbolizer's own walk read it (bpf/unwind.bpf.h).
 *
 * Layout of the memfd, in 4-byte words
 *
 *   struct table_header | pages: 2 words each | rows: 1 word each | rules: 4 words each
 *   | struct table_runtime, in the file of a language's runtime only
 *
 *   page i covers file offsets [(first_page + i) << 16, + 64 KiB) and names a run of rows
 *   {first, count}; rows of a page are sorted by their low half, the offset within the page. A row
 *   holds from its offset up to the next row. The first row of a page stands at offset 0, so that no
 *   search leaves its page. High half of a row: index of its rule, which may tell of several changes
 *   within the row's first bytes (RULE_STEPS_BYTES).
 *
 * Life of a table
 *   compiled -> handed over -> checked and copied -> published in BPF's table of files -> evicted or
 *   withdrawn -> its room is used again after TABLES_GRACE_NS.
 *
 * What each side may assume
 *   The sampler: nothing, it runs table_check(). Sizes agree with the header, the runs of rows fill
 *   all rows, rows strictly ascend, every rule is of a known kind and its index in range. BPF: not
 *   even that; it clamps every index it reads. Rule 0 is RULE_INVALID.
 */
#ifndef SCONCE_SHM_TABLE_H
#define SCONCE_SHM_TABLE_H

#include <linux/types.h>
#include <stddef.h>

#define TABLE_MAGIC 0x4c424154u /* "TABL" */
#define TABLE_VERSION 3
#define TABLE_PAGE_SHIFT 16
#define TABLE_PAGES_MAX 16384u	/* 1 GiB of text */
#define TABLE_ROWS_MAX 4194304u /* 16 MiB of rows; libLLVM has 0.3 million */
#define TABLE_RULES_MAX 65536u

struct table_page {
	__u32 first, count; /* rows; the runs of all pages follow one another without a gap */
};

/* Where the caller's stack pointer (the CFA) comes from. */
enum rule_cfa {
	RULE_INVALID = 0, /* no code here, or code that cannot be described: never guess */
	RULE_STOP,	  /* the first function of a thread: the stack is complete */
	RULE_REGISTER,	  /* register + offset */
	RULE_DEREF,	  /* *(register + offset) + add (functions that realign their stack) */
	RULE_PLT,	  /* sp + 8 + (((pc & 15) >= add) ? 8 : 0) */
	/*
	 * All registers stand in a signal frame; fp and ra of the rule mean nothing. x86-64: r8 of
	 * the kernel's struct sigcontext is at sp + offset, so rbp is at + 80, rsp at + 120, rip at
	 * + 128. The pc found was interrupted; it does not stand behind a call.
	 */
	RULE_SIGNAL,
	/*
	 * Frame pointer + offset, on another stack, which may lie below this one (Go's goroutines and
	 * the stacks of their threads). With a frame pointer of 0 the stack is complete.
	 */
	RULE_SWITCH,
	/*
	 * Go before 1.21, from C back to the goroutine: at register + offset stand where the other stack
	 * was left, counted from its end, and the goroutine, whose second word is that end; or the place
	 * itself and 0. The return address is there. May lie below, likewise.
	 */
	RULE_NOTED,
};

/* All of them: besides the three of DRAP frames (r10, r13, rax), assembly uses every other one. */
enum rule_register {
	RULE_SP,
	RULE_FP,
	RULE_RAX,
	RULE_RDX,
	RULE_RCX,
	RULE_RBX,
	RULE_RSI,
	RULE_RDI,
	RULE_R8,
	RULE_R9,
	RULE_R10,
	RULE_R11,
	RULE_R12,
	RULE_R13,
	RULE_R14,
	RULE_R15,
	RULE_REGISTER_COUNT,
};

/* The caller's frame pointer. */
enum rule_fp {
	RULE_FP_SAME = 0,  /* unchanged */
	RULE_FP_CFA,	   /* at CFA + fp_offset */
	RULE_FP_FP,	   /* at fp + fp_offset */
	RULE_FP_UNDEFINED, /* lost; the caller's rows must not need it */
};

/* The return address. */
enum rule_ra {
	RULE_RA_CFA = 0,  /* at CFA + ra_offset (-8 but for hand-written code) */
	RULE_RA_REGISTER, /* in ra_register, leaf only (vfork) */
};

/*
 * The caller's rbx, in rules whose ra is RULE_RA_CFA: one of these, or n = saved at CFA - 8 * n. A
 * table follows it only if it has a rule that counts the CFA from rbx, as glibc's ld.so has where it
 * links a function at its first call.
 */
enum rule_rbx { RULE_RBX_UNKNOWN = 0, RULE_RBX_SAME };

struct table_rule {
	__u8 cfa;	   /* enum rule_cfa */
	__u8 cfa_register; /* enum rule_register; in callers SP, FP, and RBX where it is followed */
	__u8 fp;	   /* enum rule_fp */
	__u8 ra;	   /* enum rule_ra */
	__s32 cfa_offset;
	__s16 fp_offset, ra_offset;
	union {
		__u8 ra_register; /* enum rule_register */
		__u8 rbx;	  /* enum rule_rbx */
	};
	__u8 add;	  /* RULE_DEREF: bytes; RULE_PLT: the limit, at most 15; else see below */
	__u16 steps;
};

/*
 * Steps: one row for all the pushes of a prologue, or all the pops of an epilogue. A RULE_REGISTER
 * rule says what holds from the last step of its row on; what held before follows from the bytes
 * between the row and the pc:
 *
 *   bit i of steps	 at i + 1 bytes the CFA moved by 8: it grew, or with RULE_STEPS_POP it shrank
 *   add, low half	 so many bytes on, fp began to be what the rule says; before: unchanged
 *   add, high half	 so many bytes on, the CFA began to be counted from cfa_register; before:
 *			 from sp
 *
 * Any value means something, so there is nothing to check.
 */
#define RULE_STEPS_BYTES 15u
#define RULE_STEPS_POP	 0x8000u

/*
 * The runtime of a language, in the file that has its interpreter loop: where that is and what its
 * walker (bpf/lang/) has to know. All of it was read out of a file that may lie. Nothing of it is
 * checked, because BPF uses it for no more than to read the memory of the very process that runs the
 * file.
 */
#define TABLE_LOOPS    4  /* ranges of the loop: compilers put cold parts elsewhere */
#define TABLE_FIELDS   24
#define TABLE_SYMBOLS  4

/* How a thread finds what the runtime keeps for it (lang_thread() of bpf/lang.bpf.h). */
enum table_thread {
	TABLE_THREAD_NONE, /* it is not kept for each thread */
	TABLE_THREAD_TP,   /* at thread pointer + thread_at (signed) */
	TABLE_THREAD_GOT,  /* at thread pointer + what stands at thread_at */
	TABLE_THREAD_DTV,  /* a variable of a library: {module, offset} stand at thread_at */
	TABLE_THREAD_KEY,  /* a key of pthread_getspecific(), which stands at thread_at (u32) */
};

/* Where a C library keeps what pthread_setspecific() was given. */
enum table_libc { TABLE_GLIBC, TABLE_MUSL };

struct table_runtime {
	__u32 language; /* enum language of bpf/langs.h */
	__u32 version;	/* as the language counts */
	struct {
		__u32 start, end; /* [start, end) in the file; 0, 0 = no more */
	} loops[TABLE_LOOPS];
	__u64 bias; /* address - file offset, in the segment that has the loop */
	__u64 thread_at; /* an address as the file has it, unless said otherwise */
	__u32 thread;	 /* enum table_thread */
	__u32 libc;	 /* enum table_libc */
	__u64 symbols[TABLE_SYMBOLS]; /* addresses as the file has them; of what: bpf/lang/x.h */
	__u32 fields[TABLE_FIELDS];   /* offsets and sizes in the runtime's structures, likewise */
};

#define TABLE_RUNTIME_WORDS (sizeof(struct table_runtime) / 4)

struct table_header {
	__u32 magic, version;
	__u32 file_id;
	__u32 first_page, pages, rows, rules;
	__u32 runtimes; /* 0 or 1 */
};

#define TABLE_WORDS(pages, rows, rules) (2 * (__u64)(pages) + (rows) + 4 * (__u64)(rules))

/* Of what stands behind a header. */
static inline __u64 table_words(const struct table_header *h)
{
	return TABLE_WORDS(h->pages, h->rows, h->rules) + (h->runtimes ? TABLE_RUNTIME_WORDS : 0);
}

#define TABLE_BYTES_MAX                                                                            \
	(sizeof(struct table_header) + sizeof(struct table_runtime) +                              \
	 4 * TABLE_WORDS(TABLE_PAGES_MAX, TABLE_ROWS_MAX, TABLE_RULES_MAX))

_Static_assert(sizeof(struct table_page) == 8, "page");
_Static_assert(sizeof(struct table_rule) == 16, "rule");
_Static_assert(sizeof(struct table_header) == 32, "header");
_Static_assert(sizeof(struct table_runtime) == 192, "runtime");

/* Whether what stands in these bytes is a table. 0 or -EINVAL. Time is linear in the bytes. */
int table_check(const struct table_header *header, size_t bytes);

#endif
