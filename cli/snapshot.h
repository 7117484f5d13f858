/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a running sconce: what the supervisor answered to STATUS, and every counter, read from
 * the ledgers that came with the answer. A ledger can be read as long as it is mapped, also after
 * its owner and the supervisor have ended.
 */
#ifndef SCONCE_CLI_SNAPSHOT_H
#define SCONCE_CLI_SNAPSHOT_H

#include "proto/config.h"
#include "proto/messages.h"
#include "shm/ledger.h"

struct snapshot {
	struct message_status status;
	const struct config *config;
	const struct ledger *ledgers[SLOT_COUNT]; /* by slot */
	uint64_t counter[COUNTER_COUNT];	  /* summed over workers */
};

/*
 * Take up an answer; the fds are closed. Begin with a zeroed snapshot. Without a configuration that we
 * understand there are no processes.
 */
void snapshot_take(struct snapshot *snapshot, const struct message_status *status, const int *fds,
		   size_t fds_n);
/* Read all counters again. */
void snapshot_read(struct snapshot *snapshot);
/* Everything that was lost anywhere on the way to any destination. */
uint64_t snapshot_lost(const struct snapshot *snapshot);
void snapshot_free(struct snapshot *snapshot);

#endif
