/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's loop: process records and samples in, definitions and symbolized samples out, and
 * the books of it (shm/ledger.h). One turn is one batch.
 *
 * A sample may wait at the head of its queue, for a process that was asked for or a file on its
 * way; how long is bounded per process, per file and over all. The clock of all waiting is the
 * sample queue's: nothing else is slept on for more than a few milliseconds.
 */
#ifndef SCONCE_SYMBOLIZER_WORKER_H
#define SCONCE_SYMBOLIZER_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/queue.h"
#include "supervisor/child.h"
#include "symbolizer/define.h"
#include "symbolizer/files.h"
#include "symbolizer/filetable.h"
#include "symbolizer/introductions.h"
#include "symbolizer/jit.h"
#include "symbolizer/kallsyms.h"
#include "symbolizer/patience.h"
#include "symbolizer/peers.h"
#include "symbolizer/process.h"
#include "symbolizer/reader.h"
#include "symbolizer/runtimes.h"
#include "symbolizer/scripts.h"
#include "symbolizer/symbolize.h"

/* Positions in the ledger. */
enum worker_position {
	WORKER_SAMPLES_TAIL,
	WORKER_PROCESS_TAIL,
	WORKER_OUTPUT_HEAD,
	WORKER_EPOCH,	    /* of the definition log, and ... */
	WORKER_EPOCH_BEGAN, /* ... where in the output queue its samples begin */
};

/* Written as a sample is begun so often, it is given up. */
#define WORKER_ATTEMPTS_MAX 3

struct worker {
	struct child *child;
	struct queue samples, output;
	struct introductions introductions;
	struct channel sampler, broker;
	struct define define;
	struct reader reader;
	struct files files;
	struct filetables tables;
	struct peers peers;
	struct processes processes;
	struct kallsyms kallsyms;
	struct jit jit;
	struct runtimes runtimes;
	struct scripts scripts;
	struct symbolize symbolize;

	uint64_t sample_buf[RECORD_BYTES_MAX / 8]; /* the sample at work */
	bool holding;				   /* sample_buf holds one that is not done */
	bool begun;				   /* ... and its attempt is written down */
	uint64_t samples_done; /* position behind the last sample that is done */
	bool dirty;	       /* there is something to commit */
	bool waiting;	       /* the sample at work waits for something */
	bool wants_ranges;     /* ... for the ranges of its process */
	bool borrowing;	       /* ... for a table that another worker makes */
	uint64_t loan_until_ns; /* ... but not longer, for all that it needs; 0 = for none yet */
	bool broken;	       /* a peer lies: leave */
	bool introduced;       /* the sampler knows that this is a new worker */

	uint64_t drain_end_ns; /* when there is no time left; 0 = the end has not begun */

	/* A sample that ended us before, as an earlier instance left it in the ledger. */
	uint64_t suspect, suspect_attempts;

	struct patience patience;
};

/* Open everything at the fds of proto/fds.h and go on where the ledger says. 0 or -errno. */
int worker_open(struct worker *worker, struct child *child);
void worker_close(struct worker *worker);

/*
 * One batch, then sleep until there is more, at most 100 ms. The first begins by telling the sampler
 * that this worker knows nothing. False: leave.
 */
bool worker_turn(struct worker *worker);

#endif
