/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that is stopped wherever it is, and what BPF would know of it then. */
#ifndef SCONCE_TESTS_LANG_STOPPED_H
#define SCONCE_TESTS_LANG_STOPPED_H

#include <stdbool.h>
#include <sys/types.h>

#include "tests/lang/snapshot.h"

struct stopped {
	pid_t tid;
	int signal; /* that it was about to be given */
};

/* False: it has ended. */
bool stopped_begin(struct stopped *stopped, pid_t tid);
void stopped_end(const struct stopped *stopped);

/* Registers, thread pointer, ranges, files and who made the code of none of them, into the head. */
bool stopped_look(const struct stopped *stopped, pid_t pid, struct snapshot_head *head);
/* The range of the first file that has a runtime: what the sampler sets. */
void stopped_made_by(struct snapshot_head *head);

#endif
