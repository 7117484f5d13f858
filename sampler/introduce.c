/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Introductions. A process is told when it is sampled for the first time, not when it starts: most
 * never are. A snapshot goes into the queue whole or not at all; when there is no room, the process
 * counts as not introduced and its next sample tries again.
 */
#include "sampler/introduce.h"

#include <errno.h>
#include <string.h>

#define ASK_AGAIN_NS 1000000000ull

static uint32_t introduce_worker(const struct introduce *in, const struct process *p)
{
	return workers_of(in->workers, p->pid);
}

/* The worker has to know the file, and the broker has to hand it over. */
static int introduce_file(struct introduce *in, const struct process *p,
			  const struct record_range *range)
{
	uint32_t k = introduce_worker(in, p), bit = 1u << k;
	struct file *file = files_by_id(in->files, range->file_id);
	struct record_file record = {.header = {sizeof(record), RECORD_FILE, 0}};

	if (!file)
		return 0;
	if (!(file->told & bit)) {
		record.file_id = file->id;
		record.dev_major = file->dev_major;
		record.dev_minor = file->dev_minor;
		record.inode = file->inode;
		memcpy(record.path, file->path, sizeof(record.path));
		if (queue_push(&in->workers->worker[k].process, &record, sizeof(record)))
			return -ENOBUFS;
		file->told |= bit;
	}
	if (!(file->asked & bit) && asks_file(in->asks, p, k, file, range))
		file->asked |= bit;
	return 0;
}

static struct record_mapping introduce_record(const struct process *p,
					      const struct record_range *range)
{
	return (struct record_mapping){.header = {sizeof(struct record_mapping), RECORD_MAPPING, 0},
				       .pid = p->pid,
				       .range = *range};
}

static int introduce_snapshot(struct introduce *in, const struct process *p, uint32_t flags)
{
	struct queue *queue = &in->workers->worker[introduce_worker(in, p)].process;
	const struct record_range *ranges = processes_ranges(in->processes, p);
	uint32_t n = p->ranges_known ? p->n : 0;
	size_t bytes = sizeof(struct record_process) + n * sizeof(struct record_mapping);
	struct record_process head = {.header = {sizeof(head), RECORD_PROCESS, 0},
				      .pid = p->pid,
				      .parent_pid = p->parent_pid,
				      .start_lo_ns = p->start_lo_ns,
				      .start_hi_ns = p->start_hi_ns,
				      .exec_id = p->exec_id,
				      .flags = flags,
				      .mappings = n};
	char *room;

	for (uint32_t i = 0; i < n; i++)
		if (introduce_file(in, p, &ranges[i]))
			return -ENOBUFS;
	room = queue_reserve(queue, bytes);
	if (!room)
		return -ENOBUFS;
	memcpy(room, &head, sizeof(head));
	for (uint32_t i = 0; i < n; i++) {
		struct record_mapping record = introduce_record(p, &ranges[i]);

		memcpy(room + sizeof(head) + i * sizeof(record), &record, sizeof(record));
	}
	queue_commit(queue, bytes);
	return 0;
}

static void introduce_process(struct introduce *in, struct process *p, uint32_t flags)
{
	p->introduced = introduce_snapshot(in, p, flags) == 0;
	ledger_add(in->ledger, p->introduced ? C_introductions : C_introductions_failed, 1);
}

void introduce_for_sample(struct introduce *in, struct process *p,
			  const struct record_sample *sample)
{
	uint32_t worker = introduce_worker(in, p);
	bool walks = sample->stop != STOP_NO_USER && sample->stop != STOP_COMPAT32;

	/* Ranges are asked for only where there is a user stack: kernel threads have none. */
	if (walks && processes_stale(in->processes, p) && in->now_ns >= p->ask_after_ns &&
	    asks_process(in->asks, p, worker, true)) {
		p->asked = p->identified = true;
		p->ask_after_ns = in->now_ns + ASK_AGAIN_NS;
	}
	if (!p->introduced)
		introduce_process(in, p, !p->ranges_known && p->asked ? PROCESS_PENDING : 0);
	if (!p->identified)
		p->identified = asks_process(in->asks, p, worker, false);
	if (p->ranges_known && !p->published)
		processes_publish(p);
}

void introduce_mapping(struct introduce *in, struct process *p, const struct record_range *range)
{
	struct queue *queue = &in->workers->worker[introduce_worker(in, p)].process;
	struct record_mapping record = introduce_record(p, range);

	if (introduce_file(in, p, range) || queue_push(queue, &record, sizeof(record))) {
		p->introduced = false;
		ledger_add(in->ledger, C_introductions_failed, 1);
	}
}

void introduce_answer(struct introduce *in, struct process *p, int error)
{
	if (p->introduced)
		introduce_process(in, p, error ? PROCESS_GONE : 0);
	if (p->ranges_known)
		processes_publish(p);
}

void introduce_exit(struct introduce *in, const struct process *p)
{
	struct record_exit record = {
	    .header = {sizeof(record), RECORD_EXIT, 0}, .pid = p->pid, .time_ns = p->exited_ns};

	if (p->introduced)
		queue_push(&in->workers->worker[introduce_worker(in, p)].process, &record,
			   sizeof(record));
}

void introduce_forgotten(struct introduce *in, uint32_t worker)
{
	files_untell(in->files, worker);
	for (uint32_t i = 0; i < in->processes->max; i++) {
		struct process *p = &in->processes->process[i];

		if (p->pid && introduce_worker(in, p) == worker)
			p->introduced = p->identified = false;
	}
}
