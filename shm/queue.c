/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "shm/queue.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool queue_capacity_valid(uint64_t capacity)
{
	return capacity >= QUEUE_CAPACITY_MIN && capacity <= QUEUE_CAPACITY_MAX &&
	       (capacity & (capacity - 1)) == 0;
}

int queue_create(struct queue_segments *segments, const char *name, size_t capacity)
{
	char label[64];
	int err;

	if (!queue_capacity_valid(capacity))
		return -EINVAL;
	snprintf(label, sizeof(label), "%s-head", name);
	err = segment_create(&segments->producer, label, SEGMENT_PAGE + capacity);
	if (err)
		return err;
	snprintf(label, sizeof(label), "%s-tail", name);
	err = segment_create(&segments->consumer, label, SEGMENT_PAGE);
	if (err)
		segment_close(&segments->producer);
	return err;
}

void queue_destroy(struct queue_segments *segments)
{
	segment_close(&segments->producer);
	segment_close(&segments->consumer);
}

/* Header page, then the data twice in a row. */
static int queue_map_producer(struct queue *queue, int fd, bool writable)
{
	int prot = PROT_READ | (writable ? PROT_WRITE : 0);
	long size = segment_size(fd);
	char *base;

	if (size < 0)
		return (int)size;
	if (size <= SEGMENT_PAGE || !queue_capacity_valid((uint64_t)size - SEGMENT_PAGE))
		return -EPROTO;
	queue->capacity = (uint64_t)size - SEGMENT_PAGE;
	base = mmap(NULL, SEGMENT_PAGE + 2 * queue->capacity, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	queue->head = (struct queue_head *)base;
	queue->data = base + SEGMENT_PAGE;
	if (mmap(base, (size_t)size, prot, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(queue->data + queue->capacity, queue->capacity, prot, MAP_SHARED | MAP_FIXED, fd,
		 SEGMENT_PAGE) == MAP_FAILED)
		return -errno;
	return 0;
}

int queue_open(struct queue *queue, int producer_fd, int consumer_fd, bool producing)
{
	int err;

	memset(queue, 0, sizeof(*queue));
	err = queue_map_producer(queue, producer_fd, producing);
	if (err)
		goto fail;
	if (segment_size(consumer_fd) < SEGMENT_PAGE) {
		err = -EPROTO;
		goto fail;
	}
	queue->tail = segment_map(consumer_fd, SEGMENT_PAGE, !producing);
	if (!queue->tail) {
		err = -errno;
		goto fail;
	}
	return 0;
fail:
	queue_close(queue);
	return err;
}

int queue_open_producer(struct queue *queue, int own, int other)
{
	int err = queue_open(queue, own, other, true);

	if (err)
		return err;
	queue->cursor = atomic_load_explicit(&queue->head->head, memory_order_relaxed);
	/* As if full: the first queue_reserve() reads the consumer's tail, and checks it. */
	queue->seen = queue->cursor - queue->capacity;
	return 0;
}

void queue_close(struct queue *queue)
{
	if (queue->head)
		munmap(queue->head, SEGMENT_PAGE + 2 * queue->capacity);
	if (queue->tail)
		munmap(queue->tail, SEGMENT_PAGE);
	memset(queue, 0, sizeof(*queue));
}

/* Re-read the consumer's tail; it may lie at most `capacity` behind our cursor, never before it. */
static bool queue_tail_valid(struct queue *queue)
{
	/* acquire pairs with the release in queue_release(): the room is free before it is reused */
	uint64_t tail = atomic_load_explicit(&queue->tail->tail, memory_order_acquire);

	if (tail > queue->cursor || queue->cursor - tail > queue->capacity || (tail & 7)) {
		queue->dead = true;
		return false;
	}
	queue->seen = tail;
	return true;
}

/* By the tail seen last; none when the cursor was set behind a full queue after a restart. */
static uint64_t queue_room(const struct queue *queue)
{
	uint64_t used = queue->cursor - queue->seen;

	return used < queue->capacity ? queue->capacity - used : 0;
}

void *queue_reserve(struct queue *queue, size_t len_bytes)
{
	if (queue->dead || (queue_room(queue) < len_bytes && !queue_tail_valid(queue))) {
		errno = EPROTO;
		return NULL;
	}
	if (queue_room(queue) < len_bytes) {
		errno = ENOBUFS;
		return NULL;
	}
	return queue->data + (queue->cursor & (queue->capacity - 1));
}

void queue_commit(struct queue *queue, size_t len_bytes)
{
	queue->cursor += len_bytes;
}

int queue_push(struct queue *queue, const void *record, size_t len_bytes)
{
	void *room = queue_reserve(queue, len_bytes);

	if (!room)
		return -errno;
	memcpy(room, record, len_bytes);
	queue_commit(queue, len_bytes);
	return 0;
}

void queue_publish(struct queue *queue, uint64_t index)
{
	/* release pairs with the acquire in queue_next(): the data is written before it is seen */
	atomic_store_explicit(&queue->head->head, index, memory_order_release);
	atomic_fetch_add_explicit(&queue->head->wake, 1, memory_order_release);
	/* Orders the stores above against the load below; partner: the fence in queue_wait(). */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&queue->tail->waiting, memory_order_relaxed))
		syscall(SYS_futex, &queue->head->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint64_t queue_used(const struct queue *queue)
{
	uint64_t tail = atomic_load_explicit(&queue->tail->tail, memory_order_acquire);

	return atomic_load_explicit(&queue->head->head, memory_order_acquire) - tail;
}
