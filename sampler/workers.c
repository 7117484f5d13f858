/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues of the workers, and their resumption after a kill. The process queue is published before
 * the sample queue, so that a worker that sees a sample can see whose it is.
 */
#include "sampler/workers.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "proto/fds.h"

/*
 * Go on at the committed position. If the queue is younger than the ledger (it was replaced), what
 * stands behind its head is not a chain of records that ends there, and the head holds.
 */
static void workers_resume(struct queue *queue, uint64_t committed)
{
	uint64_t head = queue->cursor, at = head;

	if (committed <= head || committed - head > queue->capacity)
		return;
	while (at < committed) {
		uint32_t len;

		memcpy(&len, queue->data + (at & (queue->capacity - 1)), sizeof(len));
		if (len < 8 || (len & 7) || len > committed - at)
			return;
		at += len;
	}
	queue->cursor = committed;
	queue_publish(queue, committed);
}

int workers_open(struct workers *workers, uint32_t n, int base, const struct ledger_writer *ledger)
{
	if (n == 0 || n > WORKERS_MAX)
		return -EINVAL;
	workers->n = n;
	for (uint32_t k = 0; k < n; k++) {
		struct worker *worker = &workers->worker[k];
		int fds = base + (int)k * FD_SAMPLER_PER_WORKER, err;

		channel_init(&worker->channel, fds + FD_SAMPLER_CHANNEL, ROLE_SAMPLER,
			     ROLE_SYMBOLIZER, true);
		err = queue_open_producer(&worker->process, fds + FD_SAMPLER_PROCESS_OWN,
					  fds + FD_SAMPLER_PROCESS_OTHER);
		if (!err)
			err = queue_open_producer(&worker->samples, fds + FD_SAMPLER_SAMPLES_OWN,
						  fds + FD_SAMPLER_SAMPLES_OTHER);
		if (err)
			return err;
		workers_resume(&worker->process, ledger->now.position[POSITION_PROCESS + k]);
		workers_resume(&worker->samples, ledger->now.position[POSITION_SAMPLES + k]);
	}
	return 0;
}

void workers_store(const struct workers *workers, struct ledger_writer *ledger)
{
	for (uint32_t k = 0; k < workers->n; k++) {
		ledger->now.position[POSITION_PROCESS + k] = workers->worker[k].process.cursor;
		ledger->now.position[POSITION_SAMPLES + k] = workers->worker[k].samples.cursor;
	}
}

static void workers_publish_queue(struct queue *queue)
{
	if (atomic_load_explicit(&queue->head->head, memory_order_relaxed) != queue->cursor)
		queue_publish(queue, queue->cursor);
}

void workers_publish(struct workers *workers)
{
	for (uint32_t k = 0; k < workers->n; k++)
		workers_publish_queue(&workers->worker[k].process);
	for (uint32_t k = 0; k < workers->n; k++)
		workers_publish_queue(&workers->worker[k].samples);
}
