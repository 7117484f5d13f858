/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * Ruby: what the walker (bpf/lang/ruby.bpf.c) knows of the interpreter (vm_core.h, method.h and
 * internal/imemo.h of Ruby; the same from 2.7 to 3.4 unless it is among the fields), and how it
 * hands its frames to who names them (symbolizer/lang/ruby.c).
 *
 *   compiled code (a method, block, class body, script)
 *     object  its struct rb_iseq_constant_body, which does not say whose method it is;
 *     cookie  44 bits: the method's entry (struct rb_callable_method_entry_struct) / 8, 0 = none;
 *	       20 bits: check
 *     where   12 bits: check; 20 bits: how many words of the code are behind
 *   a function of C
 *     object  its method's entry | RUBY_FRAME_C
 *     cookie  35 bits: what the file's addresses are counted from / 4096; 29 bits: check
 *     where   32 bits: check
 *
 * The check is ruby_check() of what the walker has read. User space of x86-64 has 47 bits.
 */
#ifndef SCONCE_BPF_LANG_RUBY_H
#define SCONCE_BPF_LANG_RUBY_H

#include <linux/types.h>

enum ruby_symbol {
	RUBY_EC_POINTER, /* ruby_current_execution_context_ptr, before 3.0: one for all threads */
};

enum ruby_field {
	RUBY_EC_THREAD,	    /* in rb_execution_context_t */
	RUBY_THREAD_ID,	    /* in rb_thread_t; 0: each thread has its own execution context */
	RUBY_CONTROL_BYTES, /* of an rb_control_frame_t */
};

#define RUBY_VERSION(major, minor) (100 * (major) + (minor))

#define RUBY_FRAME_C 1ull

#define RUBY_POSITION_BITS 20
#define RUBY_POSITION_NONE ((1u << RUBY_POSITION_BITS) - 1)
#define RUBY_ENTRY_SHIFT   20
#define RUBY_BASE_SHIFT	   29
#define RUBY_ADDRESS_MAX   (1ull << 47)

/* struct rb_iseq_constant_body, in words: the first one is {type, iseq_size}. */
enum ruby_body {
	RUBY_BODY_HEAD,
	RUBY_BODY_ENCODED,
	RUBY_BODY_PATH = 8,
	RUBY_BODY_BASE_LABEL,
	RUBY_BODY_LABEL,
	RUBY_BODY_WORDS,
};

/* struct rb_callable_method_entry_struct, likewise; struct vm_svar has the one it hides in its
 * second word. */
enum ruby_entry {
	RUBY_ENTRY_FLAGS,
	RUBY_ENTRY_CLASS,
	RUBY_ENTRY_DEFINITION,
	RUBY_ENTRY_CALLED_ID,
	RUBY_ENTRY_OWNER,
	RUBY_ENTRY_WORDS,
	RUBY_SVAR_ENTRY = 1,
};

/* Flags of an object of the interpreter's own: T_IMEMO, and which. */
#define RUBY_IMEMO_MASK	 0xf01fu
#define RUBY_IMEMO_SVAR	 0x201au
#define RUBY_IMEMO_ENTRY 0x601au

static inline __u64 ruby_mix(__u64 sum, __u64 word)
{
	sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
	return sum ^ sum >> 29;
}

/* body: NULL in functions of C. entry: NULL when there is none. */
static inline __attribute__((always_inline)) __u64 ruby_check(const __u64 *body, const __u64 *entry)
{
	__u64 sum = 1;

	if (body) {
		sum = ruby_mix(sum, body[RUBY_BODY_ENCODED]);
		sum = ruby_mix(sum, body[RUBY_BODY_PATH]);
		sum = ruby_mix(sum, body[RUBY_BODY_LABEL]);
	}
	if (entry) {
		sum = ruby_mix(sum, entry[RUBY_ENTRY_DEFINITION]);
		sum = ruby_mix(sum, entry[RUBY_ENTRY_OWNER]);
	}
	return sum;
}

static inline __u64 ruby_cookie(__u64 entry, __u64 check)
{
	return entry >> 3 << RUBY_ENTRY_SHIFT | (check & ((1u << RUBY_ENTRY_SHIFT) - 1));
}

static inline __u32 ruby_where(__u32 position, __u64 check)
{
	return (__u32)(check >> 32) << RUBY_POSITION_BITS | position;
}

static inline __u64 ruby_c_cookie(__u64 base, __u64 check)
{
	return base >> 12 << RUBY_BASE_SHIFT | check >> (64 - RUBY_BASE_SHIFT);
}

#endif
