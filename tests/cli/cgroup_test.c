/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory cgroup of our own: made, entered, held to, removed. With version 2 in one that is
 * delegated to us, which the test makes at the top.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/cgroup.h"

#define LIMIT_BYTES (64ull << 20)
#define V2	    "/sys/fs/cgroup"
#define V2_OURS	    "/sys/fs/cgroup/cgroup-test"
#define STALE	    "sconce-2147483647" /* no process has that number */

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return n < 0 ? -1 : 0;
}

static void get(const char *directory, const char *name, char *text, size_t size)
{
	char path[CGROUP_PATH_BYTES + 64];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "r");
	n = file ? fread(text, 1, size - 1, file) : 0;
	text[n] = 0;
	if (file)
		fclose(file);
}

static int setup(void **state)
{
	struct cgroup cgroup;

	(void)state;
	if (access(V2 "/cgroup.controllers", F_OK) == 0 && geteuid() == 0) {
		put(V2 "/cgroup.subtree_control", "+memory");
		if (mkdir(V2_OURS, 0755) || setxattr(V2_OURS, "trusted.delegate", "1", 1, 0) ||
		    put(V2_OURS "/cgroup.procs", "0"))
			printf("no cgroup is delegated to the test: %s\n", strerror(errno));
	}
	if (cgroup_probe(&cgroup, ""))
		return 0;
	printf("no memory cgroup can be made: %s\n", cgroup.why);
	rmdir(V2_OURS);
	exit(77);
}

static int teardown(void **state)
{
	(void)state;
	put(V2 "/cgroup.procs", "0");
	rmdir(V2_OURS "/sconce-cli");
	rmdir(V2_OURS);
	return 0;
}

/* A process in it that takes so much memory; how it ended. */
static int taken(const struct cgroup *cgroup, size_t bytes)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		char *p;

		cgroup_enter(cgroup);
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (size_t i = 0; p != MAP_FAILED && i < bytes; i += 4096)
			((volatile char *)p)[i] = 1;
		_exit(p == MAP_FAILED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* It says so when it is in there; it ends a moment later. */
static pid_t last_process(const struct cgroup *cgroup)
{
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		cgroup_enter(cgroup);
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		usleep(300000);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	return pid;
}

static void one_is_made_held_to_and_removed(void **state)
{
	char stale[CGROUP_PATH_BYTES + 64], path[CGROUP_PATH_BYTES], text[4096];
	struct cgroup cgroup;
	int status;
	pid_t pid;

	(void)state;
	assert_true(cgroup_probe(&cgroup, ""));
	snprintf(stale, sizeof(stale), "%s/" STALE, cgroup.path);
	assert_int_equal(mkdir(stale, 0755), 0);
	assert_true(cgroup_make(&cgroup, LIMIT_BYTES));
	assert_int_equal(access(stale, F_OK), -1);
	get(cgroup.path, "memory.max", text, sizeof(text));
	if (!text[0])
		get(cgroup.path, "memory.limit_in_bytes", text, sizeof(text));
	assert_int_equal(strtoull(text, NULL, 10), LIMIT_BYTES);
	assert_int_equal(taken(&cgroup, LIMIT_BYTES / 4), 0);
	status = taken(&cgroup, LIMIT_BYTES * 2);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	pid = last_process(&cgroup);
	assert_int_equal(rmdir(cgroup.path), -1);
	strcpy(path, cgroup.path);
	cgroup_remove(&cgroup);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(cgroup.path[0], 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_is_made_held_to_and_removed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
