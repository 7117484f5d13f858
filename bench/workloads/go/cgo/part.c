/* SPDX-License-Identifier: Apache-2.0 */
/* The C part of cgo.go, built without frame pointers. */
#include <stdint.h>

uint64_t goBack(uint64_t x);
uint64_t c_back(uint64_t x);
uint64_t c_burn(uint64_t x);

__attribute__((noinline)) static uint64_t c_inner(uint64_t x)
{
	return goBack(x) + 1;
}

uint64_t c_back(uint64_t x)
{
	return c_inner(x) + 1;
}

__attribute__((noinline)) static uint64_t c_leaf(uint64_t x)
{
	for (int i = 0; i < 1000000; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

uint64_t c_burn(uint64_t x)
{
	return c_leaf(x) + 1;
}
