/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who owns which part of BPF's range array (bpf/tables.h): runs of blocks of SLICES_BLOCK ranges.
 *
 * A slice may be shared (a child has what its parent had). What nobody uses any more is written
 * again only TABLES_GRACE_NS later, because a BPF program on another cpu may still be looking at
 * it.
 */
#ifndef SCONCE_SAMPLER_SLICES_H
#define SCONCE_SAMPLER_SLICES_H

#include <stdint.h>

#include "shm/record.h"

#define SLICES_BLOCK	  8u
#define SLICES_BLOCKS_MAX 131072u
#define SLICES_MAX	  4096u /* ranges of one process */
#define SLICES_NONE	  UINT32_MAX

struct slices {
	struct record_range *ranges;
	uint32_t blocks, hand;
	uint32_t used; /* blocks */
	struct {
		uint64_t free_ns;	/* may be taken from then on; UINT64_MAX = in use */
		uint32_t length, users; /* of the slice that begins here */
	} block[SLICES_BLOCKS_MAX];
};

/* ranges stays the caller's. */
void slices_init(struct slices *slices, struct record_range *ranges, uint32_t ranges_max);
/* Room for n ranges with one user. Index of the first, or SLICES_NONE. */
uint32_t slices_take(struct slices *slices, uint32_t n, uint64_t now_ns);
/* One user less. */
void slices_drop(struct slices *slices, uint32_t first, uint64_t now_ns);
/* May range n be added in place? */
int slices_has_room(const struct slices *slices, uint32_t first, uint32_t n);
/* How many ranges may stand in the slice that begins at first; 0 = none begins there. */
static inline uint32_t slices_room(const struct slices *slices, uint32_t first)
{
	return first % SLICES_BLOCK || first / SLICES_BLOCK >= slices->blocks
		       ? 0
		       : slices->block[first / SLICES_BLOCK].length * SLICES_BLOCK;
}
static inline void slices_share(struct slices *slices, uint32_t first)
{
	slices->block[first / SLICES_BLOCK].users++;
}

#endif
