/* SPDX-License-Identifier: Apache-2.0 */
/* Inlining in C: several levels, a part that is cold, code that is dropped. With a number as its
 * argument it works for so many seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/symbolizer/dwarf_c.h"

static unsigned table[256];

__attribute__((cold, noinline)) static void complain(const char *what, int n)
{
	fprintf(stderr, "%s: %d\n", what, n);
	exit(1);
}

static inline unsigned mix(unsigned a, unsigned b)
{
	a ^= b + 0x9e3779b9u + (a << 6) + (a >> 2);
	return a;
}

static inline unsigned twice(unsigned a, unsigned b)
{
	return mix(mix(a, b), rotate(a, b & 15));
}

static inline unsigned four(unsigned a, unsigned b)
{
	return twice(twice(a, b), twice(b, a));
}

__attribute__((noinline)) unsigned work(const char *text, int n)
{
	unsigned sum = 0;

	if (n > 1000000) {
		complain("too many", n);
	}
	for (int i = 0; i < n; i++) {
		sum = four(sum, (unsigned)text[i % 8]);
		if (sum == 12345)
			complain(text, i);
		table[sum & 255] += twice(sum, (unsigned)i);
	}
	return sum;
}

__attribute__((noinline)) static int compare(const void *a, const void *b)
{
	const unsigned *x = a, *y = b;

	return four(*x, 1) < four(*y, 1) ? -1 : 1;
}

unsigned dropped(unsigned n)
{
	return four(n, n) + other_work(n);
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 0);
	unsigned sum = 0;

	do
		sum += work("12345678", 100000);
	while (time(NULL) < end);
	qsort(table, 256, sizeof(table[0]), compare);
	sum += other_work(sum & 1023);
	printf("%s %u %zu\n", argv[0], sum, strlen(argv[0]));
	return 0;
}
