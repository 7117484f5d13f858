/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process queue: what the sampler tells of processes and files. It is taken in step with the
 * samples, so that none is resolved by what was mapped after it.
 */
#ifndef SCONCE_SYMBOLIZER_INTRODUCTIONS_H
#define SCONCE_SYMBOLIZER_INTRODUCTIONS_H

#include <stdint.h>

#include "shm/queue.h"
#include "symbolizer/files.h"
#include "symbolizer/process.h"

union introduction {
	struct record_header header;
	struct record_process process;
	struct record_mapping mapping;
	struct record_file file;
	char bytes[512];
};

struct introductions {
	struct queue queue;
	struct processes *processes;
	struct files *files;
	union introduction held; /* taken from the queue, for a later sample */
	long held_bytes;	 /* of it; 0 = none */
};

/* Everything before this position of the queue has been taken. */
uint64_t introductions_done(const struct introductions *in);
/*
 * Take what was told before the sample at this position of the sample queue was passed on. 1 if
 * there was something, 0, or -EPROTO.
 */
int introductions_take(struct introductions *in, uint64_t sample);
/*
 * The ranges that this sample waits for may have been told since. They are taken out of turn, and
 * once more in their turn: what stands before them is for the samples between.
 */
void introductions_look_ahead(struct introductions *in, const struct record_sample *sample);

#endif
