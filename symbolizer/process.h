/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that samples come from: their executable ranges (from the process queue) and who
 * they are (from the broker). Kept until the last sample of a process that has ended is done, and
 * bounded: the one not used for longest goes first. Nothing here is kept over a restart: the sampler
 * introduces everything again when a worker asks for it.
 */
#ifndef SCONCE_SYMBOLIZER_PROCESS_H
#define SCONCE_SYMBOLIZER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/messages.h"
#include "shm/record.h"
#include "symbolizer/cgroup.h"
#include "symbolizer/lru.h"

#define PROCESS_RANGES_MAX 16384 /* of one process */
#define PROCESSES_ENDED	   8192	 /* more than that are forgotten too early */

struct process {
	struct lru_node node;			    /* key = pid; first */
	uint64_t start_lo_ns, start_hi_ns, exec_id; /* exec_id 0 = not known */
	uint64_t info_exec_id;			    /* of which the broker told last */
	uint32_t flags;				    /* enum process_flag */
	bool introduced;			    /* a RECORD_PROCESS came */
	bool exited;
	uint64_t exited_at; /* place in the sample queue: none behind it is of this process */
	bool info_known;
	bool waited; /* a sample has waited for it as long as it may */
	bool comm_of_leader;
	uint64_t wait_until_ns;	     /* 0 = no sample has waited yet */
	struct record_range *ranges; /* sorted, not overlapping */
	uint32_t ranges_n, ranges_room;
	char *executable;      /* NULL = not known */
	struct cgroup *cgroup; /* NULL = not known */
	char comm[RECORD_COMM_BYTES];
	uint32_t id, id_epoch; /* its present definition; id 0 = none */
};

struct processes_end {
	uint64_t exited_at;
	uint32_t pid;
};

struct processes {
	struct lru table;
	uint32_t max, ranges, ranges_max;
	uint64_t arrivals; /* grows with everything that gets known */
	uint64_t head;	   /* set before records are handed in: where the sample queue ends by now */
	struct processes_end ended[PROCESSES_ENDED]; /* a ring: who has ended and is not forgotten */
	uint32_t ended_first, ended_n;
};

int processes_open(struct processes *processes, uint32_t max, uint32_t ranges_max);
void processes_close(struct processes *processes);

/* A record of the process queue, other than RECORD_FILE. False when it is malformed. */
bool processes_record(struct processes *processes, const struct record_header *record);
void processes_info(struct processes *processes, const struct message_process_info *info);

/* Forget who has ended, when all samples before this place are done. */
void processes_sweep(struct processes *processes, uint64_t done);

/* The process of a sample; a blank one when nobody told of it. */
struct process *processes_get(struct processes *processes, uint32_t pid, uint64_t start_ns);

/* Are the ranges those of the program that ran when the sample was taken? */
bool process_ranges_hold(const struct process *process, uint64_t exec_id);
/* If they do not hold: is there still something to be told? */
bool process_ranges_may_come(const struct process *process, uint64_t exec_id);
/* The range that holds pc; NULL when none does. */
const struct record_range *process_find_range(const struct process *process, uint64_t pc);
/* Remember the name of its first thread, or of the leader once that was seen. */
void process_name(struct process *process, const char comm[RECORD_COMM_BYTES], bool leader);

#endif
