/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of functions, known in name and order: see bench/workloads/README.md. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

#include "bench/workloads/c/burn.h"

#define THREADS_MAX 64

static double seconds; /* of CPU time, for each thread */
static int depth;

BURN_NOINLINE static long chain_burn(long x)
{
	BURN_LOOP(x);
	return x;
}

BURN_NOINLINE static long chain_down(int levels, long x)
{
	return (levels > 1 ? chain_down(levels - 1, x) : chain_burn(x)) + 1;
}

BURN_NOINLINE static long chain_h(long x)
{
	return (depth ? chain_down(depth, x) : chain_burn(x)) + 1;
}

#define LINK(name, next)                                                                           \
	BURN_NOINLINE static long name(long x)                                                     \
	{                                                                                          \
		return next(x + 1) + 1;                                                            \
	}
LINK(chain_g, chain_h)
LINK(chain_f, chain_g)
LINK(chain_e, chain_f)
LINK(chain_d, chain_e)
LINK(chain_c, chain_d)
LINK(chain_b, chain_c)
LINK(chain_a, chain_b)

BURN_NOINLINE static long chain_run(void)
{
	double end = burn_clock(CLOCK_THREAD_CPUTIME_ID) + seconds;
	long x = 0;

	while (burn_clock(CLOCK_THREAD_CPUTIME_ID) < end)
		x += chain_a(x);
	return x;
}

BURN_NOINLINE static void *chain_thread(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "chain-%d", *(int *)arg);
	pthread_setname_np(pthread_self(), name);
	*(volatile int *)arg = (int)chain_run();
	return NULL;
}

int main(int argc, char **argv)
{
	int threads_n = (int)burn_option(argc, argv, "--threads", 1, THREADS_MAX);
	pthread_t threads[THREADS_MAX];
	int numbers[THREADS_MAX];

	depth = (int)burn_option(argc, argv, "--depth", 0, 1000);
	seconds = burn_option(argc, argv, "--seconds", 1, BURN_SECONDS_MAX);
	if (threads_n <= 1)
		return chain_run() == 0;
	for (int i = 0; i < threads_n; i++) {
		numbers[i] = i;
		if (pthread_create(&threads[i], NULL, chain_thread, &numbers[i]))
			return 1;
	}
	for (int i = 0; i < threads_n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
