/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of a program share: a function that is inlined into both. */
#ifndef SCONCE_TESTS_SYMBOLIZER_DWARF_C_H
#define SCONCE_TESTS_SYMBOLIZER_DWARF_C_H

static inline unsigned rotate(unsigned a, unsigned by)
{
	by &= 31;
	return by ? a << by | a >> (32 - by) : a;
}

unsigned other_work(unsigned n);

#endif
