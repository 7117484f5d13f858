/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reading half of shm/queue.h, in a file of its own: no process that holds a privilege reads a queue,
 * and so none links it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shm/queue.h"

int queue_open_consumer(struct queue *queue, int own, int other)
{
	int err = queue_open(queue, other, own, false);

	if (err)
		return err;
	queue->cursor = atomic_load_explicit(&queue->tail->tail, memory_order_relaxed);
	queue->seen = queue->cursor;
	return 0;
}

static long queue_dead(struct queue *queue)
{
	queue->dead = true;
	return -EPROTO;
}

long queue_next(struct queue *queue, void *buf, size_t size)
{
	const char *record;
	uint64_t head;
	uint32_t len;

	if (queue->dead)
		return -EPROTO;
	/* acquire pairs with the release in queue_publish() */
	head = atomic_load_explicit(&queue->head->head, memory_order_acquire);
	if (head == queue->cursor)
		return 0;
	if (head < queue->cursor || head - queue->cursor > queue->capacity || (head & 7))
		return queue_dead(queue);
	record = queue->data + (queue->cursor & (queue->capacity - 1));
	/* The producer may change it at any time: read the length once. */
	len = *(const volatile uint32_t *)record;
	if (len < 8 || (len & 7) || len > size || len > head - queue->cursor)
		return queue_dead(queue);
	memcpy(buf, record, len);
	memcpy(buf, &len, sizeof(len));
	queue->cursor += len;
	return (long)len;
}

void queue_release(struct queue *queue, uint64_t index)
{
	/* release pairs with the acquire in queue_tail_valid(): all reads are done before reuse */
	atomic_store_explicit(&queue->tail->tail, index, memory_order_release);
}

void queue_wait(struct queue *queue, int timeout_ms)
{
	struct timespec time = {timeout_ms / 1000, (timeout_ms % 1000) * 1000000L};
	uint32_t wake = atomic_load_explicit(&queue->head->wake, memory_order_acquire);

	atomic_store_explicit(&queue->tail->waiting, 1, memory_order_relaxed);
	/* Orders the store above against the load below; partner: the fence in queue_publish(). */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&queue->head->head, memory_order_acquire) == queue->cursor)
		syscall(SYS_futex, &queue->head->wake, FUTEX_WAIT, wake, &time, NULL, 0);
	atomic_store_explicit(&queue->tail->waiting, 0, memory_order_relaxed);
}
