/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the broker, kept until its socket takes them.
 */
#ifndef SCONCE_SAMPLER_ASKS_H
#define SCONCE_SAMPLER_ASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/channel.h"
#include "sampler/files.h"
#include "sampler/processes.h"
#include "shm/ledger.h"

#define ASKS_MAX 1024u

struct asks {
	struct asks_entry {
		enum message_type type;
		union {
			struct message_ask_process process;
			struct message_ask_file file;
		};
	} entry[ASKS_MAX];
	uint32_t first, n;
	uint32_t unanswered; /* sent, and an answer comes to us: ranges and files */
};

/* False: no room now, ask again some other time. */
bool asks_process(struct asks *asks, const struct process *p, uint32_t worker, bool ranges);
bool asks_file(struct asks *asks, const struct process *p, uint32_t worker, const struct file *file,
	       const struct record_range *range);

/* Send what the socket takes. -EPIPE when the broker's end is gone, else 0. */
int asks_flush(struct asks *asks, struct channel *broker, struct ledger_writer *ledger);
void asks_answered(struct asks *asks);

#endif
