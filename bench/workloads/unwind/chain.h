/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of this folder share: a chain of functions main, chain_run, chain_a ... chain_h that no
 * compiler folds, and the time: that of the CPU, because others may keep it waiting. For the first
 * half second a thread is named "warm", then "hot": who reads the profile tells by the name what was
 * sampled before tables could be there. The profiler that makes them waits for the same CPUs.
 */
#ifndef SCONCE_BENCH_WORKLOADS_UNWIND_CHAIN_H
#define SCONCE_BENCH_WORKLOADS_UNWIND_CHAIN_H

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

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

static double chain_seconds = 2;
static __thread int chain_hot;

static inline double chain_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What the process has used, with its children. */
static inline double chain_used(void)
{
	struct tms t;

	times(&t);
	return (double)(t.tms_utime + t.tms_stime + t.tms_cutime + t.tms_cstime) /
	       (double)sysconf(_SC_CLK_TCK);
}

static inline void chain_begin(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--seconds") == 0)
			chain_seconds = atof(argv[i + 1]);
	if (chain_seconds > CHAIN_SECONDS_MAX)
		chain_seconds = CHAIN_SECONDS_MAX;
}

/* Whether there is time left; asked once in so many turns, since it is a system call. */
#define CHAIN_TURNS 16

static inline int chain_goes_on(void)
{
	static __thread unsigned turns;
	double now;

	if (turns++ % CHAIN_TURNS)
		return 1;
	now = chain_used();
	if (!chain_hot || (chain_hot == 1 && now > CHAIN_WARM_SECONDS))
		prctl(PR_SET_NAME, chain_hot++ ? "hot" : "warm");
	return now < chain_seconds;
}

#endif
