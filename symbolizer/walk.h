/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk of bpf/unwind.bpf.h over registers and bytes of stack, for samples that the kernel could
 * not walk because it did not know the process yet.
 */
#ifndef SCONCE_SYMBOLIZER_WALK_H
#define SCONCE_SYMBOLIZER_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "shm/record.h"
#include "symbolizer/filetable.h"

/*
 * ranges: sorted. stack: the bytes from regs->sp upwards, or from a little below it
 * (RECORD_REGS_BELOW). frames: room for RECORD_USER_FRAMES_MAX.
 * How many frames were found; *stop says why it ended: STOP_DEFERRED when a file on the way is not
 * here, which then is tables->missing.
 */
uint32_t walk_stack(const struct record_range *ranges, uint32_t ranges_n,
		    const struct record_regs *regs, const void *stack, size_t stack_bytes,
		    struct filetables *tables, struct frame *frames, enum record_stop *stop);

#endif
