/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open interval: samples merged since the last commit, and the step that turns them into one
 * encoded request per destination.
 *
 * The first batch is closed 500 ms after its first sample, so that something is to be seen soon;
 * the others after 5 s, or earlier when memory or an output queue gets short.
 *
 * The surprise: nothing of an open interval is in the ledger. When the exporter dies, its samples
 * are still in the output queues and are read again.
 */
#ifndef SCONCE_EXPORTER_BATCH_H
#define SCONCE_EXPORTER_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "exporter/spool.h"
#include "profile/profile.h"
#include "proto/config.h"

#define BATCH_PROFILE_BYTES (16u << 20)

struct batch {
	const struct config *config;
	struct profile *profile;
	uint32_t generation;	    /* of this batch in this process, never 0 */
	bool full;		    /* a sample did not fit: close it first */
	uint64_t opened_ns;	    /* when its first record was read, 0 = it is empty */
	uint64_t first_ns, last_ns; /* times of its samples, CLOCK_BOOTTIME */
	uint64_t samples, bad_records, too_many; /* counted when it is committed */
};

/* 0 or -ENOMEM. */
int batch_open(struct batch *batch, const struct config *config);
void batch_close(struct batch *batch);

/* 0; -ENOSPC: close the batch first, then try again (never for the first sample of a batch: that
 * one is counted as lost). */
int batch_add(struct batch *batch, const struct profile_sample *sample, uint64_t time_ns,
	      uint64_t now_ns);
/* What follows a failure of another kind than a full profile: a record that counts as lost. */
void batch_bad_record(struct batch *batch, uint64_t now_ns);
void batch_no_room(struct batch *batch, uint64_t now_ns);

bool batch_due(const struct batch *batch, uint64_t now_ns);

/*
 * Encode what was merged into the spools that are in use, and commit that together with the tails
 * of the output queues. The batch is empty afterwards; the caller releases the tails.
 */
void batch_commit(struct batch *batch, struct ledger_writer *ledger,
		  struct spool spools[DESTINATION_COUNT], const uint64_t *tails, uint32_t workers);

#endif
