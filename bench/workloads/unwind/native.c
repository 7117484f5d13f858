/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of C functions without frame pointers: see bench/workloads/README.md. The first argument
 * says what stands at the end of the chain; --threads N runs it in N threads.
 */
#define _GNU_SOURCE
#include <alloca.h>
#ifdef WITH_PARTS
#include <dlfcn.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/workloads/unwind/chain.h"

#define THREADS_MAX	64
#define RECURSION	1000
#define ALT_STACK_BYTES 65536

static long (*leaf)(long);

/* --- What stands at the end. --- */

long leaf_burn(long x);
CHAIN_NOINLINE long leaf_burn(long x)
{
	CHAIN_BURN(x);
	return x;
}

long down(int levels, long x);
CHAIN_NOINLINE long down(int levels, long x)
{
	return (levels > 1 ? down(levels - 1, x) : leaf_burn(x)) + 1;
}

long leaf_recursion(long x);
CHAIN_NOINLINE long leaf_recursion(long x)
{
	return down(RECURSION, x) + 1;
}

/* Nearly all of the time in the vdso. */
long leaf_vdso(long x);
CHAIN_NOINLINE long leaf_vdso(long x)
{
	for (int i = 0; i < 1000; i++)
		x += (long)chain_clock();
	return x;
}

/* Nearly all of the time in the kernel, or on the way there. */
long leaf_syscall(long x);
CHAIN_NOINLINE long leaf_syscall(long x)
{
	for (int i = 0; i < 1000; i++)
		x += syscall(SYS_getppid);
	return x;
}

static volatile long handler_sum;

void handler(int number);
CHAIN_NOINLINE void handler(int number)
{
	handler_sum += leaf_burn(number) + 1;
}

/* Interrupted anywhere, and on purpose. */
long leaf_signal(long x);
CHAIN_NOINLINE long leaf_signal(long x)
{
	struct itimerval once = {.it_value.tv_usec = 100};

	setitimer(ITIMER_REAL, &once, NULL);
	x += leaf_burn(x);
	raise(SIGUSR1);
	return x;
}

/* The child burns in its parent's memory before it becomes another program. */
long leaf_vfork(long x);
CHAIN_NOINLINE long leaf_vfork(long x)
{
	static char *const arguments[] = {(char *)"true", NULL};
	pid_t pid = vfork();
	int status;

	if (pid == 0) {
		for (int i = 0; i < 20; i++)
			handler_sum += leaf_burn(x);
		execv("/bin/true", arguments);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	return x + 1;
}

static volatile long compared;

int compare(const void *a, const void *b);
CHAIN_NOINLINE int compare(const void *a, const void *b)
{
	compared++;
	return *(const int *)a - *(const int *)b;
}

/* Nearly all of the time in the C library: a good part each in memory, text, sorting, and calls of
 * the kernel and back, by way of a signal handler too. */
long leaf_libc(long x);
CHAIN_NOINLINE long leaf_libc(long x)
{
	static char from[1 << 16], to[1 << 16];
	int numbers[256];
	char text[128];

	for (int i = 0; i < 8; i++)
		memcpy(to, from, sizeof(to));
	for (int i = 0; i < 64; i++)
		x += snprintf(text, sizeof(text), "%s %d %.10g %08lx", "text", i, i / 7.0, x);
	for (int i = 0; i < 64; i++) {
		char *memory = malloc((size_t)i * 37 + 1);

		memory[0] = (char)strtod(text, NULL);
		free(memory);
	}
	for (int i = 0; i < 256; i++)
		numbers[i] = (int)((unsigned)i * 2654435761u >> 8);
	qsort(numbers, 256, sizeof(numbers[0]), compare);
	for (int i = 0; i < 20; i++)
		x += getppid() + (long)lseek(0, 0, SEEK_CUR);
	raise(SIGUSR1);
	return x + numbers[0];
}

#ifdef WITH_TINY
long tiny_a(long x);
long tiny_b(long x);

long leaf_plt(long x);
CHAIN_NOINLINE long leaf_plt(long x)
{
	for (int i = 0; i < 50000; i++)
		x = tiny_a(x) + tiny_b(x);
	return x;
}
#endif

#ifdef WITH_PARTS
/*
 * Libraries by turns, each at the addresses that the one before it had: whoever keeps its ranges or
 * its table walks by those of another.
 */
long leaf_dlopen(long x);
CHAIN_NOINLINE long leaf_dlopen(long x)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	static unsigned turn;
	const char *name = names[turn++ % 4];
	char path[32], symbol[32];
	long (*part)(long);
	void *library;

	snprintf(path, sizeof(path), "libpart-%s.so", name);
	snprintf(symbol, sizeof(symbol), "part_%s_outer", name);
	library = dlopen(path, RTLD_NOW);
	part = library ? (long (*)(long))(unsigned long)dlsym(library, symbol) : NULL;
	if (!part)
		exit(3);
	x = part(x) + 1;
	dlclose(library);
	return x;
}
#endif

/* --- The chain: besides plain functions, frames of the kinds that compilers make. --- */

long chain_end(long x);
CHAIN_NOINLINE long chain_end(long x)
{
	return leaf(x) + 1;
}

CHAIN_LINK(chain_h, chain_end)

/* Variables of unknown size: the frame is found by rbp. */
long chain_g(long x);
CHAIN_NOINLINE long chain_g(long x)
{
	volatile char *room = alloca((size_t)(x & 255) + 1);

	room[0] = 1;
	return chain_h(x + room[0]) + room[0];
}

CHAIN_LINK(chain_f, chain_g)

/* Realigned: the frame is found through memory. */
long chain_e(long x, ...);
CHAIN_NOINLINE long chain_e(long x, ...)
{
	volatile long room[8] __attribute__((aligned(64))) = {1};

	return chain_f(x + room[0]) + room[0];
}

CHAIN_LINK(chain_d, chain_e)

/* All registers that a callee saves. */
long chain_c(long x);
CHAIN_NOINLINE long chain_c(long x)
{
	volatile long v = 1;
	long a = v, b = v, c = v, d = v, e = v, f = v;

	x = chain_d(x + a + b + c + d + e + f);
	return x + a + b + c + d + e + f;
}

CHAIN_LINK(chain_b, chain_c)
CHAIN_LINK(chain_a, chain_b)

long chain_run(void);
CHAIN_NOINLINE long chain_run(void)
{
	long x = 0;

	while (chain_goes_on())
		x += chain_a(x) & 1;
	return x;
}

static void *thread_main(void *argument)
{
	*(volatile long *)argument = chain_run();
	return NULL;
}

static int run_threads(int n)
{
	pthread_t threads[THREADS_MAX];
	long results[THREADS_MAX];

	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, thread_main, &results[i]))
			return 1;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int catch_signals(int on_other_stack)
{
	static char room[ALT_STACK_BYTES];
	stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
	struct sigaction action = {.sa_handler = handler,
				   .sa_flags = SA_RESTART | (on_other_stack ? SA_ONSTACK : 0)};

	return (on_other_stack && sigaltstack(&stack, NULL)) || sigaction(SIGALRM, &action, NULL) ||
	       sigaction(SIGUSR1, &action, NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		long (*leaf)(long);
	} kinds[] = {
	    {"burn", leaf_burn},     {"recursion", leaf_recursion}, {"vdso", leaf_vdso},
	    {"signal", leaf_signal}, {"altstack", leaf_signal},	    {"syscall", leaf_syscall},
	    {"vfork", leaf_vfork},   {"libc", leaf_libc},
#ifdef WITH_TINY
	    {"plt", leaf_plt},
#endif
#ifdef WITH_PARTS
	    {"dlopen", leaf_dlopen},
#endif
	};
	int threads = 0;

	for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(argv[1], kinds[i].name) == 0)
			leaf = kinds[i].leaf;
	if (!leaf || catch_signals(strcmp(argv[1], "altstack") == 0))
		return 2;
	for (int i = 2; i + 1 < argc; i++)
		if (strcmp(argv[i], "--threads") == 0)
			threads = atoi(argv[i + 1]);
	chain_begin(argc, argv);
	if (threads > 0)
		return run_threads(threads < THREADS_MAX ? threads : THREADS_MAX);
	return chain_run() < 0;
}
