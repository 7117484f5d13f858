/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library of `native dlopen`, built several times: LETTER is its name, ROOM the bytes of its frames,
 * so that no two have the same table.
 */
#include "bench/workloads/unwind/chain.h"

#define NAME2(letter, what) part_##letter##_##what
#define NAME(letter, what)  NAME2(letter, what)

#define PART_TURNS 100 /* some 10 ms */

long NAME(LETTER, burn)(long x);
CHAIN_NOINLINE long NAME(LETTER, burn)(long x)
{
	volatile char room[ROOM];

	room[0] = 1;
	CHAIN_BURN(x);
	return x + room[0];
}

long NAME(LETTER, inner)(long x);
CHAIN_NOINLINE long NAME(LETTER, inner)(long x)
{
	volatile char room[2 * ROOM];

	room[0] = 1;
	return NAME(LETTER, burn)(x) + room[0];
}

long NAME(LETTER, outer)(long x);
long NAME(LETTER, outer)(long x)
{
	for (int i = 0; i < PART_TURNS; i++)
		x += NAME(LETTER, inner)(x) & 1;
	return x + 1;
}
