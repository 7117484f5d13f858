/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child half: how every process that the supervisor starts begins and ends.
 *
 *   child_start()    config, ledger, log, channel to the supervisor; dies if any is not in its place
 *   ...              open what needs a right
 *   sandbox_enter()  from here on nothing can be opened (supervisor/sandbox.h)
 *   child_ready()    tell the supervisor
 *   loop while child_continue()
 */
#ifndef SCONCE_SUPERVISOR_CHILD_H
#define SCONCE_SUPERVISOR_CHILD_H

#include <stdbool.h>

#include "proto/channel.h"
#include "proto/config.h"
#include "proto/fds.h"
#include "shm/ledger.h"
#include "supervisor/log.h"

struct child {
	int slot; /* proto/role.h */
	enum role role;
	const struct config *config; /* read-only mapping, lives as long as the process */
	struct ledger_writer ledger;
	struct channel supervisor;
	bool draining; /* the supervisor sent DRAIN: finish what is there, then child_drained() */
	bool drained;
	/* The sampler: takes CHUNK, and the fd with it. */
	void (*on_chunk)(uint32_t number, int fd);
};

/* argv[1] is the slot number. Never returns on failure. */
void child_start(struct child *child, enum role role, int argc, char **argv);
/* With what sandbox_enter() returned. */
void child_ready(struct child *child, uint32_t layers);

/*
 * Read the supervisor's socket without waiting. False when this process has to leave: the supervisor
 * is gone, or said so by SIGTERM.
 */
bool child_continue(struct child *child);

/* Everything that was there when DRAIN came is done and committed. Sent once. */
void child_drained(struct child *child);

/* The peer in this slot broke the protocol; the supervisor replaces it. */
void child_report(struct child *child, int slot, int error);

/* Now on the clock of every time in our records, CLOCK_BOOTTIME. */
uint64_t child_now_ns(void);

#endif
