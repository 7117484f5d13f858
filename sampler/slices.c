/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buddy allocation over the range array. All book-keeping lies beside the array, never in it: BPF
 * reads the array, and a slice in quarantine has to keep its contents.
 */
#include "sampler/slices.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "bpf/tables.h"

static void slices_list_add(struct slices *s, uint32_t block, unsigned order)
{
	struct slices_block *b = &s->block[block];

	b->order = (uint8_t)order;
	b->free = true;
	b->prev = SLICES_NONE;
	b->next = s->head[order];
	if (b->next != SLICES_NONE)
		s->block[b->next].prev = block;
	s->head[order] = block;
}

static void slices_list_remove(struct slices *s, uint32_t block)
{
	struct slices_block *b = &s->block[block];

	if (b->prev != SLICES_NONE)
		s->block[b->prev].next = b->next;
	else
		s->head[b->order] = b->next;
	if (b->next != SLICES_NONE)
		s->block[b->next].prev = b->prev;
	b->free = false;
}

static void slices_free(struct slices *s, uint32_t block)
{
	unsigned order = s->block[block].order;

	for (; order < SLICES_ORDERS - 1; order++) {
		uint32_t buddy = block ^ (1u << order);

		if (buddy + (1u << order) > s->blocks || !s->block[buddy].free ||
		    s->block[buddy].order != order)
			break;
		slices_list_remove(s, buddy);
		block &= ~(1u << order);
	}
	slices_list_add(s, block, order);
}

int slices_init(struct slices *s, struct record_range *ranges, uint32_t ranges_max)
{
	s->ranges = ranges;
	s->blocks = ranges_max / SLICES_MIN;
	s->grave_first = s->graves = 0;
	s->block = calloc(s->blocks, sizeof(*s->block));
	s->grave = calloc(s->blocks, sizeof(*s->grave));
	if (!s->block || !s->grave) {
		slices_fini(s);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < SLICES_ORDERS; i++)
		s->head[i] = SLICES_NONE;
	for (uint32_t block = s->blocks; block-- > 0;)
		slices_free(s, block);
	return 0;
}

void slices_fini(struct slices *s)
{
	free(s->block);
	free(s->grave);
	s->block = NULL;
	s->grave = NULL;
}

uint32_t slices_take(struct slices *s, uint32_t n)
{
	unsigned want = 0, order;
	uint32_t block;

	while (want < SLICES_ORDERS && (SLICES_MIN << want) < n)
		want++;
	for (order = want; order < SLICES_ORDERS && s->head[order] == SLICES_NONE; order++)
		;
	if (order >= SLICES_ORDERS)
		return SLICES_NONE;
	block = s->head[order];
	slices_list_remove(s, block);
	while (order > want) {
		order--;
		slices_list_add(s, block + (1u << order), order);
	}
	s->block[block].order = (uint8_t)want;
	s->block[block].users = 1;
	return block * SLICES_MIN;
}

static struct slices_block *slices_used(const struct slices *s, uint32_t first)
{
	struct slices_block *b = &s->block[first / SLICES_MIN];

	assert(first / SLICES_MIN < s->blocks && b->users > 0);
	return b;
}

uint32_t slices_room(const struct slices *s, uint32_t first)
{
	return SLICES_MIN << slices_used(s, first)->order;
}

void slices_share(struct slices *s, uint32_t first)
{
	slices_used(s, first)->users++;
}

bool slices_shared(const struct slices *s, uint32_t first)
{
	return slices_used(s, first)->users > 1;
}

void slices_drop(struct slices *s, uint32_t first, uint64_t now_ns)
{
	if (--slices_used(s, first)->users > 0)
		return;
	s->grave[(s->grave_first + s->graves++) % s->blocks] =
	    (struct slices_grave){now_ns, first / SLICES_MIN};
}

void slices_expire(struct slices *s, uint64_t now_ns)
{
	while (s->graves) {
		const struct slices_grave *grave = &s->grave[s->grave_first];

		if (now_ns < grave->freed_ns + TABLES_GRACE_NS)
			return;
		slices_free(s, grave->block);
		s->grave_first = (s->grave_first + 1) % s->blocks;
		s->graves--;
	}
}
