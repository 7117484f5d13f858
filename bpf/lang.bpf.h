/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * What a language's walker works with. bpf/lang/x.bpf.c includes this and defines
 *
 *   LANG_STEP int x_step(struct unwind *w);
 *
 * It is called when the walk stands in the interpreter loop of w->runtime (or in code that it made:
 * w->script.made), before that native frame is pushed, so that scripts stand above the C that runs
 * them. One call pushes at most one script frame, leaf first, and returns
 *
 *   UNWIND_GO	call again; or, when w->unwinder was set to UNWIND_NATIVE, all frames of this
 *		activation of the loop are pushed: the native walk goes on
 *   a stop	only when there is no room (STOP_DEPTH of unwind_push_script())
 *
 * What cannot be read is no end of the stack: lang_lost() says that script frames are missing, and the
 * native walk goes on. w->script is the walker's own from frame to frame and from activation to
 * activation; all of it is 0 at the beginning of a stack.
 *
 * Everything read is the process's own memory, and hostile: each call is bounded work, and how many
 * calls there are is bounded by the walk.
 *
 * Compiles as an ordinary program, too (tests): then whoever links it defines lang_host_read().
 */
#ifndef SCONCE_BPF_LANG_BPF_H
#define SCONCE_BPF_LANG_BPF_H

#include "bpf/langs.h"
#include "bpf/scratch.bpf.h"

#ifdef __bpf__
#include "bpf/kernel.h"
#define LANG_STEP __hidden
#else
#define LANG_STEP
/* 0, or a negative number when not all of it can be read. */
int lang_host_read(void *to, __u32 bytes, __u64 from);
#endif

/*
 * glibc's struct pthread on x86-64: 32 pairs {sequence number, value} of the first keys, then pointers to
 * blocks of as many (nptl/descr.h; the same from 2.3 on). musl's: a pointer to an array of values
 * (src/internal/pthread_impl.h of 1.2). The dtv of both is the second word.
 */
#define LANG_GLIBC_BLOCK  32
#define LANG_GLIBC_FIRST  0x310
#define LANG_GLIBC_BLOCKS 0x510
#define LANG_MUSL_TSD	  0x80

/* Read user memory. 0, or a negative number. bytes: a constant. */
UNWIND_INLINE int lang_read(void *to, __u32 bytes, __u64 from)
{
#ifdef __bpf__
	return bpf_probe_read_user(to, bytes, (const void *)from);
#else
	return lang_host_read(to, bytes, from);
#endif
}

/* Where an address of the runtime's file lies in this process. */
UNWIND_INLINE __u64 lang_address(const struct unwind *w, __u64 vaddr)
{
	return w->runtime_base + vaddr;
}

/* The pointer that the runtime keeps for this thread; 0 or a negative number. */
UNWIND_INLINE int lang_thread_key(const struct unwind *w, __u64 at, __u64 *value)
{
	__u64 from;
	__u32 key;

	if (lang_read(&key, sizeof(key), at))
		return -1;
	if (w->runtime.libc == TABLE_MUSL) {
		if (lang_read(&from, sizeof(from), w->thread_pointer + LANG_MUSL_TSD))
			return -1;
		from += 8 * (__u64)key;
	} else if (key < LANG_GLIBC_BLOCK) {
		from = w->thread_pointer + LANG_GLIBC_FIRST + 16 * (__u64)key + 8;
	} else {
		if (lang_read(&from, sizeof(from),
			      w->thread_pointer + LANG_GLIBC_BLOCKS + 8 * (__u64)(key / LANG_GLIBC_BLOCK)))
			return -1;
		from += 16 * (__u64)(key % LANG_GLIBC_BLOCK) + 8;
	}
	return lang_read(value, sizeof(*value), from);
}

UNWIND_INLINE int lang_thread_dtv(const struct unwind *w, __u64 at, __u64 *from)
{
	__u64 pair[2], dtv, block;

	if (lang_read(pair, sizeof(pair), at) ||
	    lang_read(&dtv, sizeof(dtv), w->thread_pointer + 8) ||
	    lang_read(&block, sizeof(block), dtv + pair[0] * (w->runtime.libc == TABLE_MUSL ? 8 : 16)))
		return -1;
	*from = block + pair[1];
	return 0;
}

/* The address of the variable, of which there is one for each thread. */
UNWIND_INLINE int lang_thread_address(const struct unwind *w, __u64 *from)
{
	__u64 at = w->runtime.thread_at, offset;

	switch (w->runtime.thread) {
	case TABLE_THREAD_TP:
		*from = w->thread_pointer + at;
		return 0;
	case TABLE_THREAD_GOT:
		if (lang_read(&offset, sizeof(offset), lang_address(w, at)))
			return -1;
		*from = w->thread_pointer + offset;
		return 0;
	case TABLE_THREAD_DTV:
		return lang_thread_dtv(w, lang_address(w, at), from);
	}
	return -1;
}

/* What the runtime keeps for this thread (a pointer). 0, or a negative number. */
UNWIND_INLINE int lang_thread(const struct unwind *w, __u64 *value)
{
	__u64 from;

	if (w->runtime.thread == TABLE_THREAD_KEY)
		return lang_thread_key(w, lang_address(w, w->runtime.thread_at), value);
	return lang_thread_address(w, &from) ? -1 : lang_read(value, sizeof(*value), from);
}

/* All frames of this activation are pushed. */
UNWIND_INLINE int lang_done(struct unwind *w)
{
	w->unwinder = UNWIND_NATIVE;
	return UNWIND_GO;
}

/* There are frames, but what could be read makes no sense. Nothing more is tried in this stack. */
UNWIND_INLINE int lang_lost(struct unwind *w)
{
	w->script.ended = 1;
	w->unwinder = UNWIND_NATIVE;
	return unwind_push_script(w, 0, 0, 0);
}

#endif
