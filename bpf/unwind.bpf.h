/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * The walk of a user stack: one state machine, compiled into the BPF program and into the
 * symbolizer, so that a stack that could not be walked in the kernel is walked by the same rules
 * outside.
 *
 * The includer embeds struct unwind in a struct of its own, sets it up with unwind_start(), and
 * defines, after the #include, the functions of the seam below. It then calls unwind_walk().
 *
 * One step pushes the frame that the walk stands on and moves to its caller. `unwinder` says which
 * unwinder takes the step; each leaves it set to the one that goes on. A new unwinder (a language
 * runtime) is one number, one function and one case in unwind_step().
 *
 * The surprise: the state is kept in memory that the verifier knows nothing of (a map value, not
 * the BPF stack). If it could follow `slots` from step to step it would, up to the last of 1,024.
 */
#ifndef SCONCE_BPF_UNWIND_BPF_H
#define SCONCE_BPF_UNWIND_BPF_H

#include "bpf/langs.h"
#include "bpf/walk.bpf.h"

/* --- The seam: functions that are defined by whoever includes this. --- */

/* Read n words of user memory. UNWIND_GO, or STOP_READ_FAULT, or STOP_STACK_END. */
UNWIND_INLINE int unwind_read_user(const struct unwind *w, __u64 from, __u64 *words, __u64 n);
/* The range at an index (of the whole array, not of the slice); NULL when there is none such. */
UNWIND_INLINE const struct record_range *unwind_range(const struct unwind *w, __u64 index);
/* Set w->file: how to walk out of this file. 0 in its flags: by frame pointers. */
UNWIND_INLINE void unwind_file(struct unwind *w, __u32 file_id);
/*
 * Words of table memory, first the chunk that holds word `index` (of the array that w->file.first is
 * an index of), then the word. NULL when there is none.
 */
UNWIND_INLINE const __u32 *unwind_chunk(const struct unwind *w, __u64 index);
UNWIND_INLINE const __u32 *unwind_word(const struct unwind *w, const __u32 *chunk, __u64 index);
/* A step of the walker of w->runtime.language: see bpf/lang.bpf.h. */
UNWIND_INLINE int unwind_script(struct unwind *w);

/* --- The walk. --- */

UNWIND_INLINE void unwind_start(struct unwind *w, const struct record_regs *regs, __u32 first,
				__u32 count)
{
	w->pc = regs->pc;
	w->sp = regs->sp;
	w->fp = regs->fp;
	__builtin_memcpy(w->extra + RULE_RAX, regs->extra, sizeof(regs->extra));
	w->known = UNWIND_KNOWS_FP | UNWIND_KNOWS_ALL | UNWIND_KNOWS_RBX;
	w->rbx_at = 0;
	w->first = first;
	w->count = count;
	w->slots = 0;
	w->stop = UNWIND_GO;
	w->unwinder = UNWIND_NATIVE;
	w->returns = !!(regs->flags & RECORD_REGS_SYSCALL);
	w->strays = 0;
	w->scripted = 0;
	w->runtime_file = 0;
	w->made_by = 0;
	w->thread_pointer = 0;
	w->script.at = w->script.begun = w->script.ended = w->script.made = w->script.file = 0;
	__builtin_memset(w->script.aux, 0, sizeof(w->script.aux));
	w->last.start = w->last.end = 0;
	w->file.file_id = 0;
}

/* Where the walk looks things up: a call may be the last instruction of its function. */
UNWIND_INLINE __u64 unwind_inside(const struct unwind *w)
{
	return w->pc - (w->returns ? 1 : 0);
}

/*
 * Find the range that holds pc and leave it in `last`. Whatever a hostile table says, the search
 * ends, and the range found holds pc. The halves do not depend on what is read, which keeps the
 * paths few that the verifier has to follow.
 */
UNWIND_INLINE int unwind_find_range(struct unwind *w, __u64 pc)
{
	const struct record_range *range;
	__u64 low = w->first, left = w->count;

	if (pc >= w->last.start && pc < w->last.end)
		return 1;
	if (left == 0)
		return 0;
	for (int i = 0; i < UNWIND_SEARCH_STEPS && left > 1; i++) {
		__u64 half = left >> 1;

		range = unwind_range(w, low + half);
		if (range && range->start <= pc)
			low += half;
		left -= half;
	}
	range = unwind_range(w, low);
	if (!range)
		return 0;
	/* The slice may be written while we look, so the copy is what is checked. */
	w->last = *range;
	return pc >= w->last.start && pc < w->last.end;
}

/*
 * Push the pc that the walk stands on; mapped: it lies in `last`. The leaf's comes from the CPU and is
 * always shown. A return address comes from memory that the process, or a hostile table, may point
 * anywhere: unless it lies in an executable range it is no code and is not shown.
 */
UNWIND_INLINE int unwind_push_pc(struct unwind *w, int mapped)
{
	__u32 flags = w->returns ? FRAME_RETURN : 0;

	if (!mapped) {
		w->strays = !w->slots;
		return w->slots ? STOP_NO_MAPPING : unwind_push(w, FRAME_PC, flags, 0, w->pc);
	}
	if (w->last.file_id)
		return unwind_push(w, FRAME_NATIVE, flags, w->last.file_id,
				   w->pc - w->last.start + w->last.offset);
	if (w->last.flags & RANGE_ANON)
		flags |= FRAME_ANON;
	return unwind_push(w, FRAME_PC, flags, 0, w->pc);
}

#include "bpf/rows.bpf.h"

/*
 * Frame pointers: [fp] = the caller's fp, [fp + 8] = the return address. A leaf that was
 * interrupted before its prologue set fp, and one that sets none, loses its caller this way: fp is
 * still the caller's, so that the next return address is that of the caller's caller.
 */
UNWIND_INLINE int unwind_frame_pointer(struct unwind *w)
{
	__u64 words[2];
	int stop;

	if (!(w->known & UNWIND_KNOWS_FP))
		return STOP_FRAME_POINTER;
	/* The first function of a thread is started with fp 0. */
	if (w->fp == 0)
		return STOP_COMPLETE;
	/* fp equals sp in a leaf that keeps its variables in the red zone. */
	if (w->fp < w->sp || (w->fp & 7))
		return STOP_FRAME_POINTER;
	stop = unwind_read_user(w, w->fp, words, 2);
	if (stop != UNWIND_GO)
		return stop;
	if (words[1] == 0)
		return STOP_COMPLETE;
	/* The caller's sp is above this frame: fp grows with every step, no chain is a ring. */
	w->sp = w->fp + 16;
	w->fp = words[0];
	w->pc = words[1];
	w->returns = 1;
	w->known = UNWIND_KNOWS_FP;
	return UNWIND_GO;
}

/*
 * Set w->file to the file whose table says how to go on from `last`: the one that is mapped there. For
 * code in no file it is that of the process's runtime, which may have made it. Has it a runtime?
 */
UNWIND_INLINE int unwind_look_up(struct unwind *w)
{
	const struct record_range *range = NULL;
	__u32 file_id = w->last.file_id;

	w->file_base = w->last.start - w->last.offset;
	if (!file_id && (w->last.flags & RANGE_ANON) && w->made_by && w->made_by <= w->count)
		range = unwind_range(w, (__u64)w->first + w->made_by - 1);
	if (range) {
		file_id = range->file_id;
		w->file_base = range->start - range->offset;
	}
	if (file_id && w->file.file_id != file_id)
		unwind_file(w, file_id);
	return file_id && (w->file.flags & BPF_FILE_RUNTIME);
}

/* What the table of w->file says of its runtime, into w->runtime. */
UNWIND_INLINE int unwind_load_runtime(struct unwind *w)
{
	__u64 at = w->file.first + TABLE_WORDS(w->file.pages, w->file.rows, w->file.rules);
	struct rows_chunk chunk = {0};
	__u32 words[4];

	w->runtime_file = 0;
	/* It stands behind the rules, so that these are never in two chunks, either. */
	for (__u32 i = 0; i < TABLE_RUNTIME_WORDS; i += 4) {
		if (rows_read(w, &chunk, at + i, words, 4) != UNWIND_GO)
			return 0;
		__builtin_memcpy((char *)&w->runtime + 4 * i, words, sizeof(words));
	}
	w->runtime_file = w->file.file_id;
	return 1;
}

UNWIND_INLINE int unwind_makes_code(const struct unwind *w)
{
	__u32 language = w->runtime.language;

	return language < LANG_COUNT && (LANGS_WITH_MADE >> language & 1);
}

UNWIND_INLINE int unwind_in_loop(const struct unwind *w, __u64 offset)
{
	for (int i = 0; i < TABLE_LOOPS; i++)
		if (offset >= w->runtime.loops[i].start && offset < w->runtime.loops[i].end)
			return 1;
	return 0;
}

/*
 * The walk stands in a file that has a runtime, or in code that it may have made. Is it where the
 * runtime runs scripts, and have their frames still to be pushed?
 */
UNWIND_INLINE int unwind_runs_script(struct unwind *w, __u64 inside)
{
	if (w->scripted || w->script.ended)
		return 0;
	if (w->runtime_file != w->file.file_id && !unwind_load_runtime(w))
		return 0;
	w->runtime_base = w->file_base - w->runtime.bias;
	w->script.made = !w->last.file_id;
	return w->script.made ? unwind_makes_code(w) : unwind_in_loop(w, inside - w->file_base);
}

/*
 * By frame pointers goes what nobody has a table for: code made at run time, files that say nothing
 * of unwinding.
 */
UNWIND_INLINE int unwind_native(struct unwind *w)
{
	__u64 inside = unwind_inside(w);
	int mapped = unwind_find_range(w, inside), stop;

	if (mapped && unwind_look_up(w) && unwind_runs_script(w, inside)) {
		w->scripted = 1;
		w->unwinder = UNWIND_SCRIPT;
		return UNWIND_GO;
	}
	w->scripted = 0;
	stop = unwind_push_pc(w, mapped);
	if (stop != UNWIND_GO)
		return stop;
	if (!mapped || !w->last.file_id)
		return unwind_frame_pointer(w);
	if (w->file.flags & BPF_FILE_TABLE)
		return rows_step(w, inside - w->file_base);
	return w->file.flags & BPF_FILE_DEFER ? STOP_DEFERRED : unwind_frame_pointer(w);
}

/*
 * What is kept from step to step is of the first runtime in a stack. Of another one (Perl in a Python
 * program) it is only said that something runs here.
 */
UNWIND_INLINE int unwind_first_script(struct unwind *w)
{
	if (!w->script.file)
		w->script.file = w->runtime_file;
	if (w->script.file == w->runtime_file)
		return unwind_script(w);
	w->unwinder = UNWIND_NATIVE;
	return unwind_push_script(w, 0, 0, 0);
}

/* The callback of bpf_loop; 1 ends the loop. context points to a struct unwind *. */
static long unwind_step(__u64 index, void *context)
{
	struct unwind *w = *(struct unwind **)context;
	int stop;

	(void)index;
	switch (w->unwinder) {
	case UNWIND_NATIVE:
		stop = unwind_native(w);
		break;
	case UNWIND_SCRIPT:
		stop = unwind_first_script(w);
		break;
	default:
		stop = STOP_BAD_ROW;
	}
	w->stop = stop;
	return stop != UNWIND_GO;
}

/* Not every step pushes a frame: two more are taken into each run of script frames and out of it. */
#define UNWIND_STEPS_MAX (3 * RECORD_USER_FRAMES_MAX + 1)

/* Walk until the stack ends: `slots` frames pushed, `stop` says why. */
UNWIND_INLINE void unwind_walk(struct unwind *w)
{
	/* Many enough that the stack that just fits ends with its own reason. */
#ifdef __bpf__
	bpf_loop(UNWIND_STEPS_MAX, unwind_step, &w, 0);
#else
	for (__u64 i = 0; i < UNWIND_STEPS_MAX; i++)
		if (unwind_step(i, &w))
			break;
#endif
	if (w->stop == UNWIND_GO)
		w->stop = STOP_DEPTH;
}

#endif
