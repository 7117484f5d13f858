/* SPDX-License-Identifier: Apache-2.0 */
/*
 * long MODE END [LIBRARY ...]: a long life that goes on changing, once a second, until END (CLOCK_MONOTONIC, in
 * milliseconds): for the soak. Burns little.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/workloads/life/life.h"

#define TURN_US	   1000000
#define BURNS	   20 /* about two milliseconds */
#define LASTS_MS   300000
#define CODE_BYTES 4096
#define CODES	   4 /* made in one turn, each at an address of its own */

static char **arguments;
static long long end_ms;

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* Not all at the same time. */
static int goes_on(void)
{
	usleep(TURN_US / 2 + (unsigned)(rand() % TURN_US));
	return now_ms() < end_ms;
}

long long_burn(long x);
LIFE_NOINLINE long long_burn(long x)
{
	for (int i = 0; i < BURNS; i++)
		LIFE_BURN(x);
	return x;
}

static int turn_exec(void)
{
	execv("/proc/self/exe", arguments);
	return 1;
}

/* By turns at the same address. */
static int turn_open(void)
{
	for (char **path = arguments + 3; *path; path++) {
		void *library = dlopen(*path, RTLD_NOW);
		const char *name = strstr(*path, "red") ? "red_lib" : "blue_lib";
		long (*function)(long) = library ? (long (*)(long))(uintptr_t)dlsym(library, name) : NULL;

		if (!function)
			return 1;
		for (int i = 0; i < BURNS; i++)
			function(i);
		if (dlclose(library))
			return 1;
	}
	return 0;
}

/* Pages of code that only returns. */
static int turn_code(void)
{
	void *code[CODES];

	for (int i = 0; i < CODES; i++) {
		code[i] = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (code[i] == MAP_FAILED)
			return 1;
		memset(code[i], 0xc3, CODE_BYTES);
		if (mprotect(code[i], CODE_BYTES, PROT_READ | PROT_EXEC))
			return 1;
		((void (*)(void))(uintptr_t)code[i])();
	}
	for (int i = 0; i < CODES; i++)
		munmap(code[i], CODE_BYTES);
	return 0;
}

static int turn_fork(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(long_burn(1) == 0);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

static void *short_thread(void *arg)
{
	*(volatile long *)arg = long_burn(1);
	return NULL;
}

static int turn_thread(void)
{
	pthread_t thread;
	long x;

	return pthread_create(&thread, NULL, short_thread, &x) || pthread_join(thread, NULL);
}

static int live(int (*turn)(void))
{
	while (goes_on())
		if (long_burn(1) == 0 || turn())
			return 1;
	return 0;
}

static void *headless(void *arg)
{
	(void)arg;
	exit(live(turn_thread));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*turn)(void);
	} modes[] = {{"exec", turn_exec}, {"open", turn_open}, {"code", turn_code}, {"fork", turn_fork}};
	pthread_t thread;

	end_ms = argc > 2 ? atoll(argv[2]) : 0;
	if (end_ms > now_ms() + LASTS_MS)
		return 2;
	arguments = argv;
	srand((unsigned)(getpid() + now_ms()));
	/* The first thread ends before the others. */
	if (argc > 2 && strcmp(argv[1], "thread") == 0) {
		if (pthread_create(&thread, NULL, headless, NULL))
			return 1;
		pthread_exit(NULL);
	}
	for (size_t i = 0; argc > 2 && i < sizeof(modes) / sizeof(*modes); i++)
		if (strcmp(argv[1], modes[i].name) == 0)
			return live(modes[i].turn);
	return 2;
}
