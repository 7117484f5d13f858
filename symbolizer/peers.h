/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other workers. A file's unwind table is compiled by one of them, its owner, which is a hash
 * of the file's key; whoever else walks out of that file borrows the owner's.
 *
 *   WANT_TABLE -> the owner asks for the file, if it has not got it, and compiles it
 *              -> LEND_TABLE with the table, or LEND_NONE: there is none, or make it yourself
 *
 * Nobody depends on anybody: who is not answered in time makes the table itself, and asks that peer
 * for nothing for a while. A peer that breaks the protocol is not listened to again; it is not
 * accused, because a worker's word is not taken against another's. What a peer lent is forgotten
 * when that peer begins anew, since it may have been ended for what it lent.
 */
#ifndef SCONCE_SYMBOLIZER_PEERS_H
#define SCONCE_SYMBOLIZER_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/channel.h"
#include "symbolizer/files.h"

/* The slowest table that was seen takes 0.4 s (node); its owner may have others to make first. */
#define PEERS_WAIT_NS 3000000000ull
#define PEERS_ASKED_MAX 64

struct peer {
	struct channel channel;
	bool introduced;	  /* it was told that this worker is a new one */
	bool deaf;		  /* it lied: not listened to any more */
	uint64_t silent_until_ns; /* it did not answer: not asked before then */
};

struct peers {
	struct filetables *tables;
	struct peer peer[WORKERS_MAX];
	uint32_t n, self;
	/* What others wait for, and this worker cannot give yet. */
	struct {
		uint32_t file_id, borrowers; /* bit k: worker k */
		uint64_t until_ns;
	} asked[PEERS_ASKED_MAX];
	uint32_t asked_n;
	uint64_t borrowed, refused; /* counters, added up by the worker */
};

/* n workers, of which this is number self. Borrows tables. */
void peers_open(struct peers *peers, struct filetables *tables, uint32_t n, uint32_t self);
/*
 * Read what the others say and answer what can be answered. Once per turn; in the first they are told
 * that this worker knows nothing, and that what it lent does not hold.
 */
void peers_turn(struct peers *peers, uint64_t now_ns);
/* The table of this file, which is open here, is another's to make, and worth waiting for. */
bool peers_borrow(struct peers *peers, struct file *file, uint64_t now_ns);
/* It is waited for no longer: this worker makes it. */
void peers_give_up(struct file *file);
/* The sampler still has not got the table that was borrowed: the lender sends it. */
void peers_remind(struct peers *peers, const struct file *file);

#endif
