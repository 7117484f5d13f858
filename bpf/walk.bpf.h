/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * The state of the walk of bpf/unwind.bpf.h and how a frame is pushed: what the walkers of languages
 * share with it. Whoever includes this defines unwind_slot().
 */
#ifndef SCONCE_BPF_WALK_BPF_H
#define SCONCE_BPF_WALK_BPF_H

#include <linux/types.h>

#include "bpf/tables.h"
#include "shm/record.h"
#include "shm/table.h"

#define UNWIND_INLINE static inline __attribute__((always_inline))

/* What a step returns: UNWIND_GO, or the enum record_stop with which the stack ends. */
#define UNWIND_GO (-1)

/* Halvings of the binary search: enough for slices of a million ranges. */
#define UNWIND_SEARCH_STEPS 20

enum unwinder {
	UNWIND_NATIVE, /* by rows where the file has a table, else by frame pointers */
	UNWIND_SCRIPT, /* by what a language's runtime keeps (bpf/lang.bpf.h) */
};

#define UNWIND_KNOWS_FP 1  /* fp is the one of this frame */
#define UNWIND_KNOWS_ALL 2 /* extra too: in a leaf, and in what a signal interrupted */
#define UNWIND_KNOWS_RBX 4 /* as of this frame: at rbx_at, or still where the leaf has it */

#define UNWIND_SCRIPT_WORDS 64

/* Of a language's walker, from step to step; 0 where a stack begins. */
struct unwind_script {
	__u64 at;     /* the script frame to push next; 0: not looked for yet, or behind the last one */
	__u64 aux[4]; /* the language's */
	__u32 begun;  /* the language's too; what it needs of the thread is found */
	__u32 ended;  /* there is nothing more in this stack */
	__u32 made;   /* the walk stands in code that the runtime has made */
	__u32 file;   /* whose all this is: the file id of the first runtime in this stack; 0 = nobody's */
	__u64 words[UNWIND_SCRIPT_WORDS]; /* to read into: the BPF stack is small */
};

struct unwind {
	__u64 pc, sp, fp;
	__u64 extra[16]; /* by enum rule_register; those of sp and fp are not used */
	__u64 rbx_at;	 /* 0: in extra. Read when it is needed, which is hardly ever */
	__u32 known;	 /* UNWIND_KNOWS_* */
	__u32 first, count; /* the process's slice of ranges; hostile */
	__u32 slots;	    /* frames pushed */
	__s32 stop;	    /* UNWIND_GO until the walk has ended, then enum record_stop */
	__u32 unwinder;	    /* enum unwinder */
	__u32 returns;	    /* pc stands behind a call, or behind the syscall of the leaf */
	__u32 strays;	    /* the leaf lies in no range */
	__u32 scripted;	    /* the script frames of the loop that the walk stands in are pushed */
	__u32 runtime_file; /* the file id that `runtime` is of; 0 = none */
	__u32 made_by; /* 1 + the index in the slice of the range whose file has the process's runtime; hostile */
	__u32 unused;
	__u64 file_base;    /* where the beginning of w->file would lie in this process */
	__u64 runtime_base; /* what its file's addresses are counted from, in this process */
	__u64 thread_pointer;
	struct record_range last; /* found last: callers mostly lie in the same file */
	struct bpf_file file;	  /* asked for last, likewise */
	struct table_rule rule;	  /* of this step */
	struct table_runtime runtime;
	struct unwind_script script;
};

/* Where the frame of this slot goes; NULL when there is no room. */
UNWIND_INLINE struct frame *unwind_slot(struct unwind *w, __u64 slot);

UNWIND_INLINE int unwind_push(struct unwind *w, __u32 kind, __u32 flags, __u32 file_id, __u64 addr)
{
	struct frame *frame;

	if (w->slots >= RECORD_USER_FRAMES_MAX)
		return STOP_DEPTH;
	frame = unwind_slot(w, w->slots);
	if (!frame)
		return STOP_DEPTH;
	frame->kind = kind;
	frame->flags = flags;
	frame->language = 0;
	frame->file_id = file_id;
	frame->addr = addr;
	w->slots++;
	return UNWIND_GO;
}

/* A frame of a script, in two slots or not at all. object, where, cookie: see FRAME_SCRIPT. */
UNWIND_INLINE int unwind_push_script(struct unwind *w, __u64 object, __u32 where, __u64 cookie)
{
	struct frame *frame;

	if (w->slots + 2 > RECORD_USER_FRAMES_MAX ||
	    unwind_push(w, FRAME_SCRIPT, 0, w->runtime_file, object) != UNWIND_GO)
		return STOP_DEPTH;
	frame = unwind_slot(w, w->slots - 1);
	if (frame)
		frame->language = w->runtime.language;
	return unwind_push(w, FRAME_COOKIE, 0, where, cookie);
}

#endif
