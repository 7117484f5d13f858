/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool of one destination: encoded requests that wait to be acknowledged.
 *
 * Who writes, who reads
 *   Only the exporter, in a segment that the supervisor keeps over its restarts.
 *
 * Layout
 *   offset 0      struct spool_header (one page)
 *   offset 4096   a ring of entries: struct spool_entry, then the request, rounded up to 8 bytes.
 * The ring is mapped twice in a row, so that no entry is split. Head and tail are in the ledger
 * (exporter/positions.h), not here: an entry exists when the commit that counts its samples says
 * so.
 *
 * Life of an entry
 *   put -> waiting -> in flight -> acknowledged, refused, or waiting again
 *   - full: the oldest go for room (d_lost_spool_full); not one in flight: then the new one is not
 *     taken.
 *   - in doubt: it was in flight when the exporter died, or a whole request was sent and no answer
 *     came. It is sent again under the same profile ids, but until it is acknowledged its samples
 *     count as d_in_doubt instead of d_waiting. If it leaves the spool in any other way than by an
 *     acknowledgement, they stay there for good (POSITION_DOUBT), because nobody knows.
 *
 * So of the samples that were put, each is in exactly one of acked, lost_spool_full, lost_rejected,
 * in_doubt and waiting, after every commit.
 */
#ifndef SCONCE_EXPORTER_SPOOL_H
#define SCONCE_EXPORTER_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/positions.h"

enum spool_flag {
	SPOOL_IN_FLIGHT = 1,
	SPOOL_IN_DOUBT = 2,
};

struct spool_header {
	uint32_t magic, version;
	uint64_t capacity;
};

struct spool_entry {
	uint32_t len_bytes; /* of the request, behind this struct */
	uint32_t profiles;  /* in the request: a partial success is counted in profiles */
	uint64_t samples;
	uint64_t batch;
	_Atomic uint32_t flags; /* enum spool_flag; written while the entry exists */
	uint32_t attempts;
	uint8_t request[];
};

_Static_assert(sizeof(struct spool_entry) == 32, "spool entry");

struct spool {
	enum destination destination;
	struct ledger_writer *ledger;
	struct spool_header *header;
	char *data;
	uint64_t capacity; /* 0 = this destination is not in use */
};

/* How a request ended. */
enum spool_end {
	SPOOL_ACKED,
	SPOOL_REJECTED, /* for good */
	SPOOL_RETRY,	/* surely not taken */
	SPOOL_UNCLEAR,	/* sent, but no answer */
};

/*
 * Map a spool and take up what the ledger says is in it. An entry that is in flight becomes one in
 * doubt. What cannot be read any more counts as d_lost_spool_full. Commits. 0 or -errno.
 */
int spool_open(struct spool *spool, int fd, struct ledger_writer *ledger,
	       enum destination destination);
void spool_close(struct spool *spool);

/*
 * Make room for a request of len_bytes by giving up the oldest entries. Commits when it gives up
 * any, so it is called before a batch changes the ledger. False: there will not be room.
 */
bool spool_make_room(struct spool *spool, size_t len_bytes);
/*
 * Append a request, or count its samples as lost where there is no room. Changes the ledger and
 * does not commit: the caller does, together with the rest of the batch.
 */
void spool_put(struct spool *spool, const void *request, size_t len_bytes, uint64_t samples,
	       uint32_t profiles, uint64_t batch);

/* The oldest entry, NULL when there is none. Valid until spool_end or spool_make_room. */
const struct spool_entry *spool_first(const struct spool *spool);
/* The entry after `entry`, NULL behind the last. */
const struct spool_entry *spool_next(const struct spool *spool, const struct spool_entry *entry);

/* The oldest entry is sent now. Commits. */
void spool_begin(struct spool *spool);
/* It ended. Of an acknowledged request, `rejected` profiles were refused. Commits. */
void spool_end(struct spool *spool, enum spool_end end, uint64_t rejected);
/* Everything in the spool was written (or not) to the file. Changes the ledger, does not commit. */
void spool_end_all(struct spool *spool, uint64_t acked, uint64_t lost);

#endif
