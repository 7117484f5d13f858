/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lang/hostwalk.h"

#include <string.h>

#include "bpf/langs.h"
#include "bpf/scratch.bpf.h"
#include "bpf/unwind.bpf.h"

/* The seam is handed a pointer to the first member. Nothing may stand behind the frames that it
 * ends in. */
static struct scratch scratch;
static struct snapshot *walked;
static hostwalk_table_fn *tables;
static const struct table_header *table; /* of w->file */

UNWIND_INLINE int unwind_read_user(const struct unwind *w, __u64 from, __u64 *words, __u64 n)
{
	(void)w;
	return snapshot_read(walked, from, words, 8 * n) ? UNWIND_GO : STOP_READ_FAULT;
}

UNWIND_INLINE const struct record_range *unwind_range(const struct unwind *w, __u64 index)
{
	(void)w;
	return index < walked->head.ranges_n ? &walked->head.ranges[index] : NULL;
}

UNWIND_INLINE void unwind_file(struct unwind *w, __u32 file_id)
{
	table = tables(file_id);
	w->file.file_id = file_id;
	w->file.flags = table ? BPF_FILE_TABLE : 0;
	if (!table)
		return;
	w->file.flags |= table->runtimes ? BPF_FILE_RUNTIME : 0;
	w->file.first = 0;
	w->file.first_page = table->first_page;
	w->file.pages = table->pages;
	w->file.rows = table->rows;
	w->file.rules = table->rules;
}

UNWIND_INLINE const __u32 *unwind_chunk(const struct unwind *w, __u64 index)
{
	(void)w, (void)index;
	return table ? (const __u32 *)(table + 1) : NULL;
}

UNWIND_INLINE const __u32 *unwind_word(const struct unwind *w, const __u32 *chunk, __u64 index)
{
	(void)w;
	return index < table_words(table) ? &chunk[index] : NULL;
}

#define LANGUAGE(NAME, name) int name##_step(struct unwind *w);
LANGUAGES(LANGUAGE)
#undef LANGUAGE

/* As in bpf/sample.bpf.c. */
UNWIND_INLINE int unwind_script(struct unwind *w)
{
	switch (w->runtime.language) {
#define LANGUAGE(NAME, name)                                                                       \
	case LANG_##NAME:                                                                          \
		return name##_step(w);
		LANGUAGES(LANGUAGE)
#undef LANGUAGE
	}
	w->script.ended = 1;
	w->unwinder = UNWIND_NATIVE;
	return UNWIND_GO;
}

uint32_t hostwalk(struct snapshot *snapshot, hostwalk_table_fn *by, struct frame *frames,
		  enum record_stop *stop)
{
	struct unwind *w = &scratch.walk;

	memset(&scratch, 0, sizeof(scratch));
	walked = snapshot;
	tables = by;
	snapshot_use(snapshot);
	unwind_start(w, &snapshot->head.regs, 0, snapshot->head.ranges_n);
	w->made_by = snapshot->head.made_by;
	w->thread_pointer = snapshot->head.thread_pointer;
	unwind_walk(w);
	*stop = (enum record_stop)w->stop;
	memcpy(frames, scratch.sample.frames, w->slots * sizeof(*frames));
	return w->slots;
}
