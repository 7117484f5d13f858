/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack, ranges and a table made by hand, and the walk of bpf/unwind.bpf.h over them as an
 * ordinary program: the seam that it asks for. For the tests of the walk.
 */
#ifndef SCONCE_TESTS_BPF_WALK_IMAGE_H
#define SCONCE_TESTS_BPF_WALK_IMAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/unwind.bpf.h"

#define STACK_BASE 0x7ffc00000000ull
#define STACK_WORDS 4096
#define RANGES_MAX 64
#define CODE 0x400000ull
#define CODE_BYTES 0x10000ull
#define LIBRARY 0x7f0000000000ull
#define JIT 0x7e0000000000ull

struct image {
	struct unwind walk; /* first: the seam finds the image by it */
	struct record_regs regs;
	uint64_t words[STACK_WORDS];
	struct record_range ranges[RANGES_MAX];
	uint32_t ranges_n;
	uint32_t range_reads;
	/* The table of one file: what stands in bpf's chunks, from its first word on. */
	struct bpf_file file;
	uint32_t *table;
	uint32_t table_n, word_reads;
	struct frame frames[RECORD_USER_FRAMES_MAX];
};

UNWIND_INLINE int unwind_read_user(const struct unwind *w, __u64 from, __u64 *words, __u64 n)
{
	const struct image *image = (const struct image *)w;

	if (from < STACK_BASE || from > STACK_BASE + sizeof(image->words) - 8 * n)
		return STOP_READ_FAULT;
	memcpy(words, (const char *)image->words + (from - STACK_BASE), 8 * n);
	return UNWIND_GO;
}

UNWIND_INLINE const struct record_range *unwind_range(const struct unwind *w, __u64 index)
{
	struct image *image = (struct image *)(uintptr_t)w;

	image->range_reads++;
	return index < image->ranges_n ? &image->ranges[index] : NULL;
}

UNWIND_INLINE struct frame *unwind_slot(struct unwind *w, __u64 slot)
{
	assert_true(slot < RECORD_USER_FRAMES_MAX);
	return &((struct image *)w)->frames[slot];
}

UNWIND_INLINE void unwind_file(struct unwind *w, __u32 file_id)
{
	const struct image *image = (const struct image *)w;

	w->file = image->file;
	if (file_id != image->file.file_id)
		w->file.flags = 0;
	w->file.file_id = file_id;
}

UNWIND_INLINE const __u32 *unwind_chunk(const struct unwind *w, __u64 index)
{
	const struct image *image = (const struct image *)w;

	return index < image->table_n ? image->table : NULL;
}

UNWIND_INLINE const __u32 *unwind_word(const struct unwind *w, const __u32 *chunk, __u64 index)
{
	struct image *image = (struct image *)(uintptr_t)w;

	image->word_reads++;
	return index < image->table_n ? &chunk[index] : NULL;
}

#define IMAGE_SCRIPT 0x5c417 /* the object of every script frame */

UNWIND_INLINE int unwind_script(struct unwind *w)
{
	w->unwinder = UNWIND_NATIVE;
	return unwind_push_script(w, IMAGE_SCRIPT, 0, 0);
}

static inline void image_add_range(struct image *image, uint64_t start, uint64_t bytes, uint64_t offset,
			    uint32_t file_id, uint32_t flags)
{
	image->ranges[image->ranges_n++] =
		(struct record_range){start, start + bytes, offset, file_id, flags};
}

/* A program, JIT code and a library; leaf at CODE + 0x10, sp at the bottom, fp `fp` words up. */
static inline void image_init(struct image *image, unsigned fp)
{
	memset(image, 0, sizeof(*image));
	image_add_range(image, CODE, CODE_BYTES, 0x1000, 7, 0);
	image_add_range(image, JIT, CODE_BYTES, 0, 0, RANGE_ANON);
	image_add_range(image, LIBRARY, CODE_BYTES, 0x2000, 9, 0);
	image->regs.pc = CODE + 0x10;
	image->regs.sp = STACK_BASE;
	image->regs.fp = STACK_BASE + fp * 8;
}

/* A stack frame at word `at`: the caller's fp at word `caller`, and where it returns to. */
static inline void image_frame(struct image *image, unsigned at, unsigned caller, uint64_t pc)
{
	image->words[at] = STACK_BASE + caller * 8;
	image->words[at + 1] = pc;
}

static inline enum record_stop image_walk(struct image *image, uint32_t first, uint32_t count)
{
	unwind_start(&image->walk, &image->regs, first, count);
	unwind_walk(&image->walk);
	assert_true(image->walk.slots <= RECORD_USER_FRAMES_MAX);
	return (enum record_stop)image->walk.stop;
}

static inline void assert_frame(const struct frame *frame, unsigned kind, unsigned flags,
			 uint32_t file_id, uint64_t addr)
{
	assert_int_equal(frame->kind, kind);
	assert_int_equal(frame->flags, flags);
	assert_int_equal(frame->file_id, file_id);
	assert_int_equal(frame->addr, addr);
}

static inline uint64_t random_next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Unsorted, overlapping, backward ranges over a stack of nonsense. */
static inline void image_scramble(struct image *image, uint64_t *seed)
{
	image_init(image, 4);
	image->ranges_n = (uint32_t)(random_next(seed) % RANGES_MAX);
	for (uint32_t i = 0; i < image->ranges_n; i++) {
		uint64_t start = CODE + random_next(seed) % CODE_BYTES;

		image->ranges[i] = (struct record_range){
			start, start + random_next(seed) % 0x4000 - 0x1000, random_next(seed),
			(uint32_t)(random_next(seed) % 3), (uint32_t)(random_next(seed) % 4)};
	}
	for (unsigned i = 0; i < 1024; i++)
		image->words[i] = i % 2 ? CODE + random_next(seed) % CODE_BYTES
					: STACK_BASE + (i + random_next(seed) % 8) * 8;
}

/* The return addresses of the stack, as the walk would meet them: what it shows lies in a range. */
static inline void assert_frames_in_ranges(const struct image *image)
{
	for (uint32_t i = 1; i < image->walk.slots; i++) {
		const struct frame *frame = &image->frames[i];
		bool found = false;

		for (uint32_t r = 0; r < image->ranges_n && !found; r++) {
			const struct record_range *range = &image->ranges[r];
			uint64_t pc = frame->addr;

			if (frame->kind == FRAME_NATIVE)
				pc = pc - range->offset + range->start;
			/* The end of a handler was looked up as a return address, but is none. */
			found = ((pc - 1 >= range->start && pc - 1 < range->end) ||
				 (!(frame->flags & FRAME_RETURN) && pc == range->start &&
				  pc < range->end)) &&
				(frame->kind != FRAME_NATIVE || frame->file_id == range->file_id);
		}
		assert_true(found);
	}
}

#endif
