/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Next-fit over the blocks of the range array. All book-keeping lies beside the array, never in it:
 * BPF reads the array, and a slice that was given up has to keep its contents for a while.
 */
#include "sampler/slices.h"

#include "bpf/tables.h"

void slices_init(struct slices *s, struct record_range *ranges, uint32_t ranges_max)
{
	s->ranges = ranges;
	ranges_max /= SLICES_BLOCK;
	s->blocks = ranges_max < SLICES_BLOCKS_MAX ? ranges_max : SLICES_BLOCKS_MAX;
}

uint32_t slices_take(struct slices *s, uint32_t n, uint64_t now_ns)
{
	uint32_t want = (n + SLICES_BLOCK - 1) / SLICES_BLOCK, run = 0;

	/* Once around, and on to where a run that begins before the hand may end. */
	for (uint32_t i = 0; i < s->blocks + want; i++, s->hand++) {
		if (s->hand >= s->blocks)
			s->hand = run = 0;
		run = s->block[s->hand].free_ns <= now_ns ? run + 1 : 0;
		if (run < want || !want)
			continue;
		for (uint32_t b = s->hand + 1 - want; b <= s->hand; b++)
			s->block[b].free_ns = UINT64_MAX;
		s->hand++;
		s->block[s->hand - want].length = want;
		s->block[s->hand - want].users = 1;
		s->used += want;
		return (s->hand - want) * SLICES_BLOCK;
	}
	return SLICES_NONE;
}

void slices_drop(struct slices *s, uint32_t first, uint64_t now_ns)
{
	uint32_t begin = first / SLICES_BLOCK;

	if (--s->block[begin].users > 0)
		return;
	s->used -= s->block[begin].length;
	for (uint32_t b = begin; b < begin + s->block[begin].length; b++)
		s->block[b].free_ns = now_ns + TABLES_GRACE_NS;
}

int slices_has_room(const struct slices *s, uint32_t first, uint32_t n)
{
	return s->block[first / SLICES_BLOCK].users == 1 &&
	       n < s->block[first / SLICES_BLOCK].length * SLICES_BLOCK;
}
