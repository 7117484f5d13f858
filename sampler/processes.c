/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process table. Knows the kernel's rules of fork, exec, exit and pid reuse; does not know who
 * reads which ring, nor what a worker is. The surprise is the exec id: no event tells it, so it is
 * learnt from a sample, counted on at every exec, and inherited by children.
 */
#include "sampler/processes.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "sampler/ranges.h"
#include "sampler/tables.h"

#define REFUSED_AGAIN_NS 10000000000ull
#define STEADY_NS	 10000000000ull
#define SWEEP_PART	 16 /* of the table in one turn */

void processes_init(struct processes *t, uint32_t max, struct record_range *ranges,
		    uint32_t ranges_max, const struct bpf_file *files)
{
	t->files = files;
	t->max = max < PROCESSES_MAX ? max : PROCESSES_MAX;
	slices_init(&t->slices, ranges, ranges_max);
}

/* The link that leads to pid, or the end of its chain. */
static uint32_t *processes_link(struct processes *t, uint32_t pid)
{
	uint32_t *link = &t->bucket[(pid * 2654435761u) % PROCESSES_MAX];

	while (*link && t->process[*link - 1].pid != pid)
		link = &t->process[*link - 1].next;
	return link;
}

struct process *processes_find(struct processes *t, uint32_t pid)
{
	uint32_t *link = processes_link(t, pid);

	return *link ? &t->process[*link - 1] : NULL;
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
	p->first = SLICES_NONE;
	p->n = 0;
}

static void process_forget(struct processes *t, struct process *p)
{
	uint32_t *link = processes_link(t, p->pid);

	process_unpublish(p);
	t->on_forget(t->arg, p);
	process_clear_ranges(t, p);
	*link = p->next;
	p->pid = 0;
	p->next = t->free_first;
	t->free_first = (uint32_t)(p - t->process) + 1;
	t->n--;
}

void processes_sweep(struct processes *t, uint64_t now_ns)
{
	bool crowded = t->n >= t->max - t->max / 8;

	t->now_ns = now_ns;
	for (uint32_t i = 0; i < t->used / SWEEP_PART + 1 && t->used; i++) {
		struct process *p = &t->process[t->hand++ % t->used];
		bool gone = p->exited_ns && now_ns >= p->exited_ns + TABLES_GRACE_NS;

		if (p->pid && (gone || (crowded && !p->mentioned)))
			process_forget(t, p);
		if (crowded)
			p->mentioned = false;
	}
}

static struct process *processes_new(struct processes *t, uint32_t pid)
{
	uint32_t *link = processes_link(t, pid), slot = t->free_first;

	if (slot)
		t->free_first = t->process[slot - 1].next;
	else if (t->used < t->max)
		slot = ++t->used;
	else
		return NULL;
	*link = slot;
	t->process[slot - 1].next = 0;
	t->n++;
	return &t->process[slot - 1];
}

/* An entry for a process that begins now, in place of an older one with that pid. */
static struct process *processes_begin(struct processes *t, uint32_t pid, uint64_t time_ns)
{
	struct process *p = processes_find(t, pid);

	if (p) {
		process_unpublish(p);
		process_clear_ranges(t, p);
	} else if (!(p = processes_new(t, pid))) {
		t->refused++;
		return NULL;
	}
	*p = (struct process){.pid = pid,
			      .next = p->next,
			      .first = SLICES_NONE,
			      .born_ns = time_ns,
			      .lost_epoch = t->lost_epoch,
			      .mentioned = true};
	return p;
}

/* Give p these ranges, in a slice of its own. BPF is told by the caller. */
static int process_set_ranges(struct processes *t, struct process *p, uint32_t n)
{
	uint32_t first = n ? slices_take(&t->slices, n + 1, t->now_ns) : SLICES_NONE;

	if (n && first == SLICES_NONE)
		return -ENOSPC;
	if (n)
		memcpy(t->slices.ranges + first, t->scratch, n * sizeof(*t->scratch));
	process_clear_ranges(t, p);
	p->first = first;
	p->n = n;
	return 0;
}

static bool processes_runs(const struct processes *t, uint32_t file_id)
{
	const struct bpf_file *file = &t->files[file_id % TABLES_FILES_MAX];

	return file_id && file->file_id == file_id && (file->flags & BPF_FILE_RUNTIME);
}

static uint32_t process_made_by(const struct processes *t, const struct process *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (processes_runs(t, processes_ranges(t, p)[i].file_id))
			return i + 1;
	return 0;
}

void processes_tabled(struct processes *t, uint32_t file_id)
{
	for (uint32_t i = 0; processes_runs(t, file_id) && i < t->used; i++)
		if (t->process[i].published &&
		    process_made_by(t, &t->process[i]) != t->process[i].made_by)
			processes_publish(t, &t->process[i]);
}

void processes_publish(struct processes *t, struct process *p)
{
	struct bpf_process entry = {.start_lo_ns = p->start_lo_ns,
				    .start_hi_ns = p->start_hi_ns,
				    .exec_id = p->exec_id,
				    .first = p->n ? p->first : 0,
				    .count = p->n,
				    .flags = BPF_PROCESS_EXEC_KNOWN,
				    .made_by = p->made_by = process_made_by(t, p)};

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
}

void processes_refuse(struct processes *t, struct process *p)
{
	process_clear_ranges(t, p);
	p->ranges_known = false;
	p->asked = false;
	p->ask_after_ns = t->now_ns + REFUSED_AGAIN_NS;
	if (p->introduced)
		processes_publish(t, p);
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
	}
}

struct process *processes_meet(struct processes *t, uint32_t pid, uint64_t time_ns)
{
	struct process *p = processes_find(t, pid);

	if (p || !(p = processes_begin(t, pid, time_ns)))
		return p;
	p->start_hi_ns = time_ns; /* some time before */
	return p;
}

void processes_exec(struct processes *t, uint32_t pid, uint64_t time_ns)
{
	struct process *p = processes_meet(t, pid, time_ns);

	if (!p)
		return;
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

	if (!p->n || !slices_has_room(&t->slices, p->first, p->n) ||
	    set[p->n - 1].end >= range->start)
		return false;
	set[p->n++] = *range;
	return true;
}

struct process *processes_map(struct processes *t, uint32_t pid, const struct record_range *range,
			      uint64_t time_ns)
{
	struct process *p = processes_find(t, pid);
	uint32_t n;
	int put;

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
		put = ranges_insert(t->scratch, &n, SLICES_MAX, range);
		if (put == -ENOSPC || process_set_ranges(t, p, n)) {
			process_no_room(t, p, 1);
			return NULL;
		}
		/* Who loads and unloads does so again, faster than we hear of it. */
		if (put) {
			p->steady_ns = time_ns + STEADY_NS;
			process_unpublish(p);
		}
	}
	if (p->published)
		processes_publish(t, p);
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
}

/* Does the sample say that the entry is of another process, or of an image that we saw nothing of?
 */
static struct process *process_check(struct processes *t, struct process *p,
				     const struct record_sample *sample)
{
	bool same = p && sample->start_ns >= p->start_lo_ns && sample->start_ns <= p->start_hi_ns;

	if (p && (sample->time_ns < p->born_ns ||
		  (same && p->exec_known && sample->exec_id < p->exec_id)))
		return NULL;
	if (!same || (p->exec_known && sample->exec_id > p->exec_id))
		return processes_begin(t, sample->pid, sample->time_ns);
	return p;
}

struct process *processes_sample(struct processes *t, const struct record_sample *sample)
{
	struct process *p = process_check(t, processes_find(t, sample->pid), sample);

	if (!p)
		return NULL;
	p->start_lo_ns = p->start_hi_ns = sample->start_ns;
	p->exec_id = sample->exec_id;
	p->exec_known = true;
	p->mentioned = true;
	/* Was the leader there when it was met? If not, the end of any thread may be its own. */
	p->leader_gone |= p->born_ns == sample->time_ns && sample->tid != sample->pid;
	/* On its last way through the kernel a thread has no user stack: that is no life. */
	if (sample->tid != sample->pid && sample->stop != STOP_NO_USER &&
	    sample->time_ns > p->exited_ns)
		p->exited_ns = 0;
	return p;
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
		fits = ranges_insert(t->scratch, &set_n, SLICES_MAX, &processes_ranges(t, p)[i]) !=
		       -ENOSPC;
	if (!fits || process_set_ranges(t, p, set_n)) {
		process_no_room(t, p, n);
		return true;
	}
	p->ranges_known = true;
	p->lost_epoch = t->lost_epoch;
	return true;
}
