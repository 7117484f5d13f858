/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "exporter/spool.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "shm/segment.h"

#define SPOOL_MAGIC   0x4c4f5053u /* "SPOL" */
#define SPOOL_VERSION 1

static const struct {
	enum counter acked, lost_spool_full, lost_rejected, in_doubt, retries, waiting;
} counters[DESTINATION_COUNT] = {
#define SPOOL_COUNTERS(d)                                                                          \
	{                                                                                          \
		C_##d##_acked, C_##d##_lost_spool_full, C_##d##_lost_rejected, C_##d##_in_doubt,   \
		    C_##d##_retries, C_##d##_waiting                                               \
	}
    [DESTINATION_VIEWER] = SPOOL_COUNTERS(viewer),
    [DESTINATION_REMOTE] = SPOOL_COUNTERS(remote),
    [DESTINATION_FILE] = SPOOL_COUNTERS(file),
#undef SPOOL_COUNTERS
};

static uint64_t *spool_head(const struct spool *spool)
{
	return &spool->ledger->now.position[POSITION_SPOOL_HEAD + spool->destination];
}

static uint64_t *spool_tail(const struct spool *spool)
{
	return &spool->ledger->now.position[POSITION_SPOOL_TAIL + spool->destination];
}

static uint64_t *spool_doubt(const struct spool *spool)
{
	return &spool->ledger->now.position[POSITION_DOUBT + spool->destination];
}

static uint64_t spool_bytes(size_t request_bytes)
{
	return (sizeof(struct spool_entry) + request_bytes + 7) & ~(uint64_t)7;
}

static struct spool_entry *spool_at(const struct spool *spool, uint64_t position)
{
	return (struct spool_entry *)(spool->data + position % spool->capacity);
}

/* Waiting and in doubt are what the entries say; recomputed rather than kept, so they cannot drift.
 */
static void spool_count(struct spool *spool)
{
	uint64_t waiting = 0, doubt = *spool_doubt(spool);

	for (uint64_t at = *spool_tail(spool); at < *spool_head(spool);
	     at += spool_bytes(spool_at(spool, at)->len_bytes)) {
		const struct spool_entry *entry = spool_at(spool, at);

		if (atomic_load_explicit(&entry->flags, memory_order_relaxed) & SPOOL_IN_DOUBT)
			doubt += entry->samples;
		else
			waiting += entry->samples;
	}
	ledger_set(spool->ledger, counters[spool->destination].waiting, waiting);
	ledger_set(spool->ledger, counters[spool->destination].in_doubt, doubt);
}

/* Are the entries between tail and head those that were written? */
static bool spool_valid(const struct spool *spool)
{
	uint64_t head = *spool_head(spool), at = *spool_tail(spool);

	if (at > head || head - at > spool->capacity || (head & 7) || (at & 7))
		return false;
	while (at < head) {
		uint64_t bytes = spool_bytes(spool_at(spool, at)->len_bytes);

		if (bytes > head - at)
			return false;
		at += bytes;
	}
	return true;
}

static int spool_map(struct spool *spool, int fd)
{
	const int prot = PROT_READ | PROT_WRITE;
	long size = segment_size(fd);
	char *base;

	if (size < 0)
		return (int)size;
	if (size < 2 * SEGMENT_PAGE)
		return -EPROTO;
	spool->capacity = (uint64_t)size - SEGMENT_PAGE;
	base = mmap(NULL, SEGMENT_PAGE + 2 * spool->capacity, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	spool->header = (struct spool_header *)base;
	spool->data = base + SEGMENT_PAGE;
	if (mmap(base, (size_t)size, prot, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(spool->data + spool->capacity, spool->capacity, prot, MAP_SHARED | MAP_FIXED, fd,
		 SEGMENT_PAGE) == MAP_FAILED)
		return -errno;
	return 0;
}

/* The segment is new, or another build's: what the ledger says of it does not hold. */
static void spool_reset(struct spool *spool)
{
	enum counter waiting = counters[spool->destination].waiting;
	enum counter doubt = counters[spool->destination].in_doubt;
	struct ledger_entry *now = &spool->ledger->now;

	ledger_add(spool->ledger, counters[spool->destination].lost_spool_full,
		   now->counter[waiting]);
	*spool_doubt(spool) = now->counter[doubt];
	*spool_tail(spool) = *spool_head(spool) = 0;
	spool->header->version = SPOOL_VERSION;
	spool->header->capacity = spool->capacity;
	spool->header->magic = SPOOL_MAGIC;
}

int spool_open(struct spool *spool, int fd, struct ledger_writer *ledger,
	       enum destination destination)
{
	struct spool_entry *first;
	int err;

	memset(spool, 0, sizeof(*spool));
	spool->ledger = ledger;
	spool->destination = destination;
	err = spool_map(spool, fd);
	if (err) {
		spool_close(spool);
		return err;
	}
	if (spool->header->magic != SPOOL_MAGIC || spool->header->version != SPOOL_VERSION ||
	    spool->header->capacity != spool->capacity || !spool_valid(spool))
		spool_reset(spool);
	first = (struct spool_entry *)spool_first(spool);
	if (first && (atomic_load(&first->flags) & SPOOL_IN_FLIGHT))
		atomic_store(&first->flags, SPOOL_IN_DOUBT);
	spool_count(spool);
	ledger_commit(ledger);
	return 0;
}

void spool_close(struct spool *spool)
{
	if (spool->header)
		munmap(spool->header, SEGMENT_PAGE + 2 * spool->capacity);
	memset(spool, 0, sizeof(*spool));
}

const struct spool_entry *spool_first(const struct spool *spool)
{
	if (!spool->capacity || *spool_tail(spool) == *spool_head(spool))
		return NULL;
	return spool_at(spool, *spool_tail(spool));
}

const struct spool_entry *spool_next(const struct spool *spool, const struct spool_entry *entry)
{
	uint64_t tail = *spool_tail(spool);
	/* The distance from the tail, on a ring whose entries may stand in the second mapping. */
	uint64_t from = ((uint64_t)((const char *)entry - spool->data) + spool->capacity -
			 tail % spool->capacity) %
			spool->capacity;
	uint64_t next = tail + from + spool_bytes(entry->len_bytes);

	return next < *spool_head(spool) ? spool_at(spool, next) : NULL;
}

/* The oldest entry leaves; its samples go to `counter`, or stay in doubt for good. */
static void spool_drop_first(struct spool *spool, enum counter counter)
{
	const struct spool_entry *entry = spool_first(spool);

	if (entry->flags & SPOOL_IN_DOUBT)
		*spool_doubt(spool) += entry->samples;
	else
		ledger_add(spool->ledger, counter, entry->samples);
	*spool_tail(spool) += spool_bytes(entry->len_bytes);
}

static bool spool_fits(const struct spool *spool, size_t len_bytes)
{
	return *spool_head(spool) - *spool_tail(spool) + spool_bytes(len_bytes) <= spool->capacity;
}

bool spool_make_room(struct spool *spool, size_t len_bytes)
{
	const struct spool_entry *first;
	bool dropped = false;

	if (spool_bytes(len_bytes) > spool->capacity)
		return false;
	while (!spool_fits(spool, len_bytes)) {
		first = spool_first(spool);
		if (first->flags & SPOOL_IN_FLIGHT)
			break;
		spool_drop_first(spool, counters[spool->destination].lost_spool_full);
		dropped = true;
	}
	/* Before their bytes are written over: a kill must not find them half gone. */
	if (dropped) {
		spool_count(spool);
		ledger_commit(spool->ledger);
	}
	return spool_fits(spool, len_bytes);
}

void spool_put(struct spool *spool, const void *request, size_t len_bytes, uint64_t samples,
	       uint32_t profiles, uint64_t batch)
{
	struct spool_entry *entry = spool_at(spool, *spool_head(spool));

	if (!spool_fits(spool, len_bytes)) {
		ledger_add(spool->ledger, counters[spool->destination].lost_spool_full, samples);
		return;
	}
	entry->len_bytes = (uint32_t)len_bytes;
	entry->profiles = profiles;
	entry->samples = samples;
	entry->batch = batch;
	entry->attempts = 0;
	atomic_store_explicit(&entry->flags, 0, memory_order_relaxed);
	memcpy(entry->request, request, len_bytes);
	*spool_head(spool) += spool_bytes(len_bytes);
	spool_count(spool);
}

void spool_begin(struct spool *spool)
{
	struct spool_entry *entry = (struct spool_entry *)spool_first(spool);

	/* Set before a byte is sent: whoever finds it after a kill cannot know more than this. */
	atomic_fetch_or(&entry->flags, SPOOL_IN_FLIGHT);
	if (entry->attempts++) {
		ledger_add(spool->ledger, counters[spool->destination].retries, 1);
		ledger_commit(spool->ledger);
	}
}

/* Samples of the profiles that a partial success refused; it does not say which profiles. */
static uint64_t spool_refused(const struct spool_entry *entry, uint64_t rejected)
{
	if (!rejected || !entry->profiles)
		return 0;
	if (rejected >= entry->profiles)
		return entry->samples;
	return (entry->samples * rejected + entry->profiles - 1) / entry->profiles;
}

void spool_end(struct spool *spool, enum spool_end end, uint64_t rejected)
{
	struct spool_entry *entry = (struct spool_entry *)spool_first(spool);
	uint64_t refused = spool_refused(entry, rejected);

	switch (end) {
	case SPOOL_ACKED:
		ledger_add(spool->ledger, counters[spool->destination].acked,
			   entry->samples - refused);
		ledger_add(spool->ledger, counters[spool->destination].lost_rejected, refused);
		*spool_tail(spool) += spool_bytes(entry->len_bytes);
		break;
	case SPOOL_REJECTED:
		spool_drop_first(spool, counters[spool->destination].lost_rejected);
		break;
	case SPOOL_RETRY:
		atomic_fetch_and(&entry->flags, ~(uint32_t)SPOOL_IN_FLIGHT);
		break;
	case SPOOL_UNCLEAR:
		atomic_store(&entry->flags, SPOOL_IN_DOUBT);
		break;
	}
	spool_count(spool);
	ledger_commit(spool->ledger);
}

void spool_end_all(struct spool *spool, uint64_t acked, uint64_t lost)
{
	ledger_add(spool->ledger, counters[spool->destination].acked, acked);
	ledger_add(spool->ledger, counters[spool->destination].lost_rejected, lost);
	*spool_tail(spool) = *spool_head(spool);
	spool_count(spool);
}
