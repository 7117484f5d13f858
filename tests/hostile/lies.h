/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker could say and write if somebody had taken it over. A lie is told again with every
 * turn of the worker until the supervisor ends it; one that tells it only once looks at liar->told.
 */
#ifndef SCONCE_TESTS_HOSTILE_LIES_H
#define SCONCE_TESTS_HOSTILE_LIES_H

#include "symbolizer/worker.h"

struct liar {
	struct child child;
	struct worker worker;
	bool first;    /* nobody was this worker before */
	uint32_t told; /* how often, before this time */
	uint64_t random;
};

struct lie {
	const char *name;
	void (*tell)(struct liar *liar);
	bool unconfined; /* it takes calls that are on no list: where the kernel, or a container,
			    has none */
};

uint64_t lies_random(struct liar *liar);

/* By name; tell is NULL behind the last. */
extern const struct lie lies_messages[], lies_tables[], lies_memory[], lies_life[];

#endif
