/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of every process: who it is, what it has mapped, who was told.
 *
 *   not in the table --fork, exec or a sample--> in it, ranges not known
 *   ranges not known --exec, or parent known, or the broker's answer--> ranges known
 *   ranges known     --first sample--> introduced to a worker and published to BPF
 *   any              --exit and TABLES_GRACE_NS--> not in the table
 *
 * Calls come in the order of the kernel's time stamps. The table has a fixed size; when it is full,
 * the process that nobody mentioned for longest is forgotten and learnt again by its next sample.
 */
#ifndef SCONCE_SAMPLER_PROCESSES_H
#define SCONCE_SAMPLER_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/slices.h"
#include "shm/record.h"

#define PROCESSES_NONE UINT32_MAX
/* copy_process() takes the start time; until the fork is reported it may be preempted so long. */
#define PROCESSES_FORK_NS 1000000000ull

struct process {
	uint32_t pid; /* 0 = free */
	uint32_t parent_pid;
	uint32_t next;	     /* in the hash chain, or in the free list */
	uint32_t first, n;   /* ranges; first may be SLICES_NONE */
	uint32_t lost_epoch; /* side-band losses that the ranges have seen */
	uint64_t start_lo_ns, start_hi_ns;
	uint64_t exec_id;
	uint64_t born_ns;      /* the newest event that says who it is */
	uint64_t mapped_ns;    /* newest side-band mapping */
	uint64_t exited_ns;    /* perhaps, because the leader has; 0 = it lives */
	uint64_t ask_after_ns; /* do not ask the broker for ranges before */
	bool exec_known, ranges_known, leader_gone;
	bool asked;	 /* the broker was asked for ranges and has not answered */
	bool introduced; /* its worker knows it as it is now */
	bool identified; /* the broker was asked to tell the worker who it is */
	bool published;	 /* BPF knows it */
	bool mentioned;	 /* since the table was last swept */
	bool dying;	 /* in the queue of the dying */
};

struct processes {
	struct process *process;
	uint32_t *bucket;
	uint32_t *dying; /* ring of slots, oldest exit first; a slot is in it once at most */
	uint32_t max, n, free_first, hand, dying_first, dying_n;
	uint32_t ranges_n;		  /* of all processes */
	uint32_t lost_epoch;		  /* side-band losses so far */
	uint64_t now_ns;		  /* as of the last processes_expire() */
	uint64_t refused, ranges_refused; /* counters */
	struct slices slices;
	struct record_range scratch[SLICES_MAX];
	/* Called before a process is forgotten. */
	void (*on_forget)(void *arg, const struct process *p);
	void *arg;
};

/* ranges: BPF's array, ranges_max long. 0 or -ENOMEM. */
int processes_init(struct processes *t, uint32_t max, struct record_range *ranges,
		   uint32_t ranges_max);
void processes_fini(struct processes *t);

struct process *processes_find(struct processes *t, uint32_t pid);

/* Side-band. processes_map() returns NULL when nothing has changed for anybody. */
void processes_fork(struct processes *t, uint32_t pid, uint32_t parent_pid, uint64_t time_ns);
void processes_exec(struct processes *t, uint32_t pid, uint64_t time_ns);
struct process *processes_map(struct processes *t, uint32_t pid, const struct record_range *range,
			      uint64_t time_ns);
void processes_exit(struct processes *t, uint32_t pid, uint32_t tid, uint64_t time_ns);
/* The kernel dropped records: ranges may be incomplete from now on. */
void processes_lost(struct processes *t);

/*
 * The process that a sample belongs to, made if needed. NULL when it is of a process that is gone
 * (its pid has been reused, or it has exec'd since), or when there is no room.
 */
struct process *processes_sample(struct processes *t, const struct record_sample *sample);

/* The broker's answer: everything p had mapped at time_ns. False when newer events make it useless.
 */
bool processes_answer(struct processes *t, struct process *p, const struct record_range *ranges,
		      uint32_t n, uint64_t time_ns);
/* The broker could not answer; BPF need not copy stacks. */
void processes_refuse(struct processes *t, struct process *p);

/* Tell BPF about it, from now on. */
void processes_publish(struct process *p);
/* Ranges are not known, or side-band records were lost since. */
bool processes_stale(const struct processes *t, const struct process *p);
static inline const struct record_range *processes_ranges(const struct processes *t,
							  const struct process *p)
{
	return p->n ? t->slices.ranges + p->first : t->scratch;
}
/* Some process that lives and maps the file; NULL = none. *range is set. */
struct process *processes_mapping(struct processes *t, uint32_t file_id,
				  struct record_range *range);
/* Forget who exited long enough ago. Once per turn, before anything else: it sets the clock. */
void processes_expire(struct processes *t, uint64_t now_ns);

#endif
