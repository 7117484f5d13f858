/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker is told of processes and files: records in its process queue, and questions to the
 * broker, who tells it the rest.
 */
#ifndef SCONCE_SAMPLER_INTRODUCE_H
#define SCONCE_SAMPLER_INTRODUCE_H

#include "sampler/files.h"
#include "sampler/processes.h"
#include "sampler/workers.h"
#include "shm/ledger.h"

struct introduce {
	struct ledger_writer *ledger;
	struct processes *processes;
	struct files *files;
	struct workers *workers;
	struct channel broker;
	uint32_t unanswered; /* questions to the broker to which an answer comes: ranges and files */
	uint64_t now_ns;     /* of this turn */
	uint64_t hurry_ns;   /* until then look often: a file came and went between two turns */
};

/* Before a sample of p goes to its worker: tell who it is, and ask for what is not known. */
void introduce_for_sample(struct introduce *in, struct process *p,
			  const struct record_sample *sample);
/* What p has mapped is not known, or not for sure: ask, if that was not done a moment ago. */
void introduce_ask_ranges(struct introduce *in, struct process *p);
/* p, which is introduced, has mapped one range more. */
void introduce_mapping(struct introduce *in, struct process *p, const struct record_range *range);
/* The broker answered: the ranges of p are known now, or error says why not. */
void introduce_answer(struct introduce *in, struct process *p, int error);
/* p is forgotten. Handler of the process table; arg is the struct introduce. */
void introduce_exit(void *arg, const struct process *p);
/* The worker asks for a file. It gets none but those of its processes, and those it compiles. */
void introduce_file_again(struct introduce *in, uint32_t worker, uint32_t file_id);
/* It asks for what lies beside such a file; or for perf map or memory of a process of its own. */
void introduce_other(struct introduce *in, uint32_t worker, const struct message_need_other *need);
/* Worker k begins with nothing: tell it again, process by process, as their samples come. */
void introduce_forgotten(struct introduce *in, uint32_t worker);

#endif
