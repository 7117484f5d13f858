/* SPDX-License-Identifier: Apache-2.0 */
/* See chain.h. The seam of bpf/unwind.bpf.h over the bytes of one record. */
#include "tests/bpf/chain.h"

#include <string.h>

#include "bpf/unwind.bpf.h"
#include "tests/bpf/busy.h"

struct outside {
	struct unwind walk; /* first: the seam finds the rest by it */
	const struct record_regs *regs;
	const char *stack;
	uint32_t stack_bytes;
	const struct rig_process *process;
	struct chain *chain;
};

UNWIND_INLINE int unwind_read_user(const struct unwind *w, __u64 from, __u64 *words, __u64 n)
{
	const struct outside *o = (const struct outside *)w;
	uint64_t start = o->regs->sp - (o->regs->flags & RECORD_REGS_BELOW ? RECORD_STACK_BELOW : 0);
	uint64_t at = from - start;

	if (from < start || o->stack_bytes < 8 * n || at > o->stack_bytes - 8 * n)
		return STOP_STACK_END;
	memcpy(words, o->stack + at, 8 * n);
	return UNWIND_GO;
}

UNWIND_INLINE const struct record_range *unwind_range(const struct unwind *w, __u64 index)
{
	const struct outside *o = (const struct outside *)w;

	return index < o->process->ranges_n ? &o->process->ranges[index] : NULL;
}

UNWIND_INLINE struct frame *unwind_slot(struct unwind *w, __u64 slot)
{
	return &((struct outside *)w)->chain->frames[slot];
}

/* One table, in plain memory. */
UNWIND_INLINE void unwind_file(struct unwind *w, __u32 file_id)
{
	const struct chain *chain = ((struct outside *)w)->chain;

	w->file = chain->file;
	if (file_id != chain->file.file_id)
		w->file.flags = 0;
	w->file.file_id = file_id;
}

UNWIND_INLINE const __u32 *unwind_chunk(const struct unwind *w, __u64 index)
{
	(void)index;
	return ((const struct outside *)w)->chain->words;
}

UNWIND_INLINE const __u32 *unwind_word(const struct unwind *w, const __u32 *chunk, __u64 index)
{
	return index < ((const struct outside *)w)->chain->words_n ? &chunk[index] : NULL;
}

/* The memory of the process as it was then is not here. */
UNWIND_INLINE int unwind_script(struct unwind *w)
{
	w->unwinder = UNWIND_NATIVE;
	return unwind_push_script(w, 0, 0, 0);
}

void chain_walk(struct chain *chain, const struct record_sample *sample,
		const struct rig_process *process)
{
	struct outside o = {
		.regs = rig_regs(sample),
		.stack = (const char *)(rig_regs(sample) + 1),
		.stack_bytes = sample->stack_bytes,
		.process = process,
		.chain = chain,
	};

	unwind_start(&o.walk, o.regs, 0, process->ranges_n);
	unwind_walk(&o.walk);
	chain->n = o.walk.slots;
	chain->stop = (enum record_stop)o.walk.stop;
}

/* Back from {file id, file offset} to an address. */
static uintptr_t chain_pc(const struct frame *frame, const struct rig_process *process)
{
	for (uint32_t i = 0; i < process->ranges_n; i++) {
		const struct record_range *range = &process->ranges[i];

		if (frame->file_id == range->file_id && frame->addr >= range->offset &&
		    frame->addr - range->offset <= range->end - range->start)
			return frame->addr - range->offset + range->start;
	}
	return 0;
}

bool chain_is_nest(const struct frame *frames, uint32_t n, const struct rig_process *process)
{
	if (n < BUSY_NEST)
		return false;
	for (int i = 0; i < BUSY_NEST; i++) {
		if (frames[i].kind != FRAME_NATIVE || frames[i].flags != (i ? FRAME_RETURN : 0))
			return false;
		if (!busy_nest_holds(BUSY_NEST - i, chain_pc(&frames[i], process)))
			return false;
	}
	return true;
}
