/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who owns which part of BPF's range array (bpf/tables.h).
 *
 * A slice is a power of two of ranges, at least SLICES_MIN. It may be shared (a child has what its
 * parent had), and what nobody uses any more is written again only TABLES_GRACE_NS later, because a
 * BPF program on another cpu may still be looking at it.
 */
#ifndef SCONCE_SAMPLER_SLICES_H
#define SCONCE_SAMPLER_SLICES_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/record.h"

#define SLICES_MIN    8u
#define SLICES_ORDERS 10
#define SLICES_MAX    (SLICES_MIN << (SLICES_ORDERS - 1)) /* 4096 ranges in one slice */
#define SLICES_NONE   UINT32_MAX

struct slices {
	struct record_range *ranges;
	uint32_t blocks; /* of SLICES_MIN ranges each */
	struct slices_block {
		uint32_t next, prev; /* in the list of its order, while free */
		uint32_t users;
		uint8_t order;
		bool free;
	} * block;
	uint32_t head[SLICES_ORDERS];
	/* Slices in quarantine, oldest first: a ring of `blocks` entries, which is enough for all.
	 */
	struct slices_grave {
		uint64_t freed_ns;
		uint32_t block;
	} * grave;
	uint32_t grave_first, graves;
};

/* ranges: the array, which stays the caller's. 0 or -ENOMEM. */
int slices_init(struct slices *slices, struct record_range *ranges, uint32_t ranges_max);
void slices_fini(struct slices *slices);

/* Room for n ranges with one user. Index of the first, or SLICES_NONE. */
uint32_t slices_take(struct slices *slices, uint32_t n);
uint32_t slices_room(const struct slices *slices, uint32_t first);
/* One more user, and one less. */
void slices_share(struct slices *slices, uint32_t first);
bool slices_shared(const struct slices *slices, uint32_t first);
void slices_drop(struct slices *slices, uint32_t first, uint64_t now_ns);
/* End quarantines. */
void slices_expire(struct slices *slices, uint64_t now_ns);

#endif
