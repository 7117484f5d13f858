/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process may do in its life that changes what its addresses mean, each with a known chain: see
 * bench/workloads/README.md. Begins when stdin says something or ends, so that it can be there before anybody
 * looks. Prints the pid of each child.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/workloads/life/life.h"

#define PATH_ARGUMENT 3

static double burn_ms;
static char **arguments;

static void await(void)
{
	char byte;

	if (read(0, &byte, 1) < 0)
		_exit(1);
}

long LIFE(burn)(long x);
LIFE_NOINLINE long LIFE(burn)(long x)
{
	LIFE_BURN(x);
	return x;
}

long LIFE(inner)(long x);
LIFE_NOINLINE long LIFE(inner)(long x)
{
	return LIFE(burn)(x + 1) + 1;
}

long LIFE(outer)(void);
LIFE_NOINLINE long LIFE(outer)(void)
{
	double end = life_used_ms() + burn_ms;
	long x = 0;

	do
		x += LIFE(inner)(x);
	while (life_used_ms() < end);
	return x;
}

static int become(void)
{
	execv(arguments[PATH_ARGUMENT], arguments + PATH_ARGUMENT);
	return 1;
}

static int mode_burn(void)
{
	return LIFE(outer)() == 0;
}

/* Another program under the same pid. */
static int mode_exec(void)
{
	return LIFE(outer)() == 0 || become();
}

/* A child that never becomes another program. */
static pid_t fork_child(pid_t wanted, int (*run)(void))
{
	struct clone_args args = {.exit_signal = SIGCHLD,
				  .set_tid = wanted ? (uint64_t)(uintptr_t)&wanted : 0,
				  .set_tid_size = wanted ? 1 : 0};
	pid_t pid;

	fflush(stdout);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(run());
}

static int wait_for(pid_t pid)
{
	int status;

	if (pid < 0)
		return 1;
	printf("%d\n", pid);
	return waitpid(pid, &status, 0) != pid || status != 0;
}

int LIFE(child)(void);
LIFE_NOINLINE int LIFE(child)(void)
{
	return LIFE(outer)() == 0;
}

static int mode_fork(void)
{
	return wait_for(fork_child(0, LIFE(child)));
}

/* Two processes of one pid, the second of which is another program. */
static int mode_again(void)
{
	pid_t pid = fork_child(0, LIFE(child));

	return wait_for(pid) || wait_for(fork_child(pid, become));
}

void *LIFE(thread)(void *exec);
LIFE_NOINLINE void *LIFE(thread)(void *exec)
{
	usleep(20000); /* main has ended */
	await();
	if (LIFE(outer)() == 0)
		exit(1);
	if (exec)
		exit(become());
	exit(0);
}

/* The first thread ends, another goes on. */
static int leave_thread(void *exec)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, LIFE(thread), exec))
		return 1;
	pthread_exit(NULL);
}

static int mode_thread(void)
{
	return leave_thread(NULL);
}

static int mode_thread_exec(void)
{
	return leave_thread(&burn_ms);
}

#ifndef LIFE_STATIC
/* One library after the other, each closed before the next is opened. Prints where each stood. */
int LIFE(open)(const char *path);
LIFE_NOINLINE int LIFE(open)(const char *path)
{
	const char *name = strstr(path, "red") ? "red_lib" : "blue_lib";
	void *library = dlopen(path, RTLD_NOW);
	long (*function)(long) = library ? (long (*)(long))(uintptr_t)dlsym(library, name) : NULL;
	double end = life_used_ms() + burn_ms;
	long x = 0;

	if (!function)
		return 1;
	printf("%p\n", (void *)(uintptr_t)function);
	do
		x += function(x);
	while (life_used_ms() < end);
	return dlclose(library) || x == 0;
}

static int mode_open(void)
{
	for (char **path = arguments + PATH_ARGUMENT; *path; path++)
		if (LIFE(open)(*path))
			return 1;
	return 0;
}
#endif

/* Code that was made at run time: it keeps a frame pointer and counts to 200,000. */
static const unsigned char made_code[] = {
    0x55,			  /* push %rbp */
    0x48, 0x89, 0xe5,		  /* mov %rsp,%rbp */
    0xb9, 0x40, 0x0d, 0x03, 0x00, /* mov $200000,%ecx */
    0xff, 0xc9,			  /* 1: dec %ecx */
    0x75, 0xfc,			  /* jnz 1b */
    0x8d, 0x47, 0x01,		  /* lea 1(%rdi),%eax */
    0x5d,			  /* pop %rbp */
    0xc3,			  /* ret */
};

int LIFE(code)(void);
LIFE_NOINLINE int LIFE(code)(void)
{
	double end = life_used_ms() + burn_ms;
	int (*function)(int), x = 0;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return 1;
	memcpy(page, made_code, sizeof(made_code));
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
		return 1;
	function = (int (*)(int))(uintptr_t)page;
	do
		x = function(x);
	while (life_used_ms() < end);
	return x == 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int waits_later;
		int (*run)(void);
	} modes[] = {{"burn", 0, mode_burn},	 {"exec", 0, mode_exec},
		     {"fork", 0, mode_fork},	 {"again", 0, mode_again},
		     {"thread", 1, mode_thread}, {"thread-exec", 1, mode_thread_exec},
#ifndef LIFE_STATIC
		     {"open", 0, mode_open},
#endif
		     {"code", 0, LIFE(code)}};

	arguments = argv;
	burn_ms = argc > 2 ? atof(argv[2]) : 0;
	if (burn_ms > LIFE_MS_MAX)
		burn_ms = LIFE_MS_MAX;
	for (size_t i = 0; argc > 2 && i < sizeof(modes) / sizeof(*modes); i++) {
		if (strcmp(argv[1], modes[i].name))
			continue;
		if (!modes[i].waits_later)
			await();
		return modes[i].run();
	}
	fprintf(stderr, "usage: %s MODE MS [PATH ...]\n", argv[0]);
	return 2;
}
