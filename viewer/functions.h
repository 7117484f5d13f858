/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Self and Total of every function in a slot.
 *
 *   Self   samples whose leaf it was
 *   Total  samples with it anywhere in the stack: recursion counts once
 * A function is a name in a module (the file of its mapping): equal names of two libraries are two.
 * A sample without a stack belongs to "[no stack]".
 */
#ifndef SCONCE_VIEWER_FUNCTIONS_H
#define SCONCE_VIEWER_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "viewer/slots.h"

struct function_row {
	const char *name, *module, *file; /* of the slot: until it changes */
	bool kernel;
	uint64_t self, total;
	uint64_t last_stack; /* the stack that `total` counted last */
	uint32_t hash;
};

enum functions_order { FUNCTIONS_BY_SELF, FUNCTIONS_BY_TOTAL, FUNCTIONS_BY_NAME };

struct functions {
	struct function_row *row;
	size_t n;
	uint64_t samples;  /* 100 % */
	uint64_t cpu_ns;   /* that they stand for */
	uint64_t complete; /* of samples: those whose stack is */
};

/* 0 or -ENOMEM. */
int functions_count(struct functions *functions, const struct slot *slot,
		    enum functions_order order);
void functions_fini(struct functions *functions);

#endif
