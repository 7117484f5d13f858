/* SPDX-License-Identifier: Apache-2.0 */
/* The library of dl.c, built twice: LETTER is a or b. Same layout, other names. */
#include "bench/workloads/c/burn.h"

#define NAME2(letter, what) dl_##letter##_##what
#define NAME(letter, what) NAME2(letter, what)

long NAME(LETTER, outer)(long x);

BURN_NOINLINE static long NAME(LETTER, burn)(long x)
{
	BURN_LOOP(x);
	return x;
}

long NAME(LETTER, outer)(long x)
{
	for (int i = 0; i < 20; i++)
		x += NAME(LETTER, burn)(x);
	return x + 1;
}
