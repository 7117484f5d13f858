/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a sample may wait for what was asked for: so long per thing, once; a share of all time
 * over all; and not at all while the last wait was in vain and nothing has come since, because then
 * nobody answers.
 */
#ifndef SCONCE_SYMBOLIZER_PATIENCE_H
#define SCONCE_SYMBOLIZER_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

struct patience {
	int64_t budget_ns;
	uint64_t counted_ns;
	uint64_t arrivals_in_vain; /* what had arrived when a wait was in vain */
};

void patience_init(struct patience *patience, uint64_t now_ns);
/* Share out the time that has passed. */
void patience_earn(struct patience *patience, uint64_t now_ns);
void patience_spend(struct patience *patience, uint64_t spent_ns);
/* Is there enough for what is less important? */
bool patience_ample(const struct patience *patience);

/*
 * May the wait for this thing begin, or go on? until_ns and over are the thing's own, 0 and false
 * at first. arrivals: a number that grows with everything that arrives.
 */
bool patience_allows(struct patience *patience, uint64_t now_ns, uint64_t arrivals,
		     uint64_t *until_ns, bool *over, uint64_t for_ns);

#endif
