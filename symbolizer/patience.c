/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/patience.h"

/* Waiting may take one part in so many of all time, and so much at once. */
#define SHARE	  4
#define BUDGET_NS 1000000000

void patience_init(struct patience *patience, uint64_t now_ns)
{
	patience->budget_ns = BUDGET_NS;
	patience->counted_ns = now_ns;
	patience->arrivals_in_vain = UINT64_MAX;
}

void patience_earn(struct patience *patience, uint64_t now_ns)
{
	patience->budget_ns += (int64_t)((now_ns - patience->counted_ns) / SHARE);
	if (patience->budget_ns > BUDGET_NS)
		patience->budget_ns = BUDGET_NS;
	patience->counted_ns = now_ns;
}

void patience_spend(struct patience *patience, uint64_t spent_ns)
{
	/* It may be overdrawn: otherwise what little a turn earns would do for the next wait. */
	patience->budget_ns -= (int64_t)spent_ns;
}

bool patience_ample(const struct patience *patience)
{
	return patience->budget_ns > BUDGET_NS / 2;
}

bool patience_allows(struct patience *patience, uint64_t now_ns, uint64_t arrivals,
		     uint64_t *until_ns, bool *over, uint64_t for_ns)
{
	if (*over || arrivals == patience->arrivals_in_vain || patience->budget_ns <= 0)
		return false;
	if (*until_ns == 0)
		*until_ns = now_ns + for_ns;
	if (now_ns < *until_ns)
		return true;
	*over = true;
	patience->arrivals_in_vain = arrivals;
	return false;
}
