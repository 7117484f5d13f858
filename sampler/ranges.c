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
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (set[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool ranges_same_file(const struct record_range *a, const struct record_range *b)
{
	return a->file_id == b->file_id && a->flags == b->flags;
}

/* Does b go on where a ends? Offsets of anonymous memory mean nothing. */
static bool ranges_continue(const struct record_range *a, const struct record_range *b)
{
	return a->end == b->start && ranges_same_file(a, b) &&
	       ((a->flags & RANGE_ANON) || a->offset + (a->end - a->start) == b->offset);
}

bool ranges_has(const struct record_range *set, uint32_t n, const struct record_range *range)
{
	uint32_t i = ranges_find(set, n, range->start);

	return i < n && set[i].start <= range->start && range->end <= set[i].end &&
	       ranges_same_file(&set[i], range) &&
	       ((range->flags & RANGE_ANON) ||
		set[i].offset + (range->start - set[i].start) == range->offset);
}

int ranges_insert(struct record_range *set, uint32_t *n, uint32_t max,
		  const struct record_range *range)
{
	struct record_range put[3]; /* what is left of a cut range, the new one, what is left */
	uint32_t first, last, put_n = 0;

	if (range->start >= range->end)
		return -EINVAL;
	if (*n + 2 > max)
		return -ENOSPC;
	first = last = ranges_find(set, *n, range->start);
	while (last < *n && set[last].start < range->end)
		last++;
	/* set[first .. last) overlaps */
	if (first < last && set[first].start < range->start) {
		put[put_n] = set[first];
		put[put_n++].end = range->start;
	} else if (first > 0 && ranges_continue(&set[first - 1], range)) {
		put[put_n++] = set[--first];
	}
	if (put_n && ranges_continue(&put[0], range))
		put[0].end = range->end;
	else
		put[put_n++] = *range;
	if (last > first && set[last - 1].end > range->end) {
		put[put_n] = set[last - 1];
		put[put_n].offset += range->end - put[put_n].start;
		put[put_n++].start = range->end;
	} else if (last < *n && ranges_continue(&put[put_n - 1], &set[last])) {
		put[put_n - 1].end = set[last++].end;
	}
	memmove(set + first + put_n, set + last, (*n - last) * sizeof(*set));
	memcpy(set + first, put, put_n * sizeof(*set));
	*n = *n - (last - first) + put_n;
	return 0;
}
