/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Likely beginnings of functions that nothing proves: addresses that were seen in registers, and
 * code behind padding.
 *
 * One is believed when all that follows from it holds together: each return finds the return
 * address and the caller's frame pointer in place, each jump into what is known already agrees with
 * it. Otherwise nothing that followed from it stays.
 */
#ifndef SCONCE_SYMBOLIZER_CODETRY_H
#define SCONCE_SYMBOLIZER_CODETRY_H

#include "symbolizer/codegraph.h"

/* A function may begin here. needs_return: only one that returns is believed. */
void codetry_one(struct codegraph *graph, uint64_t vaddr, bool needs_return);
/* All there are, until nothing new comes of it. */
void codetry_all(struct codegraph *graph);

#endif
