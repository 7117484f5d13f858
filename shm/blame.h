/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files end or hold up the processes that touch them. Part of the ledger: the owner writes
 * down what it is about to touch, and its next instance, which finds that note, knows what its
 * predecessor died of.
 *
 * Life of a note
 *   blame_begin() .. blame_end(): nothing happened.
 *   blame_begin() .. death: blame_resume() of the next instance counts it. That the process was
 * held up, or fell by its own fault, is certain (BLAME_CERTAIN points); a kill by somebody else is
 * one point, taken back when the file is done with after all. From BLAME_FILE points on the broker
 *   refuses the file, and the whole device once it held up somebody's reading BLAME_DEVICE times.
 *
 * Who believes it
 *   The broker: its own notes always, those of a worker for what that worker is to be handed. So a
 *   worker that lies harms itself.
 */
#ifndef SCONCE_SHM_BLAME_H
#define SCONCE_SHM_BLAME_H

#include <stdbool.h>
#include <stdint.h>

#define BLAME_FILES   48
#define BLAME_CERTAIN 3
#define BLAME_FILE    6 /* two certain ones */
#define BLAME_PROCESS 3 /* one: each time the broker is held up all the others wait */
#define BLAME_DEVICE  8

/*
 * device 0: a process, which goes by start time + pid. inode 0: a whole device. Both 0: nothing.
 * Numbers as stat has them.
 */
struct blame_file {
	uint64_t device, inode;
	uint32_t points;
	char name[44]; /* the end of its path, for show; whatever somebody called it */
};

struct blame {
	_Atomic uint32_t busy;	  /* `at` holds */
	_Atomic uint32_t reading; /* the filesystem's answer is waited for: the device's fault */
	_Atomic uint32_t crashed; /* by a signal of its own making */
	uint32_t unused;
	uint64_t since_ns; /* CLOCK_MONOTONIC */
	struct blame_file at, files[BLAME_FILES];
};

/* Judge the end of the instance before; stuck_ms: who stood still for so long was ended for that.
 */
void blame_resume(struct blame *blame, uint32_t stuck_ms);
void blame_begin(struct blame *blame, uint64_t device, uint64_t inode, const char *name);
void blame_end(struct blame *blame);
/* Was it, or its device, blamed often enough? blame may be anybody's, and NULL. */
bool blame_refuses(const struct blame *blame, uint64_t device, uint64_t inode);
bool blame_is_final(const struct blame_file *file);

#endif
