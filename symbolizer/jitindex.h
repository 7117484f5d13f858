/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which code made at run time lies where: address -> a number that its owner understands. Pieces
 * are sorted and do not overlap; where code was put over older code, the later one has the bytes.
 *
 * What is added counts from jitindex_settle() on, which sorts all that came since the last time and
 * goes once over all pieces: additions come in thousands, and each is not moved into its place
 * alone.
 */
#ifndef SCONCE_SYMBOLIZER_JITINDEX_H
#define SCONCE_SYMBOLIZER_JITINDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JITINDEX_BYTES_MAX (1u << 30) /* of one piece of code: a longer one is a mistake */
#define JITINDEX_NOTHING   0	      /* as what: there is no code any more */

struct jitindex_piece {
	uint64_t start;
	uint32_t bytes;
	uint32_t what;
};

struct jitindex_added;

struct jitindex {
	struct jitindex_piece *pieces;
	uint32_t n, room;
	struct jitindex_added *added;
	uint32_t added_n, added_room;
};

void jitindex_fini(struct jitindex *index);

/* Can there be such a piece of code? What is not is not added. */
bool jitindex_possible(uint64_t start, uint64_t bytes);
/* 0 or -ENOMEM. */
int jitindex_add(struct jitindex *index, uint64_t start, uint32_t bytes, uint32_t what);
/* 0, or -ENOMEM: then what was added is lost. */
int jitindex_settle(struct jitindex *index);

/* The piece that holds this address; NULL when none does. */
const struct jitindex_piece *jitindex_find(const struct jitindex *index, uint64_t address);
/* Of memory. */
size_t jitindex_bytes(const struct jitindex *index);

#endif
