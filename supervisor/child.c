/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "supervisor/child.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t terminated;

static void child_on_term(int signo)
{
	(void)signo;
	terminated = 1;
}

static void child_signals(void)
{
	struct sigaction act = {.sa_handler = child_on_term};

	sigaction(SIGTERM, &act, NULL);
	act.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &act, NULL);
	/* Ctrl-C reaches the whole foreground group; only the cli acts on it. */
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGHUP, &act, NULL);
}

/* Executed by descriptor, a process is named after a number by kernels before 6.14. */
static void child_name(enum role role)
{
	char name[32];

	snprintf(name, sizeof(name), "sconce-%s", role_name(role));
	prctl(PR_SET_NAME, name, 0, 0, 0);
}

void child_start(struct child *child, enum role role, int argc, char **argv)
{
	int err;

	memset(child, 0, sizeof(*child));
	child->slot = argc > 1 ? atoi(argv[1]) : (int)role;
	child->role = role;
	child_name(role);
	log_init((int)role, LOG_INFO);
	if (child->slot < 0 || child->slot >= SLOT_COUNT || slot_role(child->slot) != role)
		fatal("slot %d is not one of role %s", child->slot, role_name(role));
	child_signals();
	child->config = config_map(FD_CONFIG);
	if (!child->config)
		fatal("no configuration of this version at fd %d: this program is started by "
		      "sconce, and all binaries must be of one build",
		      FD_CONFIG);
	log_init(child->slot, LOG_INFO);
	/* In a container nobody has done it for us. */
	err = config_limit(child->config, role);
	if (err)
		fatal("cannot limit what this process may use: %s", strerror(-err));
	err = ledger_open(&child->ledger, FD_LEDGER);
	if (err)
		fatal("cannot open the ledger: %s", strerror(-err));
	channel_init(&child->supervisor, FD_SUPERVISOR, role, ROLE_SUPERVISOR, true);
}

void child_ready(struct child *child, uint32_t layers)
{
	struct message_empty none = {0};
	int err;

	atomic_store(&child->ledger.shared->layers, layers);
	err = channel_send(&child->supervisor, MESSAGE_READY, &none, NULL, 0);

	if (err)
		fatal("cannot tell the supervisor that we are ready: %s", strerror(-err));
}

bool child_continue(struct child *child)
{
	struct message message;
	int fds[MESSAGE_FDS_MAX], err;
	size_t fds_n;

	ledger_turn(&child->ledger);
	while ((err = channel_recv(&child->supervisor, &message, fds, &fds_n)) == 0)
		if (message.type == MESSAGE_DRAIN)
			child->draining = true;
		else if (message.type == MESSAGE_CHUNK && child->on_chunk)
			child->on_chunk(message.chunk.number, fds[0]);
	if (err != -EAGAIN)
		return false;
	return !terminated;
}

void child_drained(struct child *child)
{
	struct message_empty none = {0};

	if (!child->drained && channel_send(&child->supervisor, MESSAGE_DRAINED, &none, NULL, 0) == 0)
		child->drained = true;
}

void child_report(struct child *child, int slot, int error)
{
	struct message_violation violation = {(uint32_t)slot, (uint32_t)error};

	channel_send(&child->supervisor, MESSAGE_VIOLATION, &violation, NULL, 0);
}

uint64_t child_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}
