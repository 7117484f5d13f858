/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorted address ranges of one process. Knows nothing of where the array lives or who reads it: it
 * works on a private copy. The surprise is that nobody tells us of munmap(): a range stays until
 * something else is mapped over it.
 */
#include "sampler/ranges.h"

#include <errno.h>
#include <string.h>

/* The first range that ends behind address. */
static uint32_t ranges_find(const struct record_range *set, uint32_t n, uint64_t address)
{
	uint32_t low = 0;

	while (low < n) {
		uint32_t middle = low + (n - low) / 2;

		if (set[middle].end <= address)
			low = middle + 1;
		else
			n = middle;
	}
	return low;
}

const struct record_range *ranges_at(const struct record_range *set, uint32_t n, uint64_t address)
{
	uint32_t i = ranges_find(set, n, address);

	return i < n && set[i].start <= address ? &set[i] : NULL;
}

/* Do both show the same bytes of the same file? Offsets of anonymous memory mean nothing. */
static bool ranges_agree(const struct record_range *a, const struct record_range *b)
{
	return a->file_id == b->file_id && a->flags == b->flags &&
	       ((a->flags & RANGE_ANON) || a->offset - a->start == b->offset - b->start);
}

bool ranges_has(const struct record_range *set, uint32_t n, const struct record_range *range)
{
	const struct record_range *there = ranges_at(set, n, range->start);

	return there && range->end <= there->end && ranges_agree(there, range);
}

int ranges_insert(struct record_range *set, uint32_t *n, uint32_t max,
		  const struct record_range *range)
{
	uint32_t first = ranges_find(set, *n, range->start), last = first, put_n = 0, other = 0;
	struct record_range put[3]; /* what is left before it, itself, what is left behind it */

	if (*n + 2 > max)
		return -ENOSPC;
	/* A neighbour that ends where this begins is taken up too, to be joined. */
	if (first > 0 && set[first - 1].end == range->start && ranges_agree(&set[first - 1], range))
		first--;
	while (last < *n && set[last].start < range->end)
		other |= !ranges_agree(&set[last++], range);
	if (first < last && set[first].start < range->start) {
		put[0] = set[first];
		put[put_n++].end = range->start;
	}
	if (put_n && ranges_agree(&put[0], range))
		put[0].end = range->end;
	else
		put[put_n++] = *range;
	if (first < last && set[last - 1].end > range->end) {
		put[put_n] = set[last - 1];
		put[put_n].offset += range->end - put[put_n].start;
		put[put_n++].start = range->end;
	}
	memmove(set + first + put_n, set + last, (*n - last) * sizeof(*set));
	memcpy(set + first, put, put_n * sizeof(*set));
	*n = *n - (last - first) + put_n;
	return (int)other;
}
