/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of every process: started, watched by pidfd and by its own progress pages, killed when it
 * stands still, started again with back-off on the same descriptors. Never blocks.
 *
 * A process that SIGKILL does not end (uninterruptible sleep) is abandoned: everybody else is ended
 * too, all shared memory is replaced by copies, and all are started anew on those. Nothing is lost by
 * it: each goes on where its ledger says.
 *
 *   OFF -> WAITING -> RUNNING -> (dies) -> WAITING ...
 *                        `-> KILLED -> (dies, or is abandoned) -> WAITING ...
 */
#ifndef SCONCE_SUPERVISOR_WATCH_H
#define SCONCE_SUPERVISOR_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "proto/channel.h"
#include "proto/config.h"
#include "shm/ledger.h"
#include "shm/queue.h"

enum slot_state { SLOT_OFF, SLOT_WAITING, SLOT_RUNNING, SLOT_KILLED };

struct slot {
	enum slot_state state;
	pid_t pid; /* 0 = none; in containers a number of theirs */
	pid_t offered; /* one that its container has ready to start; pidfd is its */
	int pidfd;
	uint32_t generation; /* events of an earlier process of this slot are stale */
	uint32_t restarts, abandoned;
	bool drain_sent, drained;
	uint64_t started_ns, killed_ns, retry_ns, backoff_ms;
	struct channel channel;
	/* progress, as last seen, and when it last moved (or nothing was to be done) */
	const struct ledger *ledger;
	struct queue samples; /* first pages only; of workers */
	uint64_t turns, turns_ns, mark, mark_ns;
};

enum event_kind { EVENT_SIGNAL, EVENT_CONTROL, EVENT_CLIENT, EVENT_PROCESS, EVENT_CHANNEL };

typedef void watch_message_fn(int slot, const struct message *message, const int *fds,
			      size_t fds_n);

/* config is borrowed for good. handler: takes messages of the processes, and owns their fds. */
void watch_init(int epoll, const struct config *config, watch_message_fn *handler);

/* Add an fd to the loop. */
void watch_add(int fd, enum event_kind kind, uint32_t index, uint32_t generation);

/* From now on there is a process in this slot. */
void watch_start(int slot);
void watch_kill(int slot, const char *why);
/* End everybody, and start them anew on copies of all memory and on new sockets. */
void watch_replace_all(void);
struct slot *watch_slot(int slot);

/*
 * The container of this slot has a process ready (supervisor/init.c). Takes fd, its channel, and pidfd;
 * false when they are not wanted: as long as the one before it may still write to what is shared.
 */
bool watch_offer(int slot, int fd, int pidfd, pid_t pid);

/* Events of EVENT_PROCESS and EVENT_CHANNEL. */
void watch_on_process(uint32_t slot, uint32_t generation);
void watch_on_channel(uint32_t slot, uint32_t generation);

/* Whatever time brings. Milliseconds until the next call is due. */
int watch_tick(void);

/* Kill all and start none again. True when nobody is left. */
bool watch_stop(void);

/* CLOCK_MONOTONIC: a suspended machine makes nobody stuck. */
uint64_t watch_now_ns(void);

#endif
