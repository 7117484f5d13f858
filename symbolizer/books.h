/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books of a worker (shm/ledger.h): positions, counters, and which sample is at work, so that
 * the next instance goes on where this one was ended, and gives up a sample that ends them all.
 */
#ifndef SCONCE_SYMBOLIZER_BOOKS_H
#define SCONCE_SYMBOLIZER_BOOKS_H

#include "symbolizer/worker.h"

/*
 * Repeat what may have been left undone between the last commit and the end of the instance before
 * us: the committed positions hold, if they can be.
 */
void books_resume(struct worker *w);
/* Everything up to here has happened. */
void books_commit(struct worker *w);
/*
 * The definition log is full: go on in the other one. False as long as the exporter is not done
 * with what that one held.
 */
bool books_next_epoch(struct worker *w);

/*
 * Write down that this sample is begun. One that was begun before in vain is counted further. False
 * when it was begun too often: something in it, or in the files that it points into, ends us.
 */
bool books_begin(struct worker *w);
/* The sample at work is done, whatever came of it. */
void books_done(struct worker *w);
/* Nothing is at work: a kill now is no sample's fault. */
void books_rest(struct worker *w);

void books_count(struct worker *w, enum counter counter);
/* A sample is symbolized; walked: by us. */
void books_count_sample(struct worker *w, enum record_stop stop, bool walked);

#endif
