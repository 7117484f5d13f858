/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the handlers of this process share. main.c makes it; each handler gets it as its context.
 */
#ifndef SCONCE_VIEWER_VIEWER_H
#define SCONCE_VIEWER_VIEWER_H

#include <stdint.h>

#include "supervisor/child.h"
#include "viewer/intake.h"
#include "viewer/ledgers.h"
#include "viewer/slots.h"
#include "viewer/workloads.h"

struct viewer {
	struct child child;
	struct workloads *workloads;
	struct slots slots;
	struct intake intake;
	struct ledgers ledgers;
	uint64_t started_ns, swept_ns;
	uint64_t evicted_counted, expired_counted; /* of slots, in the ledger already */
};

#endif
