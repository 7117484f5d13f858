/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch LOG COUNT PROGRAM [ARG ...]: COUNT children, one after the other, by turns with fork() and vfork()
 * (what shells and what servers do). Their pids are appended to LOG, "PID NAME" each, so that a profile can be
 * compared with who really ran.
 */
#define _GNU_SOURCE
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT_MAX 100000

/* vfork() returns twice into the same frame: nothing may change in it after the first time. */
static pid_t launch_one(int number, char **argv)
{
	pid_t pid = number & 1 ? vfork() : fork();

	if (pid == 0) {
		execv(argv[0], argv);
		_exit(127);
	}
	return pid;
}

int main(int argc, char **argv)
{
	int count = argc > 3 ? atoi(argv[2]) : 0;
	FILE *log = argc > 3 ? fopen(argv[1], "a") : NULL;
	const char *name = argc > 3 ? basename(argv[3]) : "";

	if (!log || count < 1 || count > COUNT_MAX)
		return 2;
	for (int i = 0; i < count; i++) {
		int status = 0;
		pid_t pid;

		fflush(log); /* a child has a copy of what is in it */
		pid = launch_one(i, argv + 3);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			return 1;
		fprintf(log, "%d %s\n", pid, name);
	}
	return fclose(log) != 0;
}
