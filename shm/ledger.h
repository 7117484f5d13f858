/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: what a process has done so far, written down so that a kill between any two
 * instructions leaves either all of a batch or nothing of it.
 *
 * Who writes, who reads
 *   Every process owns one ledger segment; everyone may read it. The supervisor keeps it over
 *   restarts of the owner.
 *
 * Layout
 *   struct ledger: a header page, then two entries. `current` says which one holds. The owner edits
 *   a private copy; ledger_commit() writes the copy into the other entry and flips `current` with
 *   one store. That store is the moment at which a batch has happened.
 *
 * Life of a batch
 *   1. read input records behind the cursor, write output records behind the cursor of the output
 *      queue (nobody sees them), count in the private copy;
 *   2. store the new positions (input tails, output heads) in the private copy;
 *   3. ledger_commit();
 *   4. publish the heads, release the tails.
 *   Killed before 3: nothing happened, the input is read again. Killed behind 3: the next instance
 *   does step 4 again from the committed positions, which is harmless when it was done already.
 *   So no sample is counted twice and none is forgotten.
 *
 * What a reader may assume
 *   Nothing but the size. ledger_read() gives a consistent entry of an honest owner.
 */
#ifndef SCONCE_SHM_LEDGER_H
#define SCONCE_SHM_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "shm/blame.h"
#include "shm/counters.h"
#include "shm/segment.h"

#define LEDGER_CPUS 1024
#define LEDGER_COUNTERS 160 /* room to append */
#define LEDGER_POSITIONS 64

_Static_assert(COUNTER_COUNT <= LEDGER_COUNTERS, "raise LEDGER_COUNTERS");

struct ledger_entry {
	uint64_t counter[LEDGER_COUNTERS];   /* by enum counter */
	uint64_t position[LEDGER_POSITIONS]; /* heads and tails; each program has its own enum */
	uint64_t last_seq[LEDGER_CPUS];	     /* last sample seen, by cpu */
};

/* A runtime that a worker does not understand (shm/unread.h); language "" = none. */
#define LEDGER_UNREAD 8
struct ledger_unread {
	char language[12], version[24], path[60];
};

struct ledger {
	_Atomic uint64_t commits; /* commits & 1 = the entry that holds */
	_Atomic uint64_t turns;	  /* rounds of the main loop; the supervisor's sign of life */
	/*
	 * The record at work and how often it was begun, written before it is looked at. A record
	 * that ends its worker again and again is given up (lost_symbolizer_poison).
	 */
	_Atomic uint64_t attempt_position, attempts;
	_Atomic uint64_t layers; /* of confinement, as bits (supervisor/sandbox.h) */
	struct blame blame;
	struct ledger_unread unread[LEDGER_UNREAD];
	char pad[SEGMENT_PAGE - 40 - sizeof(struct blame) - sizeof(struct ledger_unread[LEDGER_UNREAD])];
	struct ledger_entry entry[2];
};

_Static_assert(offsetof(struct ledger, entry) == SEGMENT_PAGE, "the entries begin a page");

#define LEDGER_BYTES sizeof(struct ledger)

/* A process's own ledger. */
struct ledger_writer {
	struct ledger *shared;
	struct ledger_entry now; /* private; becomes public with the next commit */
};

int ledger_create(struct segment *segment, const char *name);

/* Map it and take up what was committed last. 0 or -errno. */
int ledger_open(struct ledger_writer *ledger, int fd);
void ledger_commit(struct ledger_writer *ledger);
void ledger_turn(struct ledger_writer *ledger);

static inline void ledger_add(struct ledger_writer *ledger, enum counter counter, uint64_t n)
{
	ledger->now.counter[counter] += n;
}

static inline void ledger_set(struct ledger_writer *ledger, enum counter counter, uint64_t value)
{
	ledger->now.counter[counter] = value;
}

/* A reader's mapping of somebody's ledger; NULL with errno. Unmap with munmap(p, LEDGER_BYTES). */
const struct ledger *ledger_map(int fd);
/* Copy out a consistent entry. 0, or -EAGAIN when the owner commits faster than we copy. */
int ledger_read(const struct ledger *ledger, struct ledger_entry *entry);

/* Name, help, role name ("sampler") and kind of a counter. */
const char *counter_name(enum counter counter);
const char *counter_help(enum counter counter);
const char *counter_role(enum counter counter);
enum counter_kind counter_kind(enum counter counter);

#endif
