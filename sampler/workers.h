/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to the workers: per worker a channel, a queue of samples and a queue of what its
 * processes have mapped.
 */
#ifndef SCONCE_SAMPLER_WORKERS_H
#define SCONCE_SAMPLER_WORKERS_H

#include <stdint.h>

#include "proto/channel.h"
#include "shm/ledger.h"
#include "shm/queue.h"

/* Places of the sampler in its ledger. */
enum sampler_position {
	POSITION_RING,	  /* consumed of the BPF ring buffer */
	POSITION_FILE_ID, /* newest file id */
	POSITION_SAMPLES = 8,
	POSITION_PROCESS = POSITION_SAMPLES + WORKERS_MAX,
};

struct worker {
	struct channel channel;
	struct queue samples, process;
};

struct workers {
	struct worker worker[WORKERS_MAX];
	uint32_t n;
};

/*
 * Open the queues (fds: base + k * FD_SAMPLER_PER_WORKER) and publish what was committed, in case
 * that we were killed between the two. 0 or -errno.
 */
int workers_open(struct workers *workers, uint32_t n, int base, const struct ledger_writer *ledger);

/* Before and after ledger_commit(). */
void workers_store(const struct workers *workers, struct ledger_writer *ledger);
void workers_publish(struct workers *workers);

#endif
