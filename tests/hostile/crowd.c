/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process may be that nobody counts on. The first word says which:
 *
 * - ranges N: maps N pieces of code, each behind a page that is not executable; works in the last
 * - file PATH: maps PATH as code, writes some over the end of its last page, and works there
 * - threads N: so many threads, of which each works for a moment by turns
 * - execs N: executes itself N times, one after the other
 * - again N PID: N children that all get the same pid (in a pid namespace of its own)
 * - hold PATH: works, while another thread, when stdin says so, maps over what it wrote into a
 *   shared mapping of PATH, and has the lock of the address space until that is written back
 *
 * Prints one line when it has what it asked for, with how much that is. The first three end with
 * stdin.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE		 4096ul
#define THREAD_STACK	 32768
#define THREAD_PERIOD_US 10000000 /* each works once in so long */

static long burn(double seconds)
{
	struct timespec start, now;
	volatile long x = 0;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		for (int i = 0; i < 10000; i++)
			x += i;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9 <
		 seconds);
	return x;
}

static bool stdin_ended(void)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};
	char byte;

	return poll(&in, 1, 0) > 0 && read(0, &byte, 1) <= 0;
}

/* add $1,%rax; sub $1,%rdi; jne back; ret */
static const unsigned char code[] = {0x48, 0x83, 0xc0, 0x01, 0x48, 0x83,
				     0xef, 0x01, 0x75, 0xf6, 0xc3};

static int crowd_work(void *at)
{
	long (*work)(long) = NULL;

	*(void **)&work = at;
	while (!stdin_ended())
		work(20000000);
	return 0;
}

/* One page of code for each, none of them beside another one: no two can be joined. */
static int crowd_ranges(long n)
{
	int fd = memfd_create("crowd", MFD_CLOEXEC);
	char *at = mmap(NULL, (size_t)n * 2 * PAGE, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	long got = 0;

	if (fd < 0 || at == MAP_FAILED || ftruncate(fd, PAGE) ||
	    pwrite(fd, code, sizeof(code), 0) != sizeof(code))
		return 1;
	while (got < n && mmap(at + (size_t)got * 2 * PAGE, PAGE, PROT_READ | PROT_EXEC,
			       MAP_PRIVATE | MAP_FIXED, fd, 0) != MAP_FAILED)
		got++;
	if (!got)
		return 1;
	printf("%ld ranges\n", got);
	return crowd_work(at + (size_t)(got - 1) * 2 * PAGE);
}

/*
 * Work at the very end of the last page, in a copy of it: whatever is in the file, the frame is one
 * of the file.
 */
static int crowd_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *at;

	if (fd < 0 || fstat(fd, &st) || st.st_size == 0)
		return 1;
	st.st_size = (st.st_size + (off_t)PAGE - 1) & ~((off_t)PAGE - 1);
	at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED || mprotect(at + st.st_size - PAGE, PAGE, PROT_READ | PROT_WRITE))
		return 1;
	memcpy(at + st.st_size - sizeof(code), code, sizeof(code));
	if (mprotect(at + st.st_size - PAGE, PAGE, PROT_READ | PROT_EXEC))
		return 1;
	return crowd_work(at + st.st_size - sizeof(code));
}

static pthread_barrier_t hold_now;

static void *hold_main(void *at)
{
	pthread_barrier_wait(&hold_now);
	mmap(at, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	return NULL;
}

static int crowd_hold(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), byte;
	pthread_t thread;

	if (at == MAP_FAILED || pthread_barrier_init(&hold_now, NULL, 2))
		return 1;
	at[0]++;
	if (pthread_create(&thread, NULL, hold_main, at))
		return 1;
	burn(0.0001); /* what it needs is in memory: a fault would wait for that lock */
	usleep(1);
	puts("ready");
	if (read(0, &byte, 1) < 0)
		return 1;
	pthread_barrier_wait(&hold_now);
	usleep(300000); /* nobody looks at who does not work */
	for (;;)
		burn(1);
}

static void *thread_main(void *arg)
{
	(void)arg;
	for (;;) {
		burn(0.0001);
		usleep(THREAD_PERIOD_US);
	}
	return NULL;
}

static int crowd_threads(long n)
{
	pthread_attr_t attributes;
	pthread_t thread;
	long got = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, THREAD_STACK);
	while (got < n && pthread_create(&thread, &attributes, thread_main, NULL) == 0)
		got++;
	printf("%ld threads\n", got);
	while (!stdin_ended())
		usleep(10000);
	_exit(0);
}

static int crowd_execs(long n, char **argv)
{
	char left[24];

	burn(0.002);
	if (n == 0) {
		puts("0 execs left");
		return 0;
	}
	snprintf(left, sizeof(left), "%ld", n - 1);
	argv[2] = left;
	execv("/proc/self/exe", argv);
	return 1;
}

/* Each begins when the one before is gone, with the number that it had. */
static int crowd_again(long n, pid_t pid)
{
	struct clone_args args = {
	    .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};
	long got = 0;

	for (long i = 0; i < n; i++) {
		long child = syscall(SYS_clone3, &args, sizeof(args));

		if (child == 0) {
			burn(0.01);
			_exit(0);
		}
		if (child < 0)
			break;
		got += child == pid;
		waitpid((pid_t)child, NULL, 0);
	}
	printf("%ld times\n", got);
	return got ? 0 : 1;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2 && strcmp(argv[1], "ranges") == 0)
		return crowd_ranges(n);
	if (argc > 2 && strcmp(argv[1], "file") == 0)
		return crowd_file(argv[2]);
	if (argc > 2 && strcmp(argv[1], "hold") == 0)
		return crowd_hold(argv[2]);
	if (argc > 2 && strcmp(argv[1], "threads") == 0)
		return crowd_threads(n);
	if (argc > 2 && strcmp(argv[1], "execs") == 0)
		return crowd_execs(n, argv);
	if (argc > 3 && strcmp(argv[1], "again") == 0)
		return crowd_again(n, (pid_t)atoi(argv[3]));
	return 2;
}
