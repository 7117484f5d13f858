/* SPDX-License-Identifier: Apache-2.0 */
/* burn MS: so many milliseconds of CPU time below main, short_a, short_b, short_c, short_leaf; then it ends. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#define SHORT_NOINLINE __attribute__((noinline))
#define MS_MAX	       10000

#define SHORT_LINK(name, next)                                                                     \
	long name(long x);                                                                         \
	SHORT_NOINLINE long name(long x)                                                           \
	{                                                                                          \
		return next(x + 1) + 1;                                                            \
	}

long short_leaf(long x);
/* About a tenth of a millisecond. */
SHORT_NOINLINE long short_leaf(long x)
{
	for (volatile long i = 0; i < 50000; i++)
		x += i;
	return x;
}

SHORT_LINK(short_c, short_leaf)
SHORT_LINK(short_b, short_c)
SHORT_LINK(short_a, short_b)

static long long used_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int main(int argc, char **argv)
{
	long ms = argc > 1 ? atol(argv[1]) : 5, x = 0;

	if (ms > MS_MAX)
		ms = MS_MAX;
	do
		x += short_a(x);
	while (used_ns() < ms * 1000000ll);
	return x == 0;
}
