/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sorted set of executable address ranges that do not overlap: what one process has mapped.
 */
#ifndef SCONCE_SAMPLER_RANGES_H
#define SCONCE_SAMPLER_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/record.h"

/*
 * Put a new mapping into set[*n]. It replaces whatever it overlaps, because the kernel had unmapped
 * that before; cutting the middle out of a range makes two of it, so the set may grow by two. A
 * range that it goes on from is joined. 0; 1 when something else was at a part of it; or -ENOSPC when
 * there is no room for two more, and then nothing has changed. range->start < range->end.
 */
int ranges_insert(struct record_range *set, uint32_t *n, uint32_t max,
		  const struct record_range *range);

/* Nothing would change by inserting it (the kernel reports a mapping again when it is protected).
 */
bool ranges_has(const struct record_range *set, uint32_t n, const struct record_range *range);

/* The range that holds address; NULL = none. */
const struct record_range *ranges_at(const struct record_range *set, uint32_t n, uint64_t address);

#endif
