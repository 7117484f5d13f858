/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the workers hand over: their output queues and definition logs. Nothing that a worker wrote
 * is believed: a bad record is counted, its worker is reported to the supervisor, and reading goes
 * on.
 */
#ifndef SCONCE_EXPORTER_INTAKE_H
#define SCONCE_EXPORTER_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "exporter/batch.h"
#include "exporter/definitions.h"
#include "shm/queue.h"
#include "supervisor/child.h"

struct intake_worker {
	struct queue queue;
	struct definitions definitions[2]; /* log a, log b; epoch e is in e % 2 */
	uint64_t reported_ns;
	bool accused; /* of what has made its queue dead */
};

struct intake {
	struct child *child;
	uint32_t workers_n;
	struct intake_worker workers[WORKERS_MAX];
};

/* Open everything at the fds of proto/fds.h and go on behind what is committed. 0 or -errno. */
int intake_open(struct intake *intake, struct child *child);
void intake_close(struct intake *intake);

/*
 * Read a bounded number of records into the batch; ends early when the batch is full. True when
 * there may be more to read.
 */
bool intake_read(struct intake *intake, struct batch *batch);

/* A queue is more than half full: close the batch, so that its tail can be released. */
bool intake_pressed(const struct intake *intake);

/* Close the batch: commit it with the positions up to which it was read, then release them. */
void intake_commit(struct intake *intake, struct batch *batch,
		   struct spool spools[DESTINATION_COUNT]);

#endif
