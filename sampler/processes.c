/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process table. Knows the kernel's rules of fork, exec, exit and pid reuse; does not know who
 * reads which ring, nor what a worker is. The surprise is the exec id: no event tells it, so it is
 * learnt from a sample, counted on at every exec, and inherited by children.
 */
#include "sampler/processes.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/ranges.h"
#include "sampler/tables.h"

#define REFUSED_AGAIN_NS 10000000000ull

int processes_init(struct processes *t, uint32_t max, struct record_range *ranges,
		   uint32_t ranges_max)
{
	memset(t, 0, sizeof(*t));
	t->max = max;
	t->process = calloc(max, sizeof(*t->process));
	t->bucket = malloc(max * sizeof(*t->bucket));
	t->dying = calloc(max, sizeof(*t->dying));
	if (!t->process || !t->bucket || !t->dying || slices_init(&t->slices, ranges, ranges_max)) {
		processes_fini(t);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < max; i++) {
		t->bucket[i] = PROCESSES_NONE;
		t->process[i].next = i + 1 < max ? i + 1 : PROCESSES_NONE;
	}
	return 0;
}

void processes_fini(struct processes *t)
{
	slices_fini(&t->slices);
	free(t->process);
	free(t->bucket);
	free(t->dying);
	memset(t, 0, sizeof(*t));
}

static uint32_t *processes_bucket(struct processes *t, uint32_t pid)
{
	return &t->bucket[((uint64_t)(pid * 2654435761u) * t->max) >> 32];
}

struct process *processes_find(struct processes *t, uint32_t pid)
{
	for (uint32_t i = *processes_bucket(t, pid); i != PROCESSES_NONE; i = t->process[i].next)
		if (t->process[i].pid == pid)
			return &t->process[i];
	return NULL;
}

static void process_unpublish(struct process *p)
{
	if (p->published)
		tables_remove(p->pid);
	p->published = false;
}

static void process_clear_ranges(struct processes *t, struct process *p)
{
	if (p->first != SLICES_NONE)
		slices_drop(&t->slices, p->first, t->now_ns);
	t->ranges_n -= p->n;
	p->first = SLICES_NONE;
	p->n = 0;
}

/* The slot stays in its hash chain and, if it was dying, in that queue. */
static void process_begin(struct processes *t, struct process *p, uint32_t pid, uint64_t time_ns)
{
	*p = (struct process){.pid = pid,
			      .next = p->next,
			      .first = SLICES_NONE,
			      .born_ns = time_ns,
			      .lost_epoch = t->lost_epoch,
			      .mentioned = true,
			      .dying = p->dying};
}

static void process_forget(struct processes *t, struct process *p)
{
	uint32_t slot = (uint32_t)(p - t->process);
	uint32_t *link = processes_bucket(t, p->pid);

	process_unpublish(p);
	if (t->on_forget)
		t->on_forget(t->arg, p);
	process_clear_ranges(t, p);
	while (*link != slot)
		link = &t->process[*link].next;
	*link = p->next;
	p->pid = 0;
	p->next = t->free_first;
	t->free_first = slot;
	t->n--;
}

/* Make room by forgetting one that was not mentioned since the hand passed last; keep may be NULL.
 */
static void processes_evict(struct processes *t, const struct process *keep)
{
	for (uint32_t i = 0; i < 2 * t->max; i++) {
		struct process *p = &t->process[t->hand++ % t->max];

		if (!p->pid || p->dying || p == keep)
			continue;
		if (!p->mentioned) {
			process_forget(t, p);
			return;
		}
		p->mentioned = false;
	}
}

/* An entry for a process that begins now, in place of an older one with that pid. */
static struct process *processes_begin(struct processes *t, uint32_t pid, uint64_t time_ns)
{
	struct process *p = processes_find(t, pid);
	uint32_t *bucket;

	if (p) {
		process_unpublish(p);
		process_clear_ranges(t, p);
		process_begin(t, p, pid, time_ns);
		return p;
	}
	if (t->free_first == PROCESSES_NONE)
		processes_evict(t, NULL);
	if (t->free_first == PROCESSES_NONE) {
		t->refused++;
		return NULL;
	}
	p = &t->process[t->free_first];
	t->free_first = p->next;
	process_begin(t, p, pid, time_ns);
	bucket = processes_bucket(t, pid);
	p->next = *bucket;
	*bucket = (uint32_t)(p - t->process);
	t->n++;
	return p;
}

/* Give p these ranges, in a slice of its own. BPF is told by the caller. */
static int process_set_ranges(struct processes *t, struct process *p, uint32_t n)
{
	uint32_t first = SLICES_NONE;

	if (n) {
		first = slices_take(&t->slices, n + 1);
		if (first == SLICES_NONE)
			return -ENOSPC;
		memcpy(t->slices.ranges + first, t->scratch, n * sizeof(*t->scratch));
	}
	process_clear_ranges(t, p);
	p->first = first;
	p->n = n;
	t->ranges_n += n;
	return 0;
}

void processes_publish(struct process *p)
{
	struct bpf_process entry = {.start_lo_ns = p->start_lo_ns,
				    .start_hi_ns = p->start_hi_ns,
				    .exec_id = p->exec_id,
				    .first = p->n ? p->first : 0,
				    .count = p->n,
				    .flags = BPF_PROCESS_EXEC_KNOWN};

	if (!p->exec_known)
		return;
	if (!p->ranges_known) {
		entry.count = 0;
		entry.flags |= BPF_PROCESS_NO_STACK;
	}
	/* The ranges are written before BPF can be told of them. */
	atomic_thread_fence(memory_order_release);
	if (tables_publish(p->pid, &entry) == 0)
		p->published = true;
	else
		process_unpublish(p);
}

/* The array is full. What is there would be an incomplete set, so there will be none. */
static void process_no_room(struct processes *t, struct process *p, uint32_t n)
{
	t->ranges_refused += n;
	processes_refuse(t, p);
	processes_evict(t, p);
}

void processes_refuse(struct processes *t, struct process *p)
{
	process_clear_ranges(t, p);
	p->ranges_known = false;
	p->asked = false;
	p->ask_after_ns = t->now_ns + REFUSED_AGAIN_NS;
	if (p->introduced)
		processes_publish(p);
}

void processes_fork(struct processes *t, uint32_t pid, uint32_t parent_pid, uint64_t time_ns)
{
	struct process *p = processes_find(t, pid), *parent;
	uint64_t lo = time_ns > PROCESSES_FORK_NS ? time_ns - PROCESSES_FORK_NS : 0;

	if (pid == parent_pid) /* a thread */
		return;
	if (p && p->born_ns > time_ns && !p->exited_ns) {
		/* Later events of this very process came first, from the ring of another cpu. */
		p->parent_pid = parent_pid;
		return;
	}
	/* pids do not overlap in time: the child began after the old owner's end */
	if (p && p->exited_ns > lo && p->exited_ns < time_ns)
		lo = p->exited_ns;
	p = processes_begin(t, pid, time_ns);
	if (!p)
		return;
	p->parent_pid = parent_pid;
	p->start_lo_ns = lo;
	p->start_hi_ns = time_ns;
	parent = processes_find(t, parent_pid);
	if (!parent || parent == p)
		return;
	parent->mentioned = true;
	p->exec_known = parent->exec_known;
	p->exec_id = parent->exec_id;
	p->lost_epoch = parent->lost_epoch;
	p->ranges_known = parent->ranges_known;
	if (parent->ranges_known && parent->n) {
		slices_share(&t->slices, parent->first);
		p->first = parent->first;
		p->n = parent->n;
		t->ranges_n += p->n;
	}
}

void processes_exec(struct processes *t, uint32_t pid, uint64_t time_ns)
{
	struct process *p = processes_find(t, pid);

	if (!p) {
		p = processes_begin(t, pid, time_ns);
		if (!p)
			return;
		p->start_hi_ns = time_ns; /* some time before */
	}
	process_unpublish(p);
	process_clear_ranges(t, p);
	p->exec_id++;
	/* From here on the side-band tells every mapping, the first one included. */
	p->ranges_known = true;
	p->lost_epoch = t->lost_epoch;
	p->born_ns = time_ns;
	p->exited_ns = 0;
	p->leader_gone = false;
	p->ask_after_ns = 0;
	p->asked = p->introduced = p->identified = false;
	p->mentioned = true;
}

/* Behind all others, in a slice of its own with room: BPF may look on while it is written. */
static bool process_append(struct processes *t, struct process *p, const struct record_range *range)
{
	struct record_range *set = t->slices.ranges + p->first;

	if (!p->n || slices_shared(&t->slices, p->first) ||
	    p->n == slices_room(&t->slices, p->first) || set[p->n - 1].end >= range->start)
		return false;
	set[p->n++] = *range;
	t->ranges_n++;
	return true;
}

struct process *processes_map(struct processes *t, uint32_t pid, const struct record_range *range,
			      uint64_t time_ns)
{
	struct process *p = processes_find(t, pid);
	uint32_t n;

	/* While the broker reads, collect what it may have missed. */
	if (!p || !(p->ranges_known || p->asked) || time_ns < p->born_ns)
		return NULL;
	p->mapped_ns = time_ns;
	p->exited_ns = 0;
	p->mentioned = true;
	if (ranges_has(processes_ranges(t, p), p->n, range))
		return NULL;
	if (!process_append(t, p, range)) {
		n = p->n;
		memcpy(t->scratch, processes_ranges(t, p), n * sizeof(*t->scratch));
		if (ranges_insert(t->scratch, &n, SLICES_MAX, range) == -ENOSPC ||
		    process_set_ranges(t, p, n)) {
			process_no_room(t, p, 1);
			return NULL;
		}
	}
	if (p->published)
		processes_publish(p);
	return p->ranges_known ? p : NULL;
}

void processes_exit(struct processes *t, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	struct process *p = processes_find(t, pid);

	if (!p || time_ns < p->born_ns)
		return;
	p->leader_gone |= tid == pid;
	if (!p->leader_gone)
		return;
	/* Other threads may live on; then their next event takes this back. */
	p->exited_ns = time_ns;
	if (p->dying)
		return;
	p->dying = true;
	t->dying[(t->dying_first + t->dying_n++) % t->max] = (uint32_t)(p - t->process);
}

void processes_lost(struct processes *t)
{
	t->lost_epoch++;
}

/* Does the sample say that the entry is of another process, or of an image that we saw nothing of?
 */
static struct process *process_check(struct processes *t, struct process *p,
				     const struct record_sample *sample)
{
	bool same = sample->start_ns >= p->start_lo_ns && sample->start_ns <= p->start_hi_ns;

	if (sample->time_ns < p->born_ns || (same && p->exec_known && sample->exec_id < p->exec_id))
		return NULL;
	if (!same || (p->exec_known && sample->exec_id > p->exec_id))
		return processes_begin(t, sample->pid, sample->time_ns);
	return p;
}

struct process *processes_sample(struct processes *t, const struct record_sample *sample)
{
	struct process *p = processes_find(t, sample->pid);

	p = p ? process_check(t, p, sample) : processes_begin(t, sample->pid, sample->time_ns);
	if (!p)
		return NULL;
	p->start_lo_ns = p->start_hi_ns = sample->start_ns;
	p->exec_id = sample->exec_id;
	p->exec_known = true;
	p->mentioned = true;
	/* A leader may still be sampled on its last way through the kernel: that is no life. */
	if (sample->tid != sample->pid && sample->time_ns > p->exited_ns)
		p->exited_ns = 0;
	return p;
}

bool processes_stale(const struct processes *t, const struct process *p)
{
	return !p->ranges_known || p->lost_epoch != t->lost_epoch;
}

bool processes_answer(struct processes *t, struct process *p, const struct record_range *ranges,
		      uint32_t n, uint64_t time_ns)
{
	uint32_t set_n = 0;
	bool fits = true;

	if (!p->asked)
		return false;
	p->asked = false;
	if (p->ranges_known && p->mapped_ns >= time_ns)
		return false; /* a repair that is older than what we have: ask again */
	for (uint32_t i = 0; i < n && fits; i++)
		fits = ranges_insert(t->scratch, &set_n, SLICES_MAX, &ranges[i]) != -ENOSPC;
	/* What the side-band told meanwhile is newer; if the broker saw it too, nothing changes. */
	for (uint32_t i = 0; i < p->n && !p->ranges_known && fits; i++)
		if (!ranges_has(t->scratch, set_n, &processes_ranges(t, p)[i]))
			fits = ranges_insert(t->scratch, &set_n, SLICES_MAX,
					     &processes_ranges(t, p)[i]) != -ENOSPC;
	if (!fits || process_set_ranges(t, p, set_n)) {
		process_no_room(t, p, n);
		return true;
	}
	p->ranges_known = true;
	p->lost_epoch = t->lost_epoch;
	return true;
}

struct process *processes_mapping(struct processes *t, uint32_t file_id, struct record_range *range)
{
	for (uint32_t slot = 0; slot < t->max; slot++) {
		struct process *p = &t->process[slot];

		if (!p->pid || p->exited_ns)
			continue;
		for (uint32_t i = 0; i < p->n; i++)
			if (processes_ranges(t, p)[i].file_id == file_id) {
				*range = processes_ranges(t, p)[i];
				return p;
			}
	}
	return NULL;
}

void processes_expire(struct processes *t, uint64_t now_ns)
{
	t->now_ns = now_ns;
	for (uint32_t todo = t->dying_n; todo > 0; todo--) {
		uint32_t slot = t->dying[t->dying_first];
		struct process *p = &t->process[slot];

		if (p->exited_ns && now_ns < p->exited_ns + TABLES_GRACE_NS)
			break;
		t->dying_first = (t->dying_first + 1) % t->max;
		t->dying_n--;
		p->dying = false;
		if (p->exited_ns)
			process_forget(t, p);
	}
	slices_expire(&t->slices, now_ns);
}
