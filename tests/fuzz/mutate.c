/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzz target as a test: no coverage, no clang, the same bytes each time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static uint64_t mutate_random(void)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

/* Numbers at the edges are what breaks things; a piece moved keeps much of what is sound. */
static size_t mutate_once(uint8_t *data, size_t size)
{
	static const uint64_t edges[] = {0,    1,      7,	   8,	       0x7f,
					 0xff, 0xffff, 0x7fffffff, 0xffffffff, ~0ull};
	size_t at = mutate_random() % size, n = 1u << mutate_random() % 4, from;

	if (n > size - at)
		n = size - at;
	switch (mutate_random() % 5) {
	case 0:
		data[at] ^= (uint8_t)(1u << mutate_random() % 8);
		return size;
	case 1:
		memcpy(data + at, &edges[mutate_random() % 10], n);
		return size;
	case 2:
		data[at] = (uint8_t)mutate_random();
		return size;
	case 3:
		from = mutate_random() % size;
		n = mutate_random() % (size - (at > from ? at : from));
		memmove(data + at, data + from, n);
		return size;
	default:
		return mutate_random() % 4 ? size : 1 + at;
	}
}

static void mutate(unsigned seed)
{
	static uint8_t data[FUZZ_BYTES_MAX];
	uint8_t *exact;

	for (unsigned i = 0; i < fuzz_mutations; i++) {
		size_t size = fuzz_seed(seed, data);

		for (uint64_t n = i ? 1 + mutate_random() % 8 : 0; n; n--)
			size = mutate_once(data, size);
		/* Of its very size, so that reading on is found. */
		exact = malloc(size);
		memcpy(exact, data, size);
		LLVMFuzzerTestOneInput(exact, size);
		free(exact);
	}
}

static int mutate_write(const char *directory, unsigned seed, const uint8_t *data, size_t size)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/seed-%u", directory, seed);
	file = fopen(path, "wb");
	if (!file || fwrite(data, size, 1, file) != 1 || fclose(file)) {
		perror(path);
		return 1;
	}
	return 0;
}

int main(void)
{
	static uint8_t data[FUZZ_BYTES_MAX];
	const char *directory = getenv("FUZZ_CORPUS");
	size_t size;

	for (unsigned seed = 0; (size = fuzz_seed(seed, data)); seed++) {
		if (directory && mutate_write(directory, seed, data, size))
			return 1;
		if (!directory)
			mutate(seed);
	}
	return 0;
}
