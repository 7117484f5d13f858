/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames -> locations, processes -> process definitions. What a frame is called is worked out once
 * per epoch and kept in a cache of fixed size, so that a hot frame costs one look.
 *
 * A frame is never left out: without a symbol it is [module+0xaddress], without a mapping
 * [unknown], in the kernel [kernel], of a script the name of its language.
 */
#ifndef SCONCE_SYMBOLIZER_SYMBOLIZE_H
#define SCONCE_SYMBOLIZER_SYMBOLIZE_H

#include <stdint.h>

#include "symbolizer/define.h"
#include "symbolizer/files.h"
#include "symbolizer/jit.h"
#include "symbolizer/kallsyms.h"
#include "symbolizer/process.h"
#include "symbolizer/scripts.h"

enum symbolize_outcome { FRAME_NAMED, FRAME_UNNAMED, FRAME_UNKNOWN, FRAME_OUTCOMES };

struct symbolize {
	struct define *define;
	struct files *files;
	struct kallsyms *kallsyms;
	struct jit *jit;
	uint64_t time_ns; /* of the present stack */
	struct scripts *scripts;
	struct symbolize_cached *cache;
	uint32_t kernel_generation;
	const char *kernel_build_id; /* in hex; "" = not known */
	uint32_t locations[SYMBOL_STACK_FRAMES_MAX];
	uint32_t locations_n;
	uint64_t outcomes[FRAME_OUTCOMES]; /* of the present stack */
};

/* All of it stays the caller's. */
int symbolize_open(struct symbolize *s, struct define *define, struct files *files,
		   struct kallsyms *kallsyms, const char *kernel_build_id, struct jit *jit,
		   struct scripts *scripts);
void symbolize_close(struct symbolize *s);

/* Modules or programs came or went: kernel frames may be called otherwise now. */
void symbolize_forget_kernel(struct symbolize *s);

/* A stack of that time: what code made at run time is called depends on it. */
void symbolize_begin(struct symbolize *s, uint64_t time_ns);
/*
 * Append a frame to the stack, leaf first; next: the one behind it, NULL if it is the last. 0, or
 * -ENOSPC when the definition log is full.
 */
int symbolize_frame(struct symbolize *s, const struct process *process, const struct frame *frame,
		    const struct frame *next);
/* The stack's id, or 0 when the log is full. */
uint32_t symbolize_end(struct symbolize *s);

/* The process's id in this epoch, or 0 when the log is full. */
uint32_t symbolize_process(struct symbolize *s, struct process *process);

#endif
