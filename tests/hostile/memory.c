/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lies in shared memory: everything that a worker can write to.
 */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tests/hostile/lies.h"

static void tail_ahead(struct liar *liar)
{
	struct queue *q = &liar->worker.samples;

	for (;;) {
		ledger_turn(&liar->child.ledger);
		atomic_store(&q->tail->waiting, 1);
		queue_release(q, atomic_load(&q->head->head) + 4096);
		usleep(1000);
	}
}

static void tail_anywhere(struct liar *liar)
{
	queue_release(&liar->worker.samples, lies_random(liar));
}

static void process_tail(struct liar *liar)
{
	queue_release(&liar->worker.introductions.queue, lies_random(liar) & ~7ull);
}

/* Takes what it gets and says nothing of it. */
static void swallow(struct liar *liar)
{
	struct queue *q = &liar->worker.samples;

	liar->worker.samples_done = q->cursor = atomic_load(&q->head->head);
	liar->child.ledger.now.position[WORKER_SAMPLES_TAIL] = q->cursor;
	liar->worker.holding = false;
	ledger_commit(&liar->child.ledger);
	queue_release(q, q->cursor);
}

static void output_head(struct liar *liar)
{
	struct queue *q = &liar->worker.output;

	queue_publish(q, q->cursor + 2 * q->capacity);
}

/* Records that are none, in the place of the next. */
static void output_records(struct liar *liar)
{
	static const uint32_t lengths[] = {0, 4, 0xffffffff, 0x80000000, 256, 512, 8, 88};
	struct queue *q = &liar->worker.output;
	char *room = queue_reserve(q, 1024);

	if (!room)
		return;
	for (size_t i = 0; i < 1024; i++)
		room[i] = (char)lies_random(liar);
	memcpy(room, &lengths[liar->told % 8], 4);
	queue_commit(q, 1024);
	queue_publish(q, q->cursor);
}

/* A sample as it should be but for one thing. */
static void sample_refers(struct liar *liar)
{
	struct worker *w = &liar->worker;
	struct symbol_sample out = {.header = {.len_bytes = sizeof(out), .kind = SYMBOL_SAMPLE},
				    .epoch = w->define.epoch,
				    .time_ns = child_now_ns(),
				    .period_ns = 10000000,
				    .process = 1,
				    .stack = 1,
				    .comm = "liar"};

	switch (liar->told % 6) {
	case 0:
		out.stack = (uint32_t)lies_random(liar);
		break;
	case 1:
		out.process = (uint32_t)lies_random(liar);
		break;
	case 2:
		out.epoch += (uint32_t)lies_random(liar);
		break;
	case 3:
		out.stop = 255;
		break;
	case 4:
		out.period_ns = lies_random(liar) | 1ull << 63;
		break;
	default:
		/* Of a process of another worker. */
		while (out.pid * 2654435761u * (uint64_t)w->peers.n >> 32 == w->peers.self)
			out.pid++;
	}
	queue_push(&w->output, &out, sizeof(out));
	queue_publish(&w->output, w->output.cursor);
}

/* Behind what it has defined, so that all of it is read; then a sample, so that it is. */
static void definitions(struct liar *liar)
{
	struct define *d = &liar->worker.define;
	char *records = (char *)d->log + SYMBOL_LOG_HEADER_BYTES;

	for (uint64_t at = d->len_bytes; at < d->len_bytes + 4096 && at < d->capacity; at += 8) {
		uint64_t word = lies_random(liar);

		memcpy(records + at, &word, 8);
	}
	d->len_bytes += 4096;
	atomic_store(&d->log->len_bytes, d->len_bytes);
	sample_refers(liar);
}

/* What it has defined is something else now. */
static void definitions_change(struct liar *liar)
{
	struct define *d = &liar->worker.define;
	char *records = (char *)d->log + SYMBOL_LOG_HEADER_BYTES;

	for (uint64_t at = 0; at + 8 < d->len_bytes; at += 4)
		if (lies_random(liar) % 8 == 0)
			memset(records + at, (int)lies_random(liar), 4);
}

static void log_length(struct liar *liar)
{
	struct define *d = &liar->worker.define;

	atomic_store(&d->log->len_bytes, d->capacity + 4096);
	sample_refers(liar);
}

/* What says of all its memory what it is. */
static void headers(struct liar *liar)
{
	struct worker *w = &liar->worker;

	memset(w->output.head, 0xff, sizeof(*w->output.head));
	memset(w->define.logs[0], 0xff, sizeof(*w->define.logs[0]));
	memset(w->define.logs[1], 0xff, sizeof(*w->define.logs[1]));
	memset(liar->child.ledger.shared, 0xff,
	       sizeof(struct ledger) - 2 * sizeof(struct ledger_entry));
}

/* All that it will know of itself. */
static void ledger(struct liar *liar)
{
	uint64_t *words = (uint64_t *)(void *)liar->child.ledger.shared;

	for (size_t i = 0; i < LEDGER_BYTES / 8; i++)
		words[i] = lies_random(liar);
	_exit(1);
}

const struct lie lies_memory[] = {{"tail-ahead", tail_ahead, false},
				  {"tail-anywhere", tail_anywhere, false},
				  {"process-tail", process_tail, false},
				  {"swallow", swallow, false},
				  {"output-head", output_head, false},
				  {"output-records", output_records, false},
				  {"sample-refers", sample_refers, false},
				  {"definitions", definitions, false},
				  {"definitions-change", definitions_change, false},
				  {"log-length", log_length, false},
				  {"headers", headers, false},
				  {"ledger", ledger, false},
				  {NULL, NULL, false}};
