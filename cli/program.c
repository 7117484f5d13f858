/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/session.h"
#include "cli/units.h"

bool program_caller(uid_t *uid, gid_t *gid)
{
	const char *uid_text = getenv("SUDO_UID"), *gid_text = getenv("SUDO_GID");
	uint64_t u, g;

	if (!uid_text || !gid_text || !units_number(uid_text, &u) || !units_number(gid_text, &g) ||
	    u >= UINT32_MAX || g >= UINT32_MAX)
		return false;
	*uid = (uid_t)u;
	*gid = (gid_t)g;
	return true;
}

static int program_drop(void)
{
	struct passwd *user;
	uid_t uid;
	gid_t gid;

	if (geteuid() != 0 || !program_caller(&uid, &gid))
		return 0;
	user = getpwuid(uid);
	if (user ? initgroups(user->pw_name, gid) : setgroups(1, &gid))
		return -errno;
	return setresgid(gid, gid, gid) || setresuid(uid, uid, uid) ? -errno : 0;
}

static void program_child(char **argv, int ready)
{
	int err = program_drop();
	char go;

	session_unblock();
	/* Closed without a word: recording did not begin. */
	if (read(ready, &go, 1) != 1)
		_exit(1);
	if (err) {
		fprintf(stderr, "sconce: cannot become the caller of sudo: %s\n", strerror(-err));
		_exit(126);
	}
	execvp(argv[0], argv);
	err = errno;
	fprintf(stderr, "sconce: cannot execute %s: %s\n", argv[0], strerror(err));
	_exit(err == ENOENT ? 127 : 126);
}

int program_fork(struct program *program, char **argv)
{
	int pipe_fds[2];

	if (pipe2(pipe_fds, O_CLOEXEC))
		return -errno;
	program->pid = fork();
	if (program->pid < 0)
		return -errno;
	if (program->pid == 0) {
		close(pipe_fds[1]);
		program_child(argv, pipe_fds[0]);
	}
	close(pipe_fds[0]);
	program->go = pipe_fds[1];
	program->pidfd = (int)syscall(SYS_pidfd_open, program->pid, 0);
	return program->pidfd < 0 ? -errno : 0;
}

void program_go(struct program *program)
{
	ssize_t n;

	if (!program->pid)
		return;
	do
		n = write(program->go, "g", 1);
	while (n < 0 && errno == EINTR);
	close(program->go);
}

bool program_ended(struct program *program)
{
	siginfo_t info = {0};

	if (!program->pid || program->ended)
		return program->ended;
	if (waitid(P_PIDFD, (id_t)program->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid) {
		program->ended = true;
		program->exit_code =
			info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	}
	return program->ended;
}
