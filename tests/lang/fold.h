/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks as text, one line each, root first, and how often there was which. */
#ifndef SCONCE_TESTS_LANG_FOLD_H
#define SCONCE_TESTS_LANG_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/lang/live.h"

struct fold_options {
	bool scripts_only, names_only;
};

struct folds {
	struct {
		char *text;
		uint32_t count;
	} * lines;
	uint32_t n;
};

/* malloc'ed: "main (app.py:3);inner (lib.py:7)", and why it ended there if it is not whole. */
char *fold_text(const struct live_stack *stack, const struct fold_options *options);
void fold_add(struct folds *folds, const struct live_stack *stack,
	      const struct fold_options *options);
/* The most frequent first. */
void fold_print(struct folds *folds);
void fold_free(struct folds *folds);

#endif
