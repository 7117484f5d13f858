/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/jitindex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESS_END (1ull << 56) /* of user space, with five levels of pages */

struct jitindex_added {
	struct jitindex_piece piece;
	uint32_t order; /* the later one wins */
};

/* The sweep over what was there and what came, from low addresses to high ones. */
struct sweep {
	const struct jitindex *from;
	uint32_t piece, added; /* the first ones that have not begun, or have not ended */
	uint32_t *heap;	       /* of added, those that have begun; the latest on top */
	uint32_t heap_n;
	uint64_t at;
	struct jitindex_piece *out;
	uint32_t out_n;
};

void jitindex_fini(struct jitindex *index)
{
	free(index->pieces);
	free(index->added);
	memset(index, 0, sizeof(*index));
}

bool jitindex_possible(uint64_t start, uint64_t bytes)
{
	return bytes > 0 && bytes <= JITINDEX_BYTES_MAX && start < ADDRESS_END - bytes;
}

int jitindex_add(struct jitindex *index, uint64_t start, uint32_t bytes, uint32_t what)
{
	if (index->added_n == index->added_room) {
		uint32_t room = index->added_room ? index->added_room * 2 : 256;
		void *p = realloc(index->added, room * sizeof(*index->added));

		if (!p)
			return -ENOMEM;
		index->added = p;
		index->added_room = room;
	}
	index->added[index->added_n] =
	    (struct jitindex_added){{start, bytes, what}, index->added_n};
	index->added_n++;
	return 0;
}

static int jitindex_compare(const void *a, const void *b)
{
	const struct jitindex_added *x = a, *y = b;

	if (x->piece.start != y->piece.start)
		return x->piece.start < y->piece.start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static uint64_t piece_end(const struct jitindex_piece *piece)
{
	return piece->start + piece->bytes;
}

static bool sweep_later(const struct sweep *s, uint32_t a, uint32_t b)
{
	return s->from->added[s->heap[a]].order > s->from->added[s->heap[b]].order;
}

static void sweep_swap(struct sweep *s, uint32_t a, uint32_t b)
{
	uint32_t kept = s->heap[a];

	s->heap[a] = s->heap[b];
	s->heap[b] = kept;
}

static void sweep_push(struct sweep *s, uint32_t added)
{
	uint32_t i = s->heap_n++;

	s->heap[i] = added;
	for (; i > 0 && sweep_later(s, i, (i - 1) / 2); i = (i - 1) / 2)
		sweep_swap(s, i, (i - 1) / 2);
}

static void sweep_pop(struct sweep *s)
{
	uint32_t i = 0, child;

	s->heap[0] = s->heap[--s->heap_n];
	while ((child = 2 * i + 1) < s->heap_n) {
		child += child + 1 < s->heap_n && sweep_later(s, child + 1, child);
		if (!sweep_later(s, child, i))
			break;
		sweep_swap(s, i, child);
		i = child;
	}
}

/* [at, to) belongs to what. */
static void sweep_emit(struct sweep *s, uint64_t to, uint32_t what)
{
	struct jitindex_piece *last = s->out_n ? &s->out[s->out_n - 1] : NULL;

	if (last && last->what == what && piece_end(last) == s->at &&
	    to - last->start <= JITINDEX_BYTES_MAX)
		last->bytes = (uint32_t)(to - last->start);
	else if (what != JITINDEX_NOTHING)
		s->out[s->out_n++] = (struct jitindex_piece){s->at, (uint32_t)(to - s->at), what};
	s->at = to;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Up to the next place where something begins or ends. False: there is nothing any more. */
static bool sweep_step(struct sweep *s)
{
	const struct jitindex *from = s->from;
	const struct jitindex_piece *piece, *top;
	uint64_t next;

	while (s->added < from->added_n && from->added[s->added].piece.start <= s->at)
		sweep_push(s, s->added++);
	while (s->heap_n && piece_end(&from->added[s->heap[0]].piece) <= s->at)
		sweep_pop(s);
	while (s->piece < from->n && piece_end(&from->pieces[s->piece]) <= s->at)
		s->piece++;
	piece = s->piece < from->n ? &from->pieces[s->piece] : NULL;
	next = s->added < from->added_n ? from->added[s->added].piece.start : UINT64_MAX;
	if (s->heap_n) {
		top = &from->added[s->heap[0]].piece;
		sweep_emit(s, smaller(piece_end(top), next), top->what);
	} else if (piece && piece->start <= s->at) {
		sweep_emit(s, smaller(piece_end(piece), next), piece->what);
	} else {
		s->at = piece ? smaller(piece->start, next) : next;
	}
	return s->at != UINT64_MAX;
}

int jitindex_settle(struct jitindex *index)
{
	/* What is added begins or ends a piece at two places. */
	size_t room = index->n + 2ul * index->added_n;
	struct sweep s = {.from = index};
	struct jitindex_piece *exact;
	int err = 0;

	if (index->added_n == 0)
		return 0;
	s.out = malloc(room * sizeof(*s.out));
	s.heap = malloc(index->added_n * sizeof(*s.heap));
	if (s.out && s.heap) {
		qsort(index->added, index->added_n, sizeof(*index->added), jitindex_compare);
		while (sweep_step(&s))
			;
		exact = s.out_n ? realloc(s.out, s.out_n * sizeof(*s.out)) : NULL;
		free(index->pieces);
		index->pieces = exact ? exact : s.out;
		index->n = s.out_n;
		index->room = exact ? s.out_n : (uint32_t)room;
	} else {
		err = -ENOMEM;
		free(s.out);
	}
	free(s.heap);
	/* Mostly little comes at once, but for the first time. */
	free(index->added);
	index->added = NULL;
	index->added_n = index->added_room = 0;
	return err;
}

const struct jitindex_piece *jitindex_find(const struct jitindex *index, uint64_t address)
{
	uint32_t low = 0, high = index->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (index->pieces[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && address < piece_end(&index->pieces[low - 1]) ? &index->pieces[low - 1]
								       : NULL;
}

size_t jitindex_bytes(const struct jitindex *index)
{
	return index->room * sizeof(*index->pieces) + index->added_room * sizeof(*index->added);
}
