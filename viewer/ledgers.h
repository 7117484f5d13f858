/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everybody's counters, read from the ledgers: for /metrics, and for the line under each table that
 * says how far it can be trusted.
 */
#ifndef SCONCE_VIEWER_LEDGERS_H
#define SCONCE_VIEWER_LEDGERS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/role.h"
#include "shm/ledger.h"
#include "viewer/http.h"

struct ledgers {
	const struct ledger *ledger[SLOT_COUNT]; /* NULL where there is none */
	const struct ledger_writer *own;	 /* ahead of what is committed */
};

/* What all processes of this machine did, by enum counter. */
struct ledgers_sum {
	uint64_t counter[COUNTER_COUNT];
};

/* Map those at FD_VIEWER_LEDGERS; a place that holds something else is skipped. */
void ledgers_open(struct ledgers *ledgers, const struct ledger_writer *own);

/* Each counter is taken from its owner only, and summed over workers. */
void ledgers_sum(const struct ledgers *ledgers, struct ledgers_sum *sum);

/* Samples lost, by stage; the way to the viewer counts with the exporter. */
struct ledgers_stage {
	const char *name; /* "kernel" */
	uint64_t lost;
};
#define LEDGERS_STAGES 4
void ledgers_lost(const struct ledgers_sum *sum, struct ledgers_stage stages[LEDGERS_STAGES]);

/* 0..100; -1 when there is nothing to count yet. */
double ledgers_named_percent(const struct ledgers_sum *sum);
double ledgers_complete_percent(const struct ledgers_sum *sum);

/* GET /metrics; the context is struct viewer. */
http_handler ledgers_metrics;

#endif
