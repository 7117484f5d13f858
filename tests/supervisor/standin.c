/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/supervisor/standin.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "proto/fds.h"
#include "proto/role.h"

#define HOLD_S 60

static void standin_name(char *name, size_t size, const char *directory, int slot)
{
	snprintf(name, size, "%s/sconce-%s", directory, role_name(slot_role(slot)));
}

int standin_is_in(const char *directory)
{
	int fd = open(directory, O_PATH | O_DIRECTORY), err = dup2(fd, FD_SUPERVISOR_BINARIES) < 0;

	if (fd != FD_SUPERVISOR_BINARIES)
		close(fd);
	return err ? -1 : 0;
}

int standin_open(char *template, const char *program)
{
	char self[PATH_MAX], path[PATH_MAX + 16], name[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (geteuid() != 0) {
		puts("needs root");
		exit(77);
	}
	if (n < 0 || !mkdtemp(template))
		return -1;
	self[n] = 0;
	*strrchr(self, '/') = 0;
	snprintf(path, sizeof(path), "%s/%s", self, program);
	for (int slot = ROLE_LOADER; slot <= ROLE_SYMBOLIZER; slot++) {
		standin_name(name, sizeof(name), template, slot);
		if (symlink(path, name))
			return -1;
	}
	return standin_is_in(template);
}

int standin_close(const char *directory)
{
	char name[PATH_MAX];

	for (int slot = ROLE_LOADER; slot <= ROLE_SYMBOLIZER; slot++) {
		standin_name(name, sizeof(name), directory, slot);
		unlink(name);
	}
	return rmdir(directory);
}

pid_t standin_hold(pid_t victim, long options)
{
	int pipe_fds[2];
	pid_t tracer;
	char go;

	assert_int_equal(pipe(pipe_fds), 0);
	tracer = fork();
	if (tracer == 0) {
		long err = ptrace(PTRACE_SEIZE, victim, NULL, options);

		if (write(pipe_fds[1], err ? "n" : "y", 1) != 1)
			_exit(1);
		alarm(HOLD_S);
		for (;;)
			pause();
	}
	assert_int_equal(read(pipe_fds[0], &go, 1), 1);
	assert_int_equal(go, 'y');
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return tracer;
}
