/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real sconce-viewer on sockets and ledgers of ours, and a client that speaks plain HTTP to it.
 */
#ifndef SCONCE_TESTS_VIEWER_HARNESS_H
#define SCONCE_TESTS_VIEWER_HARNESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/channel.h"
#include "proto/config.h"
#include "shm/ledger.h"

struct harness {
	pid_t pid;
	int port;			    /* TCP, on 127.0.0.1 */
	char unix_path[108];		    /* the intake */
	struct channel channel;		    /* the supervisor's end */
	struct segment ledgers[SLOT_COUNT]; /* ro = -1 where there is none */
	int fds[8 + SLOT_COUNT][2]; /* kept for a restart: {ours, its number in the viewer} */
	size_t fds_n;
};

/* Start and wait until it is ready. `config` comes from config_defaults(), then changed at will. */
void harness_start(struct harness *harness, const struct config *config);
/* SIGTERM; checks that it ends by itself, with 0. */
void harness_stop(struct harness *harness);
/* End it with this signal and start another on the same fds, as the supervisor does. */
void harness_restart(struct harness *harness, int signo);
/* A counter of the viewer's committed ledger. */
uint64_t harness_counter(const struct harness *harness, enum counter counter);
/* Set counters of another process, as if it had done something. */
void harness_count(struct harness *harness, int slot, enum counter counter, uint64_t value);
/* The process of this slot was ended by a file of this name, or by none any more (NULL). */
void harness_blame(struct harness *harness, int slot, const char *name);
/* And has met a runtime of this version, which it does not understand; NULL: none. */
void harness_unread(struct harness *harness, int slot, const char *version);

struct reply {
	int status; /* 0: the connection ended without an answer */
	char *text; /* head and body, malloc'ed, ends in NUL */
	char *body; /* in text */
	size_t body_len;
};

/* To the unix socket or to TCP. */
enum door { DOOR_UNIX, DOOR_TCP };
int harness_connect(const struct harness *harness, enum door door);

/*
 * One request on its own connection. `headers` are lines with \r\n, or ""; Host is added unless
 * they have one.
 */
struct reply harness_ask(const struct harness *harness, enum door door, const char *method,
			 const char *path, const char *headers, const void *body, size_t len);
void reply_free(struct reply *reply);

#endif
