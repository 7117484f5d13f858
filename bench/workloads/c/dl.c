/* SPDX-License-Identifier: Apache-2.0 */
/* Two libraries by turns at the same addresses: whoever keeps old mappings mixes them up. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "bench/workloads/c/burn.h"

typedef long (*dl_function)(long);

BURN_NOINLINE static long dl_call_a(dl_function f, long x)
{
	return f(x) + 1;
}

BURN_NOINLINE static long dl_call_b(dl_function f, long x)
{
	return f(x) + 2;
}

BURN_NOINLINE static int dl_turn(const char *dir, char letter)
{
	char path[PATH_MAX], name[32];
	dl_function f;
	void *library;

	snprintf(path, sizeof(path), "%.4000s/dl-%c.so", dir, letter);
	snprintf(name, sizeof(name), "dl_%c_outer", letter);
	library = dlopen(path, RTLD_NOW);
	f = library ? (dl_function)(unsigned long)dlsym(library, name) : NULL;
	if (!f || (letter == 'a' ? dl_call_a(f, 1) : dl_call_b(f, 1)) == 0)
		return 1;
	return dlclose(library);
}

int main(int argc, char **argv)
{
	double end = burn_option(argc, argv, "--seconds", 2, BURN_SECONDS_MAX);
	char self[PATH_MAX] = "", *dir;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	dir = dirname(self);
	while (burn_clock(CLOCK_PROCESS_CPUTIME_ID) < end)
		if (dl_turn(dir, 'a') || dl_turn(dir, 'b'))
			return 1;
	return 0;
}
