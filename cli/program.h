/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of `sconce record -- program args`: forked at once, so that its pid can be the target,
 * executed when sampling has begun, as the user who called sudo.
 */
#ifndef SCONCE_CLI_PROGRAM_H
#define SCONCE_CLI_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

struct program {
	pid_t pid; /* 0 = there is none */
	int pidfd;
	int go; /* our end of the pipe that it waits on */
	bool ended;
	int exit_code; /* 128 + signal when a signal ended it */
};

/* 0 or -errno. */
int program_fork(struct program *program, char **argv);
void program_go(struct program *program);
/* Has it ended? Never waits. */
bool program_ended(struct program *program);

/* The user and group behind sudo. False when there is none. */
bool program_caller(uid_t *uid, gid_t *gid);

#endif
