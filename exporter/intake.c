/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/intake.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "exporter/translate.h"

#define INTAKE_RECORDS_PER_PASS 4096
#define INTAKE_RECORD_BYTES_MAX 256 /* a sample, with room for fields that may be appended */
#define INTAKE_REPORT_NS	1000000000ull

static int intake_open_worker(struct intake *intake, uint32_t k)
{
	struct intake_worker *worker = &intake->workers[k];
	int base = FD_EXPORTER_WORKERS + (int)k * FD_EXPORTER_PER_WORKER;
	uint64_t committed = intake->child->ledger.now.position[POSITION_TAIL + k];
	int err;

	err = queue_open_consumer(&worker->queue, base + FD_EXPORTER_OUTPUT_OWN,
				  base + FD_EXPORTER_OUTPUT_OTHER);
	if (!err)
		err = definitions_open(&worker->definitions[0], base + FD_EXPORTER_LOG_A);
	if (!err)
		err = definitions_open(&worker->definitions[1], base + FD_EXPORTER_LOG_B);
	if (err)
		return err;
	/*
	 * Killed between commit and release, the tail is behind: release again. A position beyond
	 * the head is not of this queue: the supervisor has made the worker a new one.
	 */
	if (committed > worker->queue.cursor &&
	    committed <= atomic_load_explicit(&worker->queue.head->head, memory_order_acquire)) {
		worker->queue.cursor = committed;
		queue_release(&worker->queue, committed);
	}
	return 0;
}

int intake_open(struct intake *intake, struct child *child)
{
	int err = 0;

	memset(intake, 0, sizeof(*intake));
	intake->child = child;
	if (child->config->workers > WORKERS_MAX)
		return -EINVAL;
	while (intake->workers_n < child->config->workers && !err)
		err = intake_open_worker(intake, intake->workers_n++);
	return err;
}

void intake_close(struct intake *intake)
{
	for (uint32_t k = 0; k < intake->workers_n; k++) {
		queue_close(&intake->workers[k].queue);
		definitions_close(&intake->workers[k].definitions[0]);
		definitions_close(&intake->workers[k].definitions[1]);
	}
}

/* Not more than once a second: the supervisor needs a moment to replace it. */
static bool intake_report(struct intake *intake, uint32_t k, uint64_t now_ns)
{
	struct intake_worker *worker = &intake->workers[k];

	if (worker->reported_ns && now_ns - worker->reported_ns < INTAKE_REPORT_NS)
		return false;
	worker->reported_ns = now_ns;
	child_report(intake->child, SLOT_WORKER((int)k), EPROTO);
	return true;
}

/*
 * The queue holds something that is no record, so its end cannot be found. A second after that was
 * reported go on behind everything that is in it: by then the worker has been replaced, and by one
 * that is not to be accused of what it found there.
 */
static void intake_skip(struct intake *intake, uint32_t k, struct batch *batch, uint64_t now_ns)
{
	struct intake_worker *worker = &intake->workers[k];
	struct queue *queue = &worker->queue;
	uint64_t head = atomic_load_explicit(&queue->head->head, memory_order_acquire);
	bool sound = head - queue->cursor <= queue->capacity && !(head & 7);

	if (!worker->accused || !sound) {
		if (!intake_report(intake, k, now_ns))
			return;
		batch_bad_record(batch, now_ns);
		worker->accused = true;
	} else if (now_ns - worker->reported_ns >= INTAKE_REPORT_NS) {
		queue->cursor = head;
		queue->dead = worker->accused = false;
	}
}

static int intake_translate(struct intake *intake, struct intake_worker *worker,
			    struct batch *batch, const struct symbol_sample *from,
			    struct profile_sample *to)
{
	struct translate translate = {.definitions = &worker->definitions[from->epoch & 1],
				      .profile = batch->profile,
				      .config = intake->child->config,
				      .generation = batch->generation};
	int err = definitions_catch_up(translate.definitions, from->epoch);

	/* It has its share of all processes, and speaks of no others. */
	if (worker_of(from->pid, intake->workers_n) != (uint32_t)(worker - intake->workers))
		return -EPROTO;
	return err ? err : translate_sample(&translate, from, to);
}

/* One record. False when the batch has to be closed before it can be taken. */
static bool intake_record(struct intake *intake, uint32_t k, struct batch *batch,
			  const struct symbol_sample *from, long len, uint64_t now_ns)
{
	struct profile_sample to;
	int err = -EPROTO;

	if (len >= (long)sizeof(*from) && from->header.kind == SYMBOL_SAMPLE)
		err = intake_translate(intake, &intake->workers[k], batch, from, &to);
	if (err == 0)
		return batch_add(batch, &to, from->time_ns, now_ns) == 0;
	/* With nothing in the batch there is nothing to give up. The sample stays in its queue. */
	if (err == -ENOMEM && !batch->samples)
		fatal("no memory left for the definitions of a worker: --log-memory gives this "
		      "process more of its own (RLIMIT_DATA)");
	if (err == -ENOSPC || err == -ENOMEM) {
		batch_no_room(batch, now_ns);
		return !batch->full;
	}
	batch_bad_record(batch, now_ns);
	/* What takes the place of a log that made no sense may be another one of the same epoch. */
	if (intake_report(intake, k, now_ns))
		for (int i = 0; i < 2; i++)
			intake->workers[k].definitions[i].begun = false;
	return true;
}

static bool intake_read_worker(struct intake *intake, uint32_t k, struct batch *batch)
{
	struct queue *queue = &intake->workers[k].queue;
	_Alignas(8) char record[INTAKE_RECORD_BYTES_MAX];
	uint64_t now_ns = child_now_ns();

	for (int i = 0; i < INTAKE_RECORDS_PER_PASS; i++) {
		uint64_t before = queue->cursor;
		long len = queue_next(queue, record, sizeof(record));

		if (len == 0)
			return false;
		if (len < 0) {
			intake_skip(intake, k, batch, now_ns);
			return false;
		}
		if (!intake_record(intake, k, batch, (const void *)record, len, now_ns)) {
			queue->cursor = before; /* again, in the next batch */
			return true;
		}
	}
	return true;
}

bool intake_read(struct intake *intake, struct batch *batch)
{
	bool more = false;

	for (uint32_t k = 0; k < intake->workers_n && !batch->full; k++)
		more |= intake_read_worker(intake, k, batch);
	return more || batch->full;
}

bool intake_pressed(const struct intake *intake)
{
	for (uint32_t k = 0; k < intake->workers_n; k++) {
		const struct queue *queue = &intake->workers[k].queue;

		/* Only what has been read can be released. */
		if (queue->cursor - atomic_load(&queue->tail->tail) > queue->capacity / 4 &&
		    queue_used(queue) > queue->capacity / 2)
			return true;
	}
	return false;
}

void intake_commit(struct intake *intake, struct batch *batch,
		   struct spool spools[DESTINATION_COUNT])
{
	uint64_t tails[WORKERS_MAX];

	for (uint32_t k = 0; k < intake->workers_n; k++)
		tails[k] = intake->workers[k].queue.cursor;
	batch_commit(batch, &intake->child->ledger, spools, tails, intake->workers_n);
	for (uint32_t k = 0; k < intake->workers_n; k++)
		queue_release(&intake->workers[k].queue, tails[k]);
}
