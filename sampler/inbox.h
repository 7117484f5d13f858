/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker and the workers say to the sampler, and what follows from it.
 */
#ifndef SCONCE_SAMPLER_INBOX_H
#define SCONCE_SAMPLER_INBOX_H

#include "proto/channel.h"
#include "sampler/introduce.h"
#include "sampler/store.h"

struct inbox {
	struct introduce *introduce;
	struct store *store;
	/* The broker's answer under way: it comes in pieces, one process at a time. */
	struct record_range range[SLICES_MAX];
	uint32_t n, pid;
	uint64_t exec_id;
	bool whole; /* no piece was missed */
	/* Of the message at hand. */
	uint32_t worker;
	int fd;	     /* that came with it */
	bool broken; /* no worker that is sound sends it */
};

/*
 * Handle what is there, but not for ever. worker: who is at the other end; of the broker's no
 * handler asks. 0, or -EPROTO when it broke the rules, or -EPIPE.
 */
int inbox_read(struct inbox *inbox, struct channel *channel, uint32_t worker);

#endif
