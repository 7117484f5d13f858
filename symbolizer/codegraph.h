/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machine code without call frame information, as blocks and functions: what codeflow, codetry,
 * codeconfirm and coderows share. Who only wants rules for a file includes codegaps.h.
 *
 * A block begins where something jumps to, where a call returns to, and where a function begins.
 * The state (codestate.h) is kept at its beginning alone, and only ever loses knowledge or gains
 * strength, so that each block is followed a bounded number of times.
 *
 * Bounds: so many bytes of code, so many blocks, and so many instructions decoded. When one is
 * passed, `err` is set and there are no rules at all, because what was not seen may contradict
 * them.
 */
#ifndef SCONCE_SYMBOLIZER_CODEGRAPH_H
#define SCONCE_SYMBOLIZER_CODEGRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/codestate.h"

#define CODEGRAPH_BYTES_MAX   (4u << 20)
#define CODEGRAPH_AREAS_MAX   16384
#define CODEGRAPH_BLOCKS_MAX  (1u << 18) /* and functions */
#define CODEGRAPH_DECODES_MAX (4u << 20) /* about a second */
#define CODEGRAPH_TAKEN_MAX   65536u
#define CODEGRAPH_ALIGN	      16 /* where compilers place functions */
#define CODEGRAPH_LEVELS      4
#define CODEGRAPH_SCAN_BYTES  64 /* looked at in the time of one instruction */
#define CODEGRAPH_NONE	      UINT32_MAX

/* Code without information. */
struct codegraph_area {
	uint64_t vaddr;
	const uint8_t *bytes;
	uint32_t n;
	uint32_t at; /* its first byte in codegraph.map; set by codegraph_open() */
};

enum codegraph_mark {
	MARK_INSN = 1,	 /* an instruction begins here */
	MARK_INSIDE = 2, /* goes on here */
};

/* Strength: what has to be so for the block to be reached as it was. */
enum codegraph_level {
	LEVEL_FLOW,
	LEVEL_RETURNED, /* a function that can return returns, as does one behind a pointer */
	LEVEL_TABLE,	/* a table of jumps holds nothing else */
	LEVEL_ASSUMED,	/* a function of which nothing is known returns */
};

struct codegraph_block {
	uint64_t vaddr;
	uint32_t area, owner; /* owner: index of the function */
	uint32_t next_queued, next_waiting;
	uint8_t level;
	uint8_t jumped; /* strength of where an indirect jump at its end went, + 1 */
	bool queued, waiting;
	bool is_start, confirmed;
	struct codestate state;
};

/* What becomes of a function, and of its caller's registers. */
enum codegraph_fate {
	FATE_RETURNS = 1,
	FATE_MAY_RETURN = 2, /* it goes where we do not see it */
	FATE_LOSES_SP = 4,
	FATE_LOSES_FP = 8,
};

/* A function, by where it begins. */
struct codegraph_start {
	uint32_t waiting; /* blocks that end with a call or a jump to it */
	uint8_t fate;
	uint8_t odd_level; /* rules of this strength and of less do not hold together */
};

/* Bytes of the file by their address, for tables of jumps; NULL when there are none. */
typedef const uint8_t *codegraph_data_fn(void *arg, uint64_t vaddr, uint64_t bytes);

struct codegraph {
	struct codegraph_area *areas; /* sorted by address, not overlapping; the caller's */
	uint32_t areas_n;
	codegraph_data_fn *data;
	void *data_arg;
	uint8_t *map;	    /* for each byte of the areas: enum codegraph_mark */
	uint32_t *block_at; /* index of the block that begins there + 1 */
	uint32_t map_n;
	struct codegraph_block *blocks;
	uint32_t blocks_n, blocks_room;
	struct codegraph_start *starts;
	uint32_t starts_n, starts_room;
	uint32_t queue[CODEGRAPH_LEVELS]; /* blocks to follow, by strength */
	uint64_t *taken;		  /* addresses of code that were seen in registers */
	uint32_t taken_n, taken_room;
	uint64_t decodes;
	/* While a beginning is tried: what was there before, and what was marked since. */
	uint32_t kept_blocks, kept_starts;
	uint32_t *marked; /* place << 4 | length */
	uint32_t marked_n, marked_room;
	bool trying, refuted, returned;
	int err; /* -EFBIG, -ENOMEM */
};

/* 0, -EFBIG, -ENOMEM. The areas, and their bytes, stay the caller's and as they are. */
int codegraph_open(struct codegraph *graph, struct codegraph_area *areas, uint32_t areas_n,
		   codegraph_data_fn *data, void *data_arg);
void codegraph_close(struct codegraph *graph);

/* Room for one more element; false with graph->err. */
bool codegraph_grow(struct codegraph *graph, void **array, uint32_t n, uint32_t *room, size_t bytes,
		    uint32_t max);
/* Work has been done, in instructions. */
void codegraph_count(struct codegraph *graph, uint32_t work);

/* --- Code: addresses and instructions. --- */

/* The area that an address lies in; NULL when in none. */
const struct codegraph_area *codegraph_find(const struct codegraph *graph, uint64_t vaddr);
/* The place of an address of the area in map and block_at. */
uint32_t codegraph_index(const struct codegraph_area *area, uint64_t vaddr);
/* What addresses in states are counted from. */
uint64_t codegraph_origin(const struct codegraph *graph);
bool codegraph_decode(const struct codegraph_area *area, uint64_t vaddr, struct x86_insn *insn);
/* The first byte of the area from `at` on, before `end`, that is not padding. */
uint32_t codegraph_skip_padding(const struct codegraph_area *area, uint32_t at, uint32_t end);
/* Whether padding stands here, and behind it a place where compilers let functions begin. */
bool codegraph_is_padded(const struct codegraph_area *area, uint64_t vaddr);
/* The end of a stretch of the area that nothing has reached. */
uint32_t codegraph_skip_unreached(const struct codegraph *graph, const struct codegraph_area *area,
				  uint32_t at);
/* call to the next instruction: the way of old code to learn where it is. */
bool codegraph_is_push(const struct x86_insn *insn, uint64_t at);
/* Whether a call goes to a place, or to the address in one, of which no more is known. */
bool codegraph_is_foreign(const struct x86_insn *insn);
bool codegraph_ends_block(const struct x86_insn *insn, uint64_t at);
/* The state behind an instruction that does not end a block. */
void codegraph_pass(struct codestate *state, const struct x86_insn *insn, uint64_t at,
		    uint64_t origin);

/* --- Blocks and functions. --- */

/* The block that begins at an address; NULL when none does. Valid until one is added. */
struct codegraph_block *codegraph_block(const struct codegraph *graph, uint64_t vaddr);
/* CODEGRAPH_NONE with graph->err. */
uint32_t codegraph_add_block(struct codegraph *graph, const struct codegraph_area *area,
			     uint64_t vaddr, const struct codestate *state, uint8_t level,
			     uint32_t owner);
void codegraph_queue(struct codegraph *graph, uint32_t block);
/* A block was followed through what now begins one of its own: it has to end here. */
void codegraph_split(struct codegraph *graph, const struct codegraph_area *area, uint64_t vaddr);
/* The function that begins here, made when there is none; CODEGRAPH_NONE: it cannot be one. */
uint32_t codegraph_start(struct codegraph *graph, uint64_t vaddr);
/* Mark the bytes of an instruction. False: others begin or end among them. */
bool codegraph_mark(struct codegraph *graph, uint32_t at, uint8_t length);

/* While a beginning is tried: whether a block was there before. */
bool codegraph_is_kept(const struct codegraph *graph, uint32_t block);
/* Something does not fit. What is only tried is given up for it. */
void codegraph_refute(struct codegraph *graph);

#endif
