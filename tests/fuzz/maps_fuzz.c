/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the text of /proc/PID/maps, which the broker reads where the kernel has no
 * PROCMAP_QUERY. What it finds is executable, and a walk through all of it ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "broker/target.h"
#include "tests/fuzz/fuzz.h"

const unsigned fuzz_mutations = 5000;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct target_vma vma;
	struct target_maps maps = {.fd = memfd_create("maps", MFD_CLOEXEC)};
	uint64_t from = 0;
	size_t lines = 1;

	if (maps.fd < 0 || write(maps.fd, data, size) != (ssize_t)size ||
	    lseek(maps.fd, 0, SEEK_SET))
		abort();
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	/* A line that is too long for the buffer is as many as it takes. */
	lines += size / 4096;
	while (target_maps_next(&maps, from, &vma) == 0) {
		if (!lines-- || vma.range.end <= from || strlen(vma.name) >= sizeof(vma.name))
			abort();
		from = vma.range.end;
	}
	target_maps_close(&maps);
	return 0;
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	static const char *const texts[] = {
	    "55d0c0a00000-55d0c0a02000 r--p 00000000 fe:00 131 /usr/bin/a b\n"
	    "55d0c0a02000-55d0c0a07000 r-xp 00002000 fe:00 131 /usr/bin/a b\n"
	    "7ffe1d5f2000-7ffe1d5f4000 r-xp 00000000 00:00 0   [vdso]\n"
	    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]\n",
	    "1000-2000 rwxs ffffffff ff:fffff 18446744073709551615\n"
	    "2000-1000 r-xp 0 0:0 0 /a\\012b (deleted)\n\n-\n1-2 \n"};

	if (n == 2) {
		memset(data, 'x', 9000);
		memcpy(data, "1000-2000 r-xp 0 0:0 0 /", 24);
		return 9000;
	}
	if (n > 2)
		return 0;
	memcpy(data, texts[n], strlen(texts[n]));
	return strlen(texts[n]);
}
