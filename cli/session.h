/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A supervisor of our own, from its start to its end: what `run` and `record` have in common. Signals
 * are read from a descriptor, so that the first Ctrl-C can be answered in order and the second one
 * at once.
 */
#ifndef SCONCE_CLI_SESSION_H
#define SCONCE_CLI_SESSION_H

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cli/cgroup.h"
#include "cli/snapshot.h"
#include "proto/channel.h"
#include "proto/config.h"

#define SESSION_FILES_WANTED 16384 /* open files: the limit that is asked for */

struct session_fds { /* -1 = none */
	int output, control, http, intake;
};

struct session {
	pid_t pid; /* of the supervisor */
	int pidfd, signals;
	struct channel channel;
	struct message_started started;
	struct snapshot snapshot;
	struct cgroup cgroup; /* around the supervisor */
	uint64_t asked_ms;
	int signal; /* the last one that came, 0 = none */
	bool finishing, ended, failed;
};

/* From here on signals are read, not taken. Call it first, and session_unblock() in other children. */
int session_signals(struct session *session);
void session_unblock(void);

/* The folder of the other binaries: that of this one, or libexec/sconce beside it. -1 with errno. */
int session_binaries(void);
/*
 * Start the supervisor on this configuration and wait until sampling has begun. 0; or -1 when it
 * cannot: session->started.text says why.
 */
int session_start(struct session *session, const struct config *config,
		  const struct session_fds *fds);

/* What everything may take, in one line of the log. */
void session_say_ceilings(const struct session *session, const struct config *config);

/*
 * Wait at most timeout_ms for something to happen: a signal (session->signal; the second one kills),
 * a new snapshot, the end of the supervisor, or one of the caller's descriptors.
 */
void session_wait(struct session *session, struct pollfd *others, size_t others_n, int timeout_ms);

/* Ask for a new snapshot, unless every_ms have not passed since the last time; it arrives in
 * session_wait(). */
void session_ask(struct session *session, int every_ms);
/* CLOCK_MONOTONIC. */
uint64_t session_now_ms(void);
/* Let it drain and end. */
void session_finish(struct session *session);

#endif
