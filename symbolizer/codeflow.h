/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows machine code from where functions begin, so that for each instruction that was reached it
 * is known where the caller's registers are.
 *
 * What is proof here. A function begins where a symbol of a function stands, where a call that is
 * reached goes to, and where the caller of this module says so: there sp is CFA - 8. From there
 * each jump is followed, a table of jumps only as far as a check of its index reaches, and a call
 * goes on only if the function that it calls was seen to return. What is less (enum
 * codegraph_level): that a table holds no more than code, that a call into another file returns.
 * What was reached by the stronger way is not given up for what was reached by the weaker one.
 *
 * Where two ways of the same strength disagree about sp, behind an indirect jump that is not
 * understood, behind bytes that are no instruction: no rule. A function with a return that does not
 * fit loses all rules of that strength.
 */
#ifndef SCONCE_SYMBOLIZER_CODEFLOW_H
#define SCONCE_SYMBOLIZER_CODEFLOW_H

#include "symbolizer/codegraph.h"

#define CODEFLOW_TABLE_MAX 4096 /* entries of a table of jumps */

/* A function begins here. An address outside of the areas is none of our business. */
void codeflow_prove(struct codegraph *graph, uint64_t vaddr);
/* Code is reached here, but with a stack of which nothing is known: the entry of a program. */
void codeflow_enter(struct codegraph *graph, uint64_t vaddr);
/* Follow all that is queued. */
void codeflow_run(struct codegraph *graph);

#endif
