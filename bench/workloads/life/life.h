/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs and libraries of this folder share. All are built twice, as red and as blue: the same
 * layout, other names, so that whoever takes one for the other says so.
 */
#ifndef SCONCE_BENCH_WORKLOADS_LIFE_LIFE_H
#define SCONCE_BENCH_WORKLOADS_LIFE_LIFE_H

#include <time.h>

#ifdef __clang__
#define LIFE_NOINLINE __attribute__((noinline))
#else
#define LIFE_NOINLINE __attribute__((noinline, noclone))
#endif

#define LIFE_NAME2(color, what) color##_##what
#define LIFE_NAME1(color, what) LIFE_NAME2(color, what)
/* red_x or blue_x; its declaration too, because none of them is static. */
#define LIFE(what)	  LIFE_NAME1(COLOR, what)
#define LIFE_TEXT2(text)  #text
#define LIFE_TEXT1(text)  LIFE_TEXT2(text)
#define LIFE_COLOR	  LIFE_TEXT1(COLOR)
#define LIFE_MS_MAX	  120000

/* About a tenth of a millisecond. */
#define LIFE_BURN(x)                                                                               \
	for (volatile long life_i = 0; life_i < 50000; life_i++)                                   \
	x += life_i

/* CPU time of this thread. */
static inline double life_used_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

#endif
