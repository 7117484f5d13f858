/* SPDX-License-Identifier: Apache-2.0 */
/* The other unit of dwarf_c.c. */
#include "tests/symbolizer/dwarf_c.h"

static inline unsigned step(unsigned a)
{
	return rotate(a, 7) * 5 + 0xe6546b64u;
}

unsigned other_work(unsigned n)
{
	unsigned a = n;

	for (unsigned i = 0; i < n; i++) {
		a = step(step(a) ^ i);
		if (a == 42)
			a = rotate(a, i);
	}
	return a;
}
