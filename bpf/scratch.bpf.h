/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * Where one sample is made (bpf/sample.bpf.c): the record, the state of the walk, and what both need.
 * Too large for the BPF stack; there is one for each cpu.
 */
#ifndef SCONCE_BPF_SCRATCH_BPF_H
#define SCONCE_BPF_SCRATCH_BPF_H

#include "bpf/walk.bpf.h"

#ifndef PAGE_BYTES
#define PAGE_BYTES 4096
#endif

/*
 * One read of user memory takes some 75 ns whatever its length, which is most of what a frame
 * takes, so that the walk reads on: what it will ask for next stands directly above.
 */
#define WINDOW_BYTES 512ull

#define FRAMES_MAX (RECORD_KERNEL_FRAMES_MAX + RECORD_USER_FRAMES_MAX)
#define HEAD_BYTES sizeof(struct record_sample)
/* A record ends in frames or in bytes of the stack, never both. */
#define WALKED_BYTES (HEAD_BYTES + FRAMES_MAX * sizeof(struct frame))
#define DEFERRED_BYTES                                                                             \
	(HEAD_BYTES + RECORD_KERNEL_FRAMES_MAX * sizeof(struct frame) +                            \
	 sizeof(struct record_regs) + RECORD_STACK_BYTES_MAX)

struct scratch {
	struct unwind walk;
	struct record_regs regs;
	__u64 kernel_ips[RECORD_KERNEL_FRAMES_MAX];
	__u64 window_at; /* the user address of the window; 0 = empty */
	__u64 window[WINDOW_BYTES / 8];
	union {
		struct record_sample sample;
		/* The verifier adds the largest offset to the longest read; they never meet. */
		char record[DEFERRED_BYTES + PAGE_BYTES];
	};
};

_Static_assert(sizeof(struct scratch) <= RECORD_BYTES_MAX, "a unit of the per-cpu allocator");
_Static_assert(WALKED_BYTES <= DEFERRED_BYTES + PAGE_BYTES, "a walked stack fits");

/* --- A part of the seam of bpf/walk.bpf.h; struct unwind is the first member of struct scratch. --- */

UNWIND_INLINE struct frame *unwind_slot(struct unwind *w, __u64 slot)
{
	struct scratch *s = (struct scratch *)w;

	slot += s->sample.kernel_frames;
	if (slot >= FRAMES_MAX)
		return NULL;
	return &s->sample.frames[slot];
}

#endif
