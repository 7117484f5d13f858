/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarfpieces.h"

#include <errno.h>
#include <stdlib.h>

/* The intervals that are open at a place, the last one (the highest number) on top. */
struct heap {
	uint32_t *at;
	uint32_t n;
};

struct sweep {
	struct dwarfindex *index;
	const struct dwarfpieces_interval *intervals;
	struct heap heap;
	uint32_t room;
	struct dwarflimit *limit;
};

static int interval_compare(const void *a, const void *b)
{
	const struct dwarfpieces_interval *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

static bool heap_above(const struct sweep *s, uint32_t a, uint32_t b)
{
	return s->intervals[s->heap.at[a]].site > s->intervals[s->heap.at[b]].site;
}

static void heap_swap(struct heap *heap, uint32_t a, uint32_t b)
{
	uint32_t kept = heap->at[a];

	heap->at[a] = heap->at[b];
	heap->at[b] = kept;
}

static void heap_push(struct sweep *s, uint32_t interval)
{
	uint32_t i = s->heap.n++;

	s->heap.at[i] = interval;
	while (i && heap_above(s, i, (i - 1) / 2)) {
		heap_swap(&s->heap, i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
}

static void heap_pop(struct sweep *s)
{
	uint32_t i = 0, child;

	s->heap.at[0] = s->heap.at[--s->heap.n];
	while ((child = 2 * i + 1) < s->heap.n) {
		if (child + 1 < s->heap.n && heap_above(s, child + 1, child))
			child++;
		if (!heap_above(s, child, i))
			break;
		heap_swap(&s->heap, i, child);
		i = child;
	}
}

/* From this address on it is this site. */
static int sweep_put(struct sweep *s, uint64_t address, uint32_t site)
{
	struct dwarfindex *index = s->index;
	uint32_t n = index->pieces_n;
	int err;

	address -= index->base;
	if (address > UINT32_MAX || (n && index->pieces[n - 1].site == site))
		return 0;
	if (n && index->pieces[n - 1].start == address) {
		index->pieces[n - 1].site = site;
		return 0;
	}
	err =
	    dwarflimit_grow(s->limit, (void **)&index->pieces, n, &s->room, sizeof(*index->pieces));
	if (err == 0)
		index->pieces[index->pieces_n++] =
		    (struct dwarfindex_piece){(uint32_t)address, site};
	return err;
}

/* What ends before `to`: whoever lies below goes on. */
static int sweep_until(struct sweep *s, uint64_t to)
{
	int err = 0;

	while (s->heap.n && err == 0) {
		uint64_t end = s->intervals[s->heap.at[0]].end;

		if (dwarflimit_late(s->limit))
			return -ETIME;
		if (end > to)
			break;
		heap_pop(s);
		/* Those below that ended earlier were hidden to their ends. */
		while (s->heap.n && s->intervals[s->heap.at[0]].end <= end)
			heap_pop(s);
		err = sweep_put(s, end,
				s->heap.n ? s->intervals[s->heap.at[0]].site : DWARFINDEX_NONE);
	}
	return err;
}

int dwarfpieces_make(struct dwarfindex *index, struct dwarfpieces_interval *intervals, uint32_t n,
		     struct dwarflimit *limit)
{
	struct sweep s = {.index = index, .intervals = intervals, .limit = limit};
	int err = 0;

	if (n == 0)
		return 0;
	qsort(intervals, n, sizeof(*intervals), interval_compare);
	index->base = intervals[0].start;
	s.heap.at = malloc(n * sizeof(*s.heap.at));
	if (!s.heap.at)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && err == 0; i++) {
		err = sweep_until(&s, intervals[i].start);
		if (err)
			break;
		heap_push(&s, i);
		err = sweep_put(&s, intervals[i].start, intervals[s.heap.at[0]].site);
	}
	if (err == 0)
		err = sweep_until(&s, UINT64_MAX);
	free(s.heap.at);
	return err;
}
