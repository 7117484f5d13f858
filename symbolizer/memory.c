/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/memory.h"

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "supervisor/log.h"

/* Of the limit; cli/ceilings.c leaves a file twice as much and more. */
#define FILE_SHARE 8

static size_t limit_bytes; /* 0 = none */

void memory_open(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		limit_bytes = limit.rlim_cur;
}

void memory_over(const char *what)
{
	fatal("no memory left for %s: this process began with %zu MiB of its own (RLIMIT_DATA), "
	      "--symbol-memory gives it more",
	      what, limit_bytes >> 20);
}

static bool memory_left(size_t bytes)
{
	void *p;

	malloc_trim(0);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (p == MAP_FAILED)
		return false;
	munmap(p, bytes);
	return true;
}

void memory_file_failed(const char *path, const char *without)
{
	if (limit_bytes && !memory_left(limit_bytes / FILE_SHARE))
		memory_over("a file");
	log_warn("%s takes more memory than there is: it is shown without %s (--symbol-memory "
		 "gives more)",
		 path ? path : "a file", without);
}
