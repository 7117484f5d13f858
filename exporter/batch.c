/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profile/otlp.h"

#define MS	       1000000ull
#define BATCH_FIRST_NS (500 * MS)
#define BATCH_NS       (5000 * MS)
/* A sample that claims to be older than this, or to come from the future, is dated into the batch.
 */
#define BATCH_OLDEST_NS	    (60000 * MS)
#define BATCH_RESOURCES_MAX (OTLP_RESOURCES_MAX / 2)

int batch_open(struct batch *batch, const struct config *config)
{
	memset(batch, 0, sizeof(*batch));
	batch->config = config;
	batch->generation = 1;
	batch->profile = profile_new(BATCH_PROFILE_BYTES);
	return batch->profile ? 0 : -ENOMEM;
}

void batch_close(struct batch *batch)
{
	profile_free(batch->profile);
	batch->profile = NULL;
}

static void batch_begin(struct batch *batch, uint64_t now_ns)
{
	if (!batch->opened_ns)
		batch->opened_ns = now_ns;
}

static void batch_time(struct batch *batch, uint64_t time_ns, uint64_t now_ns)
{
	if (time_ns > now_ns)
		time_ns = now_ns;
	if (time_ns + BATCH_OLDEST_NS < now_ns)
		time_ns = now_ns - BATCH_OLDEST_NS;
	if (!batch->first_ns || time_ns < batch->first_ns)
		batch->first_ns = time_ns;
	if (time_ns > batch->last_ns)
		batch->last_ns = time_ns;
}

int batch_add(struct batch *batch, const struct profile_sample *sample, uint64_t time_ns,
	      uint64_t now_ns)
{
	batch_begin(batch, now_ns);
	if (profile_resources_n(batch->profile) > BATCH_RESOURCES_MAX ||
	    profile_add(batch->profile, sample, 1)) {
		batch_no_room(batch, now_ns);
		return batch->full ? -ENOSPC : 0;
	}
	batch->samples++;
	batch_time(batch, time_ns, now_ns);
	return 0;
}

void batch_bad_record(struct batch *batch, uint64_t now_ns)
{
	batch_begin(batch, now_ns);
	batch->bad_records++;
}

void batch_no_room(struct batch *batch, uint64_t now_ns)
{
	batch_begin(batch, now_ns);
	/* Alone in a batch and still too big: it will never fit. */
	if (batch->samples)
		batch->full = true;
	else
		batch->too_many++;
}

bool batch_due(const struct batch *batch, uint64_t now_ns)
{
	/* Soon after a start: what is there may have waited since a process before us was killed. */
	bool first = batch->generation == 1;

	if (!batch->opened_ns)
		return false;
	return batch->full || batch->too_many ||
	       now_ns - batch->opened_ns >= (first ? BATCH_FIRST_NS : BATCH_NS);
}

static uint64_t batch_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* One pair of clocks per batch turns our times into wall time. */
static void batch_cover(struct batch *batch)
{
	uint64_t wall = batch_clock(CLOCK_REALTIME), boot = batch_clock(CLOCK_BOOTTIME);

	profile_cover(batch->profile, wall - boot + batch->first_ns,
		      wall - boot + batch->last_ns + 1);
}

struct batch_request {
	uint8_t *bytes;
	size_t len;
	uint32_t profiles;
};

/* Number of Profiles in a request: one per (resource, period). Periods hardly ever differ. */
static uint32_t batch_profiles(const struct profile *profile)
{
	return profile_resources_n(profile);
}

static int batch_encode(struct batch *batch, const struct ledger_writer *ledger, bool process_ids,
			struct batch_request *request)
{
	struct otlp_encode_options options = {
	    .with_process_ids = process_ids,
	    .batch = ledger->now.position[POSITION_BATCH],
	};

	memcpy(options.instance, batch->config->runtime.instance, sizeof(options.instance));
	request->profiles = batch_profiles(batch->profile);
	return otlp_encode(batch->profile, &options, &request->bytes, &request->len);
}

/* Remote series multiply with every pid, so only those who look at single processes get them. */
static const bool with_process_ids[DESTINATION_COUNT] = {
    [DESTINATION_VIEWER] = true,
    [DESTINATION_REMOTE] = false,
    [DESTINATION_FILE] = true,
};

static int batch_spool(struct batch *batch, struct ledger_writer *ledger,
		       struct spool spools[DESTINATION_COUNT])
{
	struct batch_request requests[2] = {{0}};
	struct batch_request *of[DESTINATION_COUNT];
	int err = 0;

	for (int d = 0; d < DESTINATION_COUNT && !err; d++) {
		of[d] = &requests[with_process_ids[d]];
		if (!spools[d].capacity)
			continue;
		if (!of[d]->bytes)
			err = batch_encode(batch, ledger, with_process_ids[d], of[d]);
		/* May commit, so it comes before anything of this batch is in the ledger. */
		if (!err)
			spool_make_room(&spools[d], of[d]->len);
	}
	for (int d = 0; d < DESTINATION_COUNT && !err; d++) {
		if (!spools[d].capacity)
			continue;
		spool_put(&spools[d], of[d]->bytes, of[d]->len, batch->samples, of[d]->profiles,
			  ledger->now.position[POSITION_BATCH]);
		ledger_add(ledger, C_batch_bytes, of[d]->len);
	}
	free(requests[0].bytes);
	free(requests[1].bytes);
	return err;
}

void batch_commit(struct batch *batch, struct ledger_writer *ledger,
		  struct spool spools[DESTINATION_COUNT], const uint64_t *tails, uint32_t workers)
{
	int err = 0;

	if (batch->samples) {
		batch_cover(batch);
		err = batch_spool(batch, ledger, spools);
		if (err)
			ledger_add(ledger, C_lost_exporter_table_full, batch->samples);
		else
			ledger_add(ledger, C_exporter_samples, batch->samples);
		ledger_add(ledger, C_batches, !err);
		ledger->now.position[POSITION_BATCH]++;
	}
	ledger_add(ledger, C_lost_exporter_bad_record, batch->bad_records);
	ledger_add(ledger, C_lost_exporter_table_full, batch->too_many);
	for (uint32_t k = 0; k < workers; k++)
		ledger->now.position[POSITION_TAIL + k] = tails[k];
	ledger_commit(ledger);
	profile_clear(batch->profile);
	/* After 2^32 batches (680 years of 5 s) a slot could be taken for a new one; 0 stays free.
	 */
	batch->generation += batch->generation == UINT32_MAX ? 2 : 1;
	batch->full = false;
	batch->opened_ns = batch->first_ns = batch->last_ns = 0;
	batch->samples = batch->bad_records = batch->too_many = 0;
}
