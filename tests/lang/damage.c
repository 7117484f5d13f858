/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lang/damage.h"

#include <string.h>

#define DAMAGE_WORDS (SNAPSHOT_PIECE_BYTES / 8)

static uint64_t damage_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static uint8_t *damage_word(struct snapshot *snapshot, uint64_t *seed)
{
	struct snapshot_piece *piece =
	    &snapshot->pieces[damage_random(seed) % snapshot->head.pieces_n];

	return piece->bytes + 8 * (damage_random(seed) % DAMAGE_WORDS);
}

static void damage_piece(struct snapshot *snapshot, uint64_t *seed)
{
	static const uint64_t edges[] = {0,	     1,		  0x7fffffff, 0xffffffff,
					 0x80000000, 1ull << 40,  1ull << 63, ~0ull,
					 0x10000,    0xfffffffff8};
	uint8_t *word = damage_word(snapshot, seed);
	uint64_t number;

	switch (damage_random(seed) % 5) {
	case 0:
		word[damage_random(seed) % 8] ^= (uint8_t)(1u << damage_random(seed) % 8);
		return;
	case 1: /* Another pointer, or what else stands there. */
		memmove(word, damage_word(snapshot, seed), 8);
		return;
	case 2: /* What is known to be readable, perhaps this very place. */
		number = snapshot->pieces[damage_random(seed) % snapshot->head.pieces_n].at +
			 8 * (damage_random(seed) % DAMAGE_WORDS);
		memcpy(word, &number, 8);
		return;
	case 3:
		number = edges[damage_random(seed) % (sizeof(edges) / sizeof(*edges))];
		memcpy(word, &number, damage_random(seed) % 2 ? 8 : 4);
		return;
	default:
		number = damage_random(seed);
		memcpy(word, &number, 8);
	}
}

static void damage_head(struct snapshot_head *head, uint64_t *seed)
{
	uint64_t *regs = (uint64_t *)&head->regs;

	switch (damage_random(seed) % 4) {
	case 0:
		regs[damage_random(seed) % (sizeof(head->regs) / 8)] = damage_random(seed);
		return;
	case 1:
		regs[damage_random(seed) % (sizeof(head->regs) / 8)] += damage_random(seed) % 64;
		return;
	case 2:
		head->thread_pointer += 8 * (damage_random(seed) % 512);
		return;
	default:
		head->made_by = (uint32_t)(damage_random(seed) % (head->ranges_n + 2));
	}
}

void damage(struct snapshot *snapshot, uint64_t *seed)
{
	if (!snapshot->head.pieces_n || !snapshot->head.ranges_n)
		return;
	for (uint64_t n = 1 + damage_random(seed) % 32; n; n--)
		damage_piece(snapshot, seed);
	if (damage_random(seed) % 8 == 0)
		damage_head(&snapshot->head, seed);
	/* Pages that are not there. */
	if (damage_random(seed) % 4 == 0)
		snapshot->pieces[damage_random(seed) % snapshot->head.pieces_n].at ^= 1ull << 46;
	/* Nothing is unreadable: whatever is pointed to is something. */
	snapshot->everywhere = damage_random(seed) % 2;
	snapshot_reindex(snapshot);
}
