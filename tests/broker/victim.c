/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/broker/victim.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Once the first thread is a zombie. */
static void *victim_thread(void *ready)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%d/stat", getpid());
	for (;;) {
		FILE *f = fopen(path, "r");
		size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

		text[n] = 0;
		if (f)
			fclose(f);
		if (strstr(text, ") Z "))
			break;
		usleep(1000);
	}
	if (write(*(int *)ready, "r", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static _Noreturn void victim_run(const char *path, int unlink_it, int ready, bool headless)
{
	static int ready_of_thread;
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (path) {
		int fd = open(path, O_RDONLY);
		void *p = mmap((void *)VICTIM_ADDRESS, 4096, PROT_READ | PROT_EXEC,
			       MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);

		if (p == MAP_FAILED || (unlink_it && unlink(path)))
			_exit(1);
		close(fd);
	}
	ready_of_thread = ready;
	if (headless && pthread_create(&thread, NULL, victim_thread, &ready_of_thread) == 0)
		pthread_exit(NULL);
	if (headless || write(ready, "r", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* Not by the code under test: the kernel's text, parsed another way. */
static uint64_t victim_start_ns(pid_t pid)
{
	char path[64], text[1024] = "";
	unsigned long long ticks = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0); /* a name may hold a line break */
	fclose(f);
	assert_int_equal(sscanf(strrchr(text, ')'),
				") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
				"%*u %*u %*d %*d %*d %*d %*d %*d %llu",
				&ticks),
			 1);
	return ticks * 10000000;
}

static void victim_begin(struct victim *victim, const char *path, int unlink_it, bool headless)
{
	int ready[2];
	char c;

	memset(victim, 0, sizeof(*victim));
	if (path)
		assert_return_code(stat(path, &victim->file), 0);
	assert_return_code(pipe(ready), 0);
	victim->pid = fork();
	if (victim->pid == 0)
		victim_run(path, unlink_it, ready[1], headless);
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	victim->start_ns = victim_start_ns(victim->pid);
}

void victim_start(struct victim *victim, const char *path, int unlink_it)
{
	victim_begin(victim, path, unlink_it, false);
}

void victim_start_headless(struct victim *victim, const char *path)
{
	victim_begin(victim, path, 0, true);
}

void victim_end(struct victim *victim)
{
	kill(victim->pid, SIGKILL);
	waitpid(victim->pid, NULL, 0);
}

const char *victim_file(const char *name)
{
	static char path[256];
	char page[4096];
	int fd;

	snprintf(path, sizeof(path), "/tmp/sconce-broker-test-%d-%s", getpid(), name);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0755);
	memset(page, 0x90, sizeof(page));
	assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	close(fd);
	return path;
}
