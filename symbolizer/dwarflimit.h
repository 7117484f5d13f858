/* SPDX-License-Identifier: Apache-2.0 */
/* What one unit may cost: memory, and time, which is looked at now and then. */
#ifndef SCONCE_SYMBOLIZER_DWARFLIMIT_H
#define SCONCE_SYMBOLIZER_DWARFLIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

struct dwarflimit {
	size_t bytes_max;
	uint64_t until_ns; /* CLOCK_MONOTONIC */
	uint32_t steps;
	bool late; /* it was, at the last look */
};

static inline uint64_t dwarflimit_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* What this thread had of the CPU; a system call, unlike the other. */
static inline uint64_t dwarflimit_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* To be asked at each step of some ten nanoseconds. */
static inline bool dwarflimit_late(struct dwarflimit *limit)
{
	if (++limit->steps % 4096 == 0 && dwarflimit_now_ns() > limit->until_ns)
		limit->late = true;
	return limit->late;
}

/* Room for one more element in an array that may take the limit's bytes. 0, -EFBIG or -ENOMEM. */
int dwarflimit_grow(const struct dwarflimit *limit, void **array, uint32_t n, uint32_t *room,
		    size_t element);

#endif
