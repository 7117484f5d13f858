// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ruby keeps its frames on a stack of its own, one for each thread and fiber: values grow up from
 * its beginning, control frames down from its end, so that from the innermost one upwards all
 * callers follow one another. A call from C into Ruby runs the loop anew, and marks the frame with
 * which it begins as the last one of that activation (FINISH).
 *
 * script.at is the next control frame.
 */
#include "bpf/lang.bpf.h"
#include "bpf/lang/ruby.h"

/* Of script.aux */
enum {
	RUBY_END,    /* of the control frames */
	RUBY_WINDOW, /* where the first of script.words lies in the process */
	RUBY_MADE,   /* how many slots there are when the caller of made code is pushed */
};

/* Of script.begun */
enum {
	RUBY_FOUND = 1,	 /* the control frames */
	RUBY_PASSED = 2, /* the innermost of them is behind */
	RUBY_OURS = 4,	 /* made code, of this activation, is the runtime's */
};

/* Control frames are read several at a time, to the front of script.words; then goes what they
 * point to. */
#define RUBY_WINDOW_WORDS  48
#define RUBY_WINDOW_BYTES  (8ull * RUBY_WINDOW_WORDS)
#define RUBY_CONTROL_WORDS 5 /* that are looked at */
#define RUBY_EC_WORDS	   8

_Static_assert(RUBY_WINDOW_WORDS + RUBY_BODY_WORDS <= UNWIND_SCRIPT_WORDS, "room for both");

/* Enclosing blocks that are followed to the method that they are in. */
#define RUBY_BLOCKS_MAX 8

/* Made code is called by the loop and by functions of the same source file (vm.c), so far away. */
#define RUBY_NEAR  (512ull << 10)
#define RUBY_SAVED 3

enum ruby_frame_flag {
	RUBY_LOCAL = 0x2, /* the environment of a method, not of a block in it */
	RUBY_FINISH = 0x20,
	RUBY_BMETHOD = 0x40, /* a block that is a method (define_method) */
	RUBY_MAGIC = 0x7fff0001,
	RUBY_CFUNC = 0x55550001,
};

/* rb_control_frame_t */
struct ruby_control {
	__u64 pc, sp, iseq, self, ep;
};

/* What stands around ep: ep[-2], ep[-1], ep[0]. */
struct ruby_env {
	__u64 entry, previous, flags;
};

/* Before 3.0 one context serves whoever holds the lock: is it this thread's? */
UNWIND_INLINE int ruby_is_own(const struct unwind *w)
{
	__u64 thread = w->script.words[w->runtime.fields[RUBY_EC_THREAD] / 8 % RUBY_EC_WORDS], id;

	if (!w->runtime.fields[RUBY_THREAD_ID])
		return 1;
	/* glibc's pthread_t is the thread pointer. */
	return !lang_read(&id, sizeof(id), thread + w->runtime.fields[RUBY_THREAD_ID]) &&
	       id == w->thread_pointer;
}

UNWIND_INLINE int ruby_begin(struct unwind *w)
{
	__u64 symbol = w->runtime.symbols[RUBY_EC_POINTER], ec;

	if (symbol ? lang_read(&ec, sizeof(ec), lang_address(w, symbol)) : lang_thread(w, &ec))
		return -1;
	/* rb_execution_context_t: {vm_stack, its size in words, cfp, ...} */
	if (lang_read(w->script.words, 8 * RUBY_EC_WORDS, ec) || !ruby_is_own(w))
		return -1;
	w->script.at = w->script.words[2];
	/* The outermost one is no frame. */
	w->script.aux[RUBY_END] =
	    w->script.words[0] + 8 * w->script.words[1] - w->runtime.fields[RUBY_CONTROL_BYTES];
	w->script.begun |= RUBY_FOUND;
	return 0;
}

UNWIND_INLINE int ruby_read_control(struct unwind *w, struct ruby_control *control)
{
	__u64 at = w->script.at, from = w->script.aux[RUBY_WINDOW], index;
	__u64 end = w->script.aux[RUBY_END] + w->runtime.fields[RUBY_CONTROL_BYTES];

	if (at < from || at - from > RUBY_WINDOW_BYTES - 8 * RUBY_CONTROL_WORDS) {
		/* Behind the end there may be nothing to read. */
		from = at + RUBY_WINDOW_BYTES > end ? end - RUBY_WINDOW_BYTES : at;
		if (lang_read(w->script.words, RUBY_WINDOW_BYTES, from))
			return -1;
		w->script.aux[RUBY_WINDOW] = from;
	}
	index = (at - from) / 8;
	if (index > RUBY_WINDOW_WORDS - RUBY_CONTROL_WORDS)
		return -1;
	__builtin_memcpy(control, &w->script.words[index], sizeof(*control));
	return 0;
}

UNWIND_INLINE int ruby_read_entry(__u64 at, __u64 *entry)
{
	if ((at & 7) || at >= RUBY_ADDRESS_MAX)
		return -1;
	return lang_read(entry, 8 * RUBY_ENTRY_WORDS, at);
}

/*
 * The entry of the method that is run, or that has the block that is: its address and its words, 0
 * when there is none. As rb_vm_frame_method_entry() finds it (vm_insnhelper.c).
 */
UNWIND_INLINE __u64 ruby_find_entry(struct ruby_env env, __u64 *entry)
{
	for (int i = 0; i < RUBY_BLOCKS_MAX && !(env.flags & (RUBY_LOCAL | RUBY_BMETHOD)); i++)
		if (lang_read(&env, sizeof(env), (env.previous & ~3ull) - 16))
			return 0;
	if (!env.entry || ruby_read_entry(env.entry, entry))
		return 0;
	/* Instead of it stands what has the method's $~ and $_, if it uses them. */
	if ((entry[RUBY_ENTRY_FLAGS] & RUBY_IMEMO_MASK) == RUBY_IMEMO_SVAR) {
		env.entry = entry[RUBY_SVAR_ENTRY];
		if (ruby_read_entry(env.entry, entry))
			return 0;
	}
	return (entry[RUBY_ENTRY_FLAGS] & RUBY_IMEMO_MASK) == RUBY_IMEMO_ENTRY ? env.entry : 0;
}

UNWIND_INLINE int ruby_is_near(const struct unwind *w, __u64 pc)
{
	__u64 loop = lang_address(w, w->runtime.bias + w->runtime.loops[0].start);

	return pc - loop + RUBY_NEAR <= 2 * RUBY_NEAR;
}

/*
 * Made code, which stands where the loop would: above how many words is its return address? YJIT of
 * 3.1 and 3.2 and RJIT of 3.3 save three registers, one after the other. -1: not found.
 */
UNWIND_INLINE int ruby_find_return(const struct unwind *w, __u64 words[RUBY_SAVED + 1])
{
	if (lang_read(words, 8 * (RUBY_SAVED + 1), w->sp))
		return -1;
	for (int i = RUBY_SAVED; i >= 0; i--)
		if (ruby_is_near(w, words[i]))
			return i;
	return -1;
}

/*
 * Once in an activation: is it the runtime's? Later releases keep frame pointers, too. Neither: it
 * is somebody else's, as are the trampolines of libffi.
 */
UNWIND_INLINE int ruby_is_made(struct unwind *w)
{
	__u64 words[RUBY_SAVED + 1], pc;

	if (w->script.begun & RUBY_OURS)
		return 1;
	if (ruby_find_return(w, words) < 0 &&
	    (!(w->known & UNWIND_KNOWS_FP) || lang_read(&pc, sizeof(pc), w->fp + 8) ||
	     !ruby_is_near(w, pc)))
		return 0;
	w->script.begun |= RUBY_OURS;
	return 1;
}

/* With a frame pointer the native walk goes on by itself. */
UNWIND_INLINE void ruby_leave_made(struct unwind *w)
{
	__u64 words[RUBY_SAVED + 1];
	int i = ruby_find_return(w, words);

	w->script.begun &= ~RUBY_OURS;
	w->script.aux[RUBY_MADE] = w->slots + 2;
	if (i < 0)
		return;
	w->pc = words[i & 3];
	w->sp += 8 * (__u64)(i + 1);
	w->returns = 1;
	w->known &= UNWIND_KNOWS_FP;
	w->script.aux[RUBY_MADE] = w->slots + 1;
}

/*
 * The loop calls a method that is made code already by a function (vm_sendish) whose caller it is,
 * within the same activation: its frames are pushed. From C into a new activation there are more in
 * between.
 */
UNWIND_INLINE int ruby_called_made(struct unwind *w)
{
	__u64 slots = w->script.aux[RUBY_MADE];

	w->script.aux[RUBY_MADE] = 0;
	return slots && slots == w->slots;
}

/* What to push of a control frame. */
struct ruby_frame {
	__u64 object, cookie;
	__u32 where;
};

enum ruby_verdict {
	RUBY_SKIP, /* it is none that scripts see */
	RUBY_PUSH,
	RUBY_LAST, /* the same; with it the activation ends */
	RUBY_NONE, /* there is no further control frame */
	RUBY_LOST,
};

/* entry_at: 0, or where it lies. */
UNWIND_INLINE int ruby_code(struct unwind *w, const struct ruby_control *control, __u64 flags,
			    __u64 entry_at, const __u64 *entry, struct ruby_frame *frame)
{
	__u64 *body = &w->script.words[RUBY_WINDOW_WORDS], position, check;

	if (lang_read(&frame->object, sizeof(frame->object), control->iseq + 16) ||
	    lang_read(body, 8 * RUBY_BODY_WORDS, frame->object))
		return RUBY_LOST;
	position = (control->pc - body[RUBY_BODY_ENCODED]) / 8;
	/* C made it, and has yet to call the loop that is to run it: this loop is a caller's. */
	if (position == 0 && (flags & RUBY_FINISH) && !(w->script.begun & RUBY_PASSED) && w->slots)
		return RUBY_SKIP;
	/* Beyond the code lies what a JIT has left there. */
	if (position > body[RUBY_BODY_HEAD] >> 32 || position > RUBY_POSITION_NONE)
		position = RUBY_POSITION_NONE;
	check = ruby_check(body, entry_at ? entry : NULL);
	frame->where = ruby_where((__u32)position, check);
	frame->cookie = ruby_cookie(entry_at, check);
	return flags & RUBY_FINISH ? RUBY_LAST : RUBY_PUSH;
}

UNWIND_INLINE int ruby_function(const struct unwind *w, __u64 entry_at, const __u64 *entry,
				struct ruby_frame *frame)
{
	__u64 check = ruby_check(NULL, entry);

	/* The innermost one may be half made. Otherwise it is there, but not known. */
	if (!entry_at)
		return w->script.begun & RUBY_PASSED ? RUBY_PUSH : RUBY_SKIP;
	frame->object = entry_at | RUBY_FRAME_C;
	frame->where = (__u32)check;
	frame->cookie = ruby_c_cookie(w->runtime_base, check);
	return RUBY_PUSH;
}

UNWIND_INLINE int ruby_look(struct unwind *w, struct ruby_frame *frame)
{
	__u64 entry[RUBY_ENTRY_WORDS] = {0}, entry_at;
	struct ruby_control control;
	struct ruby_env env;

	if (!(w->script.begun & RUBY_FOUND) && ruby_begin(w))
		return RUBY_LOST;
	if (w->script.at >= w->script.aux[RUBY_END])
		return RUBY_NONE;
	if (ruby_read_control(w, &control))
		return RUBY_LOST;
	w->script.at += w->runtime.fields[RUBY_CONTROL_BYTES];
	if (lang_read(&env, sizeof(env), control.ep - 16))
		return w->script.begun & RUBY_PASSED ? RUBY_LOST : RUBY_SKIP;
	if (control.iseq ? !control.pc : (env.flags & RUBY_MAGIC) != RUBY_CFUNC)
		return RUBY_SKIP;
	entry_at = ruby_find_entry(env, entry);
	return control.iseq ? ruby_code(w, &control, env.flags, entry_at, entry, frame)
			    : ruby_function(w, entry_at, entry, frame);
}

LANG_STEP int ruby_step(struct unwind *w)
{
	struct ruby_frame frame = {0, 0, 0};
	int verdict, stop = UNWIND_GO;

	if (w->script.made ? !ruby_is_made(w) : ruby_called_made(w))
		return lang_done(w);
	verdict = ruby_look(w, &frame);
	w->script.begun |= RUBY_PASSED;
	if (verdict == RUBY_LOST)
		stop = lang_lost(w);
	else if (verdict == RUBY_PUSH || verdict == RUBY_LAST)
		stop = unwind_push_script(w, frame.object, frame.where, frame.cookie);
	if (verdict == RUBY_SKIP || verdict == RUBY_PUSH || stop != UNWIND_GO)
		return stop;
	if (w->script.made)
		ruby_leave_made(w);
	return lang_done(w);
}
