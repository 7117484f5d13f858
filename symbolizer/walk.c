/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/walk.h"

#include <string.h>

#include "bpf/unwind.bpf.h"

struct walk {
	struct unwind unwind; /* first: the seam is handed a pointer to it */
	const struct record_range *ranges;
	uint32_t ranges_n;
	uint64_t stack_start;
	const char *stack;
	size_t stack_bytes;
	struct frame *frames;
	struct filetables *tables;
	const struct table_header *table; /* of w->file */
};

UNWIND_INLINE int unwind_read_user(const struct unwind *w, __u64 from, __u64 *words, __u64 n)
{
	const struct walk *walk = (const struct walk *)w;
	uint64_t offset = from - walk->stack_start;

	if (from < walk->stack_start || offset > walk->stack_bytes ||
	    walk->stack_bytes - offset < 8 * n)
		return STOP_STACK_END;
	memcpy(words, walk->stack + offset, 8 * n);
	return UNWIND_GO;
}

UNWIND_INLINE const struct record_range *unwind_range(const struct unwind *w, __u64 index)
{
	const struct walk *walk = (const struct walk *)w;

	return index < walk->ranges_n ? &walk->ranges[index] : NULL;
}

UNWIND_INLINE struct frame *unwind_slot(struct unwind *w, __u64 slot)
{
	struct walk *walk = (struct walk *)w;

	return slot < RECORD_USER_FRAMES_MAX ? &walk->frames[slot] : NULL;
}

/* Without the file the walk cannot go on, or has to guess; the caller decides whether to wait. */
UNWIND_INLINE void unwind_file(struct unwind *w, __u32 file_id)
{
	struct walk *walk = (struct walk *)w;
	bool missing;

	walk->table = filetable_get(walk->tables, file_id, &missing);
	w->file.file_id = file_id;
	w->file.flags = walk->table ? BPF_FILE_TABLE : missing ? BPF_FILE_DEFER : 0;
	if (!walk->table)
		return;
	w->file.flags |= walk->table->runtimes ? BPF_FILE_RUNTIME : 0;
	w->file.first = 0;
	w->file.first_page = walk->table->first_page;
	w->file.pages = walk->table->pages;
	w->file.rows = walk->table->rows;
	w->file.rules = walk->table->rules;
}

UNWIND_INLINE const __u32 *unwind_chunk(const struct unwind *w, __u64 index)
{
	const struct walk *walk = (const struct walk *)w;

	(void)index;
	return walk->table ? (const __u32 *)(walk->table + 1) : NULL;
}

UNWIND_INLINE const __u32 *unwind_word(const struct unwind *w, const __u32 *chunk, __u64 index)
{
	const struct table_header *table = ((const struct walk *)w)->table;

	return index < table_words(table) ? &chunk[index] : NULL;
}

/* The memory of the process as it was then is not here. */
UNWIND_INLINE int unwind_script(struct unwind *w)
{
	w->unwinder = UNWIND_NATIVE;
	return unwind_push_script(w, 0, 0, 0);
}

uint32_t walk_stack(const struct record_range *ranges, uint32_t ranges_n,
		    const struct record_regs *regs, const void *stack, size_t stack_bytes,
		    struct filetables *tables, struct frame *frames, enum record_stop *stop)
{
	struct walk walk = {
	    .ranges = ranges,
	    .ranges_n = ranges_n,
	    .stack_start = regs->sp - (regs->flags & RECORD_REGS_BELOW ? RECORD_STACK_BELOW : 0),
	    .stack = stack,
	    .stack_bytes = stack_bytes,
	    .frames = frames,
	    .tables = tables,
	};

	tables->missing = NULL;
	unwind_start(&walk.unwind, regs, 0, ranges_n);
	unwind_walk(&walk.unwind);
	*stop = (enum record_stop)walk.unwind.stop;
	return walk.unwind.slots;
}
