/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of this folder share: a chain of functions main, chain_run, chain_a ... chain_h that no
 * compiler folds, and the time. For the first half second a thread is named "warm", then "hot": who reads
 * the profile tells by the name what was sampled before tables could be there.
 */
#ifndef SCONCE_BENCH_WORKLOADS_UNWIND_CHAIN_H
#define SCONCE_BENCH_WORKLOADS_UNWIND_CHAIN_H

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#ifdef __clang__
#define CHAIN_NOINLINE __attribute__((noinline))
#else
#define CHAIN_NOINLINE __attribute__((noinline, noclone))
#endif

#define CHAIN_WARM_SECONDS 0.5
#define CHAIN_SECONDS_MAX  120

#define CHAIN_LINK(name, next)                                                                     \
	long name(long x);                                                                         \
	CHAIN_NOINLINE long name(long x)                                                           \
	{                                                                                          \
		return next(x + 1) + 1;                                                            \
	}

/* About a tenth of a millisecond. */
#define CHAIN_BURN(x)                                                                              \
	for (volatile long chain_i = 0; chain_i < 50000; chain_i++)                                \
	x += chain_i

static double chain_start_time;
static double chain_seconds = 2;
static __thread int chain_hot;

static inline double chain_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void chain_begin(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--seconds") == 0)
			chain_seconds = atof(argv[i + 1]);
	if (chain_seconds > CHAIN_SECONDS_MAX)
		chain_seconds = CHAIN_SECONDS_MAX;
	chain_start_time = chain_clock();
}

/* Whether there is time left. */
static inline int chain_goes_on(void)
{
	double now = chain_clock() - chain_start_time;

	if (!chain_hot || (chain_hot == 1 && now > CHAIN_WARM_SECONDS))
		prctl(PR_SET_NAME, chain_hot++ ? "hot" : "warm");
	return now < chain_seconds;
}

#endif
