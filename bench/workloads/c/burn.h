/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the workloads share: burning CPU in one function without calls, and reading options. Everything is
 * static, so that each program is one file with its own names.
 */
#ifndef SCONCE_BENCH_WORKLOADS_C_BURN_H
#define SCONCE_BENCH_WORKLOADS_C_BURN_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __clang__
#define BURN_NOINLINE __attribute__((noinline))
#else
#define BURN_NOINLINE __attribute__((noinline, noclone))
#endif

#define BURN_SECONDS_MAX 120

/* Somewhere between one and a few milliseconds, as a loop to be put into a function of its own name. */
#define BURN_LOOP(x)                                                                               \
	for (volatile long burn_i = 0; burn_i < 1000000; burn_i++)                                 \
	x += burn_i

static inline double burn_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The value behind --name, or the default; clamped to [0, max]. */
static inline double burn_option(int argc, char **argv, const char *name, double value, double max)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], name) == 0)
			value = atof(argv[i + 1]);
	return value < 0 ? 0 : value > max ? max : value;
}

#endif
