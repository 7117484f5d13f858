/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The positions in the exporter's ledger, and the rule that makes them hold: ledger.now never
 * carries half of a change. Every commit point (a batch that went into the spools, entries dropped
 * for room, a request that ended, the file) changes it and commits it in one go; what an open
 * interval has counted so far is kept in struct batch until then.
 */
#ifndef SCONCE_EXPORTER_POSITIONS_H
#define SCONCE_EXPORTER_POSITIONS_H

#include "proto/config.h"
#include "proto/role.h"
#include "shm/ledger.h"

enum exporter_position {
	POSITION_TAIL, /* + worker: how far its output queue is in the spools */
	POSITION_SPOOL_HEAD = POSITION_TAIL + WORKERS_MAX,	       /* + destination */
	POSITION_SPOOL_TAIL = POSITION_SPOOL_HEAD + DESTINATION_COUNT, /* + destination */
	/* + destination: samples that left the spool without anybody knowing whether they arrived
	 */
	POSITION_DOUBT = POSITION_SPOOL_TAIL + DESTINATION_COUNT,
	POSITION_BATCH = POSITION_DOUBT + DESTINATION_COUNT, /* number of the next batch */
	POSITION_FILE_WRITTEN, /* 1 = the file of record is complete */
	POSITION_COUNT
};

_Static_assert(POSITION_COUNT <= LEDGER_POSITIONS, "raise LEDGER_POSITIONS");

#endif
