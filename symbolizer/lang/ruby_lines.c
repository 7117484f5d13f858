/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry {line, ...} stands for all code up to the next one. Where they begin says a bit vector
 * with counts of the bits in front of it (struct succ_index_table of iseq.c): for the first 54
 * positions the counts themselves, 7 bits each, then blocks of 512 bits.
 */
#include "symbolizer/lang/ruby_lines.h"

#define IMMEDIATE	   54u
#define IMMEDIATE_PER_WORD 9u
#define IMMEDIATE_WORDS	   (IMMEDIATE / IMMEDIATE_PER_WORD)
#define BLOCK_BITS	   512u

struct block {
	uint32_t rank, unused;
	uint64_t small_ranks; /* of the second and further words, 9 bits each */
	uint64_t bits[BLOCK_BITS / 64];
};

/* How many entries begin up to a position. */
static bool rank_of(const struct ruby *ruby, uint64_t index, uint32_t position, uint32_t *rank)
{
	uint32_t bit = (position - IMMEDIATE) % BLOCK_BITS, word = bit / 64;
	struct block block;
	uint64_t ranks;

	if (position < IMMEDIATE) {
		if (!remote_u64(ruby->remote, index + 8 * (position / IMMEDIATE_PER_WORD), &ranks))
			return false;
		*rank = ranks >> position % IMMEDIATE_PER_WORD * 7 & 0x7f;
		return true;
	}
	index += 8 * IMMEDIATE_WORDS + (position - IMMEDIATE) / BLOCK_BITS * sizeof(block);
	if (!remote_read(ruby->remote, index, &block, sizeof(block)))
		return false;
	*rank = block.rank + (word ? block.small_ranks >> (word - 1) * 9 & 0x1ff : 0) +
		(uint32_t)__builtin_popcountll(block.bits[word] << (63 - bit % 64));
	return true;
}

uint32_t ruby_line(const struct ruby *ruby, uint64_t body, uint32_t position)
{
	const struct ruby_layout *layout = ruby->layout;
	uint32_t size, rank = 1, line;
	uint64_t info, index;

	/* The instruction that runs, or has called, stands behind. */
	if (position)
		position--;
	if (!remote_u32(ruby->remote, body + layout->insns_size, &size) || size == 0 ||
	    !remote_u64(ruby->remote, body + layout->insns_info, &info))
		return 0;
	if (size > 1 && (!remote_u64(ruby->remote, body + layout->insns_index, &index) ||
			 !rank_of(ruby, index, position, &rank) || rank - 1 >= size))
		return 0;
	if (!remote_u32(ruby->remote, info + (uint64_t)(rank - 1) * layout->insn_bytes, &line))
		return 0;
	return line;
}
