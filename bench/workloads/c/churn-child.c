/* SPDX-License-Identifier: Apache-2.0 */
/* One short life of churn: --ms milliseconds of CPU time, at least one loop. */
#define _GNU_SOURCE
#include "bench/workloads/c/burn.h"

BURN_NOINLINE static long child_burn(long x)
{
	for (volatile long i = 0; i < 200000; i++)
		x += i;
	return x;
}

BURN_NOINLINE static long child_inner(long x)
{
	return child_burn(x + 1) + 1;
}

BURN_NOINLINE static long child_outer(double end)
{
	long x = 0;

	do
		x += child_inner(x);
	while (burn_clock(CLOCK_PROCESS_CPUTIME_ID) < end);
	return x;
}

int main(int argc, char **argv)
{
	return child_outer(burn_option(argc, argv, "--ms", 10, 10000) / 1e3) == 0;
}
