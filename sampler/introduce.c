/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Introductions. A process is told when it is sampled for the first time, not when it starts: most
 * never are. A snapshot goes into the queue whole or not at all; when there is no room, the process
 * counts as not introduced and its next sample tries again.
 */
#include "sampler/introduce.h"

#include <string.h>

#define ASK_AGAIN_NS 1000000000ull

static uint32_t introduce_worker(const struct introduce *in, const struct process *p)
{
	return worker_of(p->pid, in->workers->n);
}

/*
 * The question may leave before the batch is committed: if we are killed in between, a worker gets
 * a file under an id that is never given again. False: the broker does not read.
 */
static bool introduce_ask(struct introduce *in, enum message_type type, const void *question,
			  bool answered)
{
	if (channel_send(&in->broker, type, question, NULL, 0)) {
		ledger_add(in->ledger, C_broker_busy, 1);
		return false;
	}
	ledger_add(in->ledger, C_broker_asked, 1);
	in->unanswered += answered;
	return true;
}

static bool introduce_ask_process(struct introduce *in, const struct process *p, bool ranges)
{
	struct message_ask_process ask = {.pid = p->pid,
					  .worker = introduce_worker(in, p),
					  .start_lo_ns = p->start_lo_ns,
					  .start_hi_ns = p->start_hi_ns,
					  .exec_id = p->exec_id,
					  .ranges = ranges};

	return introduce_ask(in, MESSAGE_ASK_PROCESS, &ask, ranges);
}

static struct message_ask_file introduce_question(const struct process *p, uint32_t worker,
						  const struct file *file,
						  const struct record_range *range)
{
	return (struct message_ask_file){.pid = p->pid,
					 .worker = worker,
					 .start_lo_ns = p->start_lo_ns,
					 .start_hi_ns = p->start_hi_ns,
					 .start = range->start,
					 .end = range->end,
					 .inode = file->inode,
					 .dev_major = file->dev_major,
					 .dev_minor = file->dev_minor,
					 .file_id = file->id};
}

static bool introduce_ask_file(struct introduce *in, const struct process *p, uint32_t worker,
			       const struct file *file, const struct record_range *range)
{
	struct message_ask_file ask = introduce_question(p, worker, file, range);

	return introduce_ask(in, MESSAGE_ASK_FILE, &ask, true);
}

/* The worker has to know the file, and the broker has to hand it over. False: try again later. */
static bool introduce_file(struct introduce *in, const struct process *p,
			   const struct record_range *range)
{
	uint32_t k = introduce_worker(in, p), bit = 1u << k;
	struct file *file = files_by_id(in->files, range->file_id);
	struct record_file record = {.header = {sizeof(record), RECORD_FILE, 0}};

	if (!file)
		return true;
	if (!(file->told & bit)) {
		record.file_id = file->id;
		record.dev_major = file->dev_major;
		record.dev_minor = file->dev_minor;
		record.inode = file->inode;
		memcpy(record.path, file->path, sizeof(record.path));
		if (queue_push(&in->workers->worker[k].process, &record, sizeof(record)))
			return false;
		file->told |= bit;
		file->theirs |= bit;
	}
	if (!(file->asked & bit) && introduce_ask_file(in, p, k, file, range))
		file->asked |= bit;
	return file->asked & bit;
}

static struct record_mapping introduce_record(const struct introduce *in, const struct process *p,
					      const struct record_range *range)
{
	return (struct record_mapping){
	    .header = {sizeof(struct record_mapping), RECORD_MAPPING, 0},
	    .pid = p->pid,
	    .after = in->workers->worker[introduce_worker(in, p)].samples.cursor,
	    .range = *range};
}

static bool introduce_snapshot(struct introduce *in, const struct process *p, uint32_t flags)
{
	struct worker *worker = &in->workers->worker[introduce_worker(in, p)];
	struct queue *queue = &worker->process;
	const struct record_range *ranges = processes_ranges(in->processes, p);
	uint32_t n = p->ranges_known ? p->n : 0;
	size_t bytes = sizeof(struct record_process) + n * sizeof(struct record_mapping);
	struct record_process *head = queue_reserve(queue, bytes);
	struct record_mapping *mapping = (struct record_mapping *)(head + 1);

	if (!head)
		return false;
	*head = (struct record_process){.header = {sizeof(*head), RECORD_PROCESS, 0},
					.pid = p->pid,
					.parent_pid = p->parent_pid,
					.start_lo_ns = p->start_lo_ns,
					.start_hi_ns = p->start_hi_ns,
					.exec_id = p->exec_id,
					.flags = flags,
					.mappings = n,
					.after = worker->samples.cursor};
	for (uint32_t i = 0; i < n; i++)
		mapping[i] = introduce_record(in, p, &ranges[i]);
	queue_commit(queue, bytes);
	return true;
}

static void introduce_process(struct introduce *in, struct process *p, uint32_t flags)
{
	bool files = true;

	for (uint32_t i = 0; i < p->n && p->ranges_known; i++)
		files &= introduce_file(in, p, &processes_ranges(in->processes, p)[i]);
	p->introduced = introduce_snapshot(in, p, flags) && files;
	ledger_add(in->ledger, p->introduced ? C_introductions : C_introductions_failed, 1);
}

void introduce_ask_ranges(struct introduce *in, struct process *p)
{
	if (processes_stale(in->processes, p) && in->now_ns >= p->ask_after_ns &&
	    introduce_ask_process(in, p, true)) {
		p->asked = p->identified = true;
		p->ask_after_ns = in->now_ns + ASK_AGAIN_NS;
	}
}

void introduce_for_sample(struct introduce *in, struct process *p,
			  const struct record_sample *sample)
{
	/* Ranges are asked for only where there is a user stack: kernel threads have none. */
	if (sample->stop != STOP_NO_USER && sample->stop != STOP_COMPAT32)
		introduce_ask_ranges(in, p);
	if (!p->introduced)
		introduce_process(in, p, !p->ranges_known && p->asked ? PROCESS_PENDING : 0);
	if (!p->identified)
		p->identified = introduce_ask_process(in, p, false);
	if (p->ranges_known && !p->published && sample->time_ns >= p->steady_ns)
		processes_publish(in->processes, p);
}

void introduce_mapping(struct introduce *in, struct process *p, const struct record_range *range)
{
	struct queue *queue = &in->workers->worker[introduce_worker(in, p)].process;
	struct record_mapping record = introduce_record(in, p, range);

	p->introduced = introduce_file(in, p, range) && !queue_push(queue, &record, sizeof(record));
	ledger_add(in->ledger, C_introductions_failed, !p->introduced);
}

void introduce_answer(struct introduce *in, struct process *p, int error)
{
	if (p->introduced)
		introduce_process(in, p, error ? PROCESS_GONE : 0);
	if (p->ranges_known)
		processes_publish(in->processes, p);
}

void introduce_exit(void *arg, const struct process *p)
{
	struct introduce *in = arg;
	struct record_exit record = {
	    .header = {sizeof(record), RECORD_EXIT, 0}, .pid = p->pid, .time_ns = p->exited_ns};

	/* Also of one that is not introduced as it is now: the program before it may have been. */
	queue_push(&in->workers->worker[introduce_worker(in, p)].process, &record, sizeof(record));
}

/* Was this worker told of it, or is it to compile it? */
static bool introduce_may_have(const struct introduce *in, uint32_t worker, const struct file *file)
{
	return (file->theirs & 1u << worker) ||
	       (file->key.inode && file_key_owner(&file->key, in->workers->n) == worker);
}

/* Where p has it mapped; NULL when it has not, or lives no more. */
static const struct record_range *introduce_mapped_by(const struct introduce *in, uint32_t file_id,
						      const struct process *p)
{
	const struct record_range *ranges = processes_ranges(in->processes, p);

	for (uint32_t i = 0; p->pid && !p->exited_ns && i < p->n; i++)
		if (ranges[i].file_id == file_id)
			return &ranges[i];
	return NULL;
}

/* Some process that has it mapped, and where; NULL when none that lives has. */
static const struct record_range *introduce_mapped(const struct introduce *in, uint32_t file_id,
						   struct process **who)
{
	const struct record_range *range = NULL;

	for (uint32_t slot = 0; slot < in->processes->used && !range; slot++) {
		*who = &in->processes->process[slot];
		range = introduce_mapped_by(in, file_id, *who);
	}
	return range;
}

void introduce_file_again(struct introduce *in, uint32_t worker, uint32_t file_id)
{
	struct file *file = files_by_id(in->files, file_id);
	const struct record_range *range;
	struct process *p;

	if (file && !introduce_may_have(in, worker, file))
		return;
	range = introduce_mapped(in, file_id, &p);
	if (range && file && introduce_ask_file(in, p, worker, file, range))
		file->asked |= 1u << worker;
	else if (range && !file) /* the id is forgotten: learn the ranges again, with new ids */
		p->lost_epoch = in->processes->lost_epoch - 1;
}

void introduce_other(struct introduce *in, uint32_t worker, const struct message_need_other *need)
{
	static const struct file no_file;
	static const struct record_range no_range;
	const struct file *file = &no_file;
	const struct record_range *range = &no_range;
	struct message_ask_other ask = {.need = *need};
	bool of_process = need->kind == OTHER_PERF_MAP || need->kind == OTHER_MEM;
	struct process *p = of_process ? processes_find(in->processes, need->pid) : NULL;

	if (of_process && (!p || p->exited_ns || introduce_worker(in, p) != worker))
		return;
	if (need->kind != OTHER_PERF_MAP) {
		file = files_by_id(in->files, need->file_id);
		if (!file || !introduce_may_have(in, worker, file))
			return;
		range = of_process ? introduce_mapped_by(in, need->file_id, p)
				   : introduce_mapped(in, need->file_id, &p);
		if (!range)
			return;
	}
	ask.file = introduce_question(p, worker, file, range);
	introduce_ask(in, MESSAGE_ASK_OTHER, &ask, false);
}

void introduce_forgotten(struct introduce *in, uint32_t worker)
{
	for (uint32_t i = 0; i < FILES_MAX; i++) {
		struct file *file = &in->files->file[i];

		if (!file->id) /* and do not touch its page */
			continue;
		file->told &= ~(1u << worker);
		file->asked &= ~(1u << worker);
	}
	for (uint32_t i = 0; i < in->processes->used; i++) {
		struct process *p = &in->processes->process[i];

		if (introduce_worker(in, p) == worker)
			p->introduced = p->identified = false;
	}
}
