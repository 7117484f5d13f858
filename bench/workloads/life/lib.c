/* SPDX-License-Identifier: Apache-2.0 */
/* The library of life.c: burns as red_lib or as blue_lib. */
#include "bench/workloads/life/life.h"

long LIFE(lib_burn)(long x);
LIFE_NOINLINE long LIFE(lib_burn)(long x)
{
	LIFE_BURN(x);
	return x;
}

long LIFE(lib_inner)(long x);
LIFE_NOINLINE long LIFE(lib_inner)(long x)
{
	return LIFE(lib_burn)(x + 1) + 1;
}

long LIFE(lib)(long x);
long LIFE(lib)(long x)
{
	return LIFE(lib_inner)(x + 1) + 1;
}
