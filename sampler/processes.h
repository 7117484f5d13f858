/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of every process: who it is, what it has mapped, who was told.
 *
 *   not in the table --fork, exec or a sample--> in it, ranges not known
 *   ranges not known --exec, or parent known, or the broker's answer--> ranges known
 *   ranges known     --first sample--> introduced to a worker and published to BPF
 *   any              --exit and TABLES_GRACE_NS--> not in the table
 *
 * Calls come in the order of the kernel's time stamps. The table has a fixed size; when it is
 * nearly full, processes that nobody mentioned lately are forgotten, and learnt again by their next
 * sample.
 */
#ifndef SCONCE_SAMPLER_PROCESSES_H
#define SCONCE_SAMPLER_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/tables.h"
#include "sampler/slices.h"
#include "shm/record.h"

#define PROCESSES_MAX 65536u
/* copy_process() takes the start time; until the fork is reported it may be preempted so long. */
#define PROCESSES_FORK_NS 1000000000ull

struct process {
	uint32_t pid; /* 0 = free */
	uint32_t parent_pid;
	uint32_t next;	     /* slot + 1 in the hash chain or in the free list */
	uint32_t first, n;   /* ranges; first may be SLICES_NONE */
	uint32_t lost_epoch; /* side-band losses that the ranges have seen */
	uint32_t made_by;    /* as BPF knows it (struct bpf_process) */
	uint64_t start_lo_ns, start_hi_ns, exec_id;
	uint64_t born_ns;      /* the newest event that says who it is */
	uint64_t mapped_ns;    /* newest side-band mapping */
	uint64_t steady_ns;    /* until then BPF is not told: its code is being replaced */
	uint64_t exited_ns;    /* perhaps, because the leader has; 0 = it lives */
	uint64_t ask_after_ns; /* do not ask the broker for ranges before */
	bool exec_known, ranges_known, leader_gone;
	bool asked;	 /* the broker was asked for ranges and has not answered */
	bool introduced; /* its worker knows it as it is now */
	bool identified; /* the broker was asked to tell the worker who it is */
	bool published;	 /* BPF knows it */
	bool mentioned;	 /* since it was last swept over */
};

struct processes {
	struct process process[PROCESSES_MAX];
	uint32_t bucket[PROCESSES_MAX]; /* slot + 1; 0 = empty */
	uint32_t max, used, n, free_first, hand;
	uint32_t lost_epoch; /* side-band losses so far */
	uint64_t now_ns;     /* as of the last processes_sweep() */
	uint64_t refused, ranges_refused;
	struct slices slices;
	const struct bpf_file *files;
	struct record_range scratch[SLICES_MAX];
	/* Called before a process is forgotten. */
	void (*on_forget)(void *arg, const struct process *p);
	void *arg;
};

/* ranges: BPF's array, ranges_max long. files: BPF's too, of TABLES_FILES_MAX. */
void processes_init(struct processes *t, uint32_t max, struct record_range *ranges,
		    uint32_t ranges_max, const struct bpf_file *files);
/* Set the clock; forget who exited long enough ago. Once per turn. */
void processes_sweep(struct processes *t, uint64_t now_ns);
struct process *processes_find(struct processes *t, uint32_t pid);
/* The process that did something at time_ns, made if needed; NULL when there is no room. */
struct process *processes_meet(struct processes *t, uint32_t pid, uint64_t time_ns);

/* Side-band. processes_map() returns NULL when nothing has changed for anybody. */
void processes_fork(struct processes *t, uint32_t pid, uint32_t parent_pid, uint64_t time_ns);
void processes_exec(struct processes *t, uint32_t pid, uint64_t time_ns);
struct process *processes_map(struct processes *t, uint32_t pid, const struct record_range *range,
			      uint64_t time_ns);
void processes_exit(struct processes *t, uint32_t pid, uint32_t tid, uint64_t time_ns);

/*
 * The process that a sample belongs to, made if needed. NULL when it is of a process that is gone
 * (its pid has been reused, or it has exec'd since), or when there is no room.
 */
struct process *processes_sample(struct processes *t, const struct record_sample *sample);

/* The broker's answer: everything p had mapped at time_ns. False when newer events make it useless.
 */
bool processes_answer(struct processes *t, struct process *p, const struct record_range *ranges,
		      uint32_t n, uint64_t time_ns);
/* There will be no ranges for a while. */
void processes_refuse(struct processes *t, struct process *p);
/* Tell BPF about it, from now on. */
void processes_publish(struct processes *t, struct process *p);
/* This file has a table: if it tells of a runtime, BPF has to know which processes have it. */
void processes_tabled(struct processes *t, uint32_t file_id);

/* Ranges are not known, or side-band records were lost since. */
static inline bool processes_stale(const struct processes *t, const struct process *p)
{
	return !p->ranges_known || p->lost_epoch != t->lost_epoch;
}

/* n of them. */
static inline const struct record_range *processes_ranges(const struct processes *t,
							  const struct process *p)
{
	return t->slices.ranges + (p->n ? p->first : 0);
}

#endif
