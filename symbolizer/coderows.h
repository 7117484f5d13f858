/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From code that was followed (codeflow.h) to the rules of a table (shm/table.h).
 */
#ifndef SCONCE_SYMBOLIZER_CODEROWS_H
#define SCONCE_SYMBOLIZER_CODEROWS_H

#include "shm/table.h"
#include "symbolizer/codegraph.h"

/* An instruction, or a stretch that nothing has reached. */
struct coderows_place {
	uint64_t vaddr;
	uint32_t bytes;
	bool known, padding; /* padding: not reached, and nothing but that */
};

typedef void coderows_each_fn(void *arg, const struct coderows_place *place,
			      const struct codestate *state);
/* Every byte of an area, in order; state is NULL where nothing is known. */
void coderows_each(const struct codegraph *graph, uint32_t area, coderows_each_fn *fn, void *arg);

typedef void coderows_fn(void *arg, uint64_t vaddr, const struct table_rule *rule);
/* The rules of an area: fn is called with ascending addresses, the area's own first. */
void coderows_area(const struct codegraph *graph, uint32_t area, coderows_fn *fn, void *arg);

/* Whether there is any code of which something is known. */
bool coderows_any(const struct codegraph *graph);

#endif
