/* SPDX-License-Identifier: Apache-2.0 */
/* The queue between two honest sides: order, wrap, full, nothing seen before it is published, waking. */
#define _GNU_SOURCE
#include "shm/queue.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define CAPACITY QUEUE_CAPACITY_MIN

struct pair {
	struct queue_segments segments;
	struct queue producer, consumer;
};

static int pair_setup(void **state)
{
	struct pair *p = test_calloc(1, sizeof(*p));

	*state = p;
	assert_int_equal(queue_create(&p->segments, "test", CAPACITY), 0);
	assert_int_equal(queue_open_producer(&p->producer, p->segments.producer.rw,
					     p->segments.consumer.ro), 0);
	assert_int_equal(queue_open_consumer(&p->consumer, p->segments.consumer.rw,
					     p->segments.producer.ro), 0);
	return 0;
}

static int pair_teardown(void **state)
{
	struct pair *p = *state;

	queue_close(&p->producer);
	queue_close(&p->consumer);
	queue_destroy(&p->segments);
	test_free(p);
	return 0;
}

static uint32_t *record(char *buf, uint32_t len, uint32_t tag)
{
	memset(buf, (int)(tag & 0xff), len);
	memcpy(buf, &len, sizeof(len));
	memcpy(buf + 4, &tag, sizeof(tag));
	return (uint32_t *)(void *)buf;
}

static void test_sizes(void **state)
{
	struct queue_segments s;

	(void)state;
	assert_int_equal(queue_create(&s, "x", 0), -EINVAL);
	assert_int_equal(queue_create(&s, "x", CAPACITY / 2), -EINVAL);
	assert_int_equal(queue_create(&s, "x", CAPACITY + SEGMENT_PAGE), -EINVAL);
	assert_int_equal(queue_create(&s, "x", 2ul * QUEUE_CAPACITY_MAX), -EINVAL);
}

static void test_wrong_fds_are_refused(void **state)
{
	struct pair *p = *state;
	struct queue q;

	/* sides swapped */
	assert_int_equal(queue_open_producer(&q, p->segments.consumer.rw, p->segments.producer.ro),
			 -EPROTO);
	/* a reader's fd for the side that writes */
	assert_int_equal(queue_open_producer(&q, p->segments.producer.ro, p->segments.consumer.ro),
			 -EACCES);
	assert_int_equal(queue_open_consumer(&q, p->segments.consumer.ro, p->segments.producer.ro),
			 -EACCES);
	assert_int_equal(queue_open_producer(&q, -1, p->segments.consumer.ro), -EBADF);
	assert_int_equal(queue_open_producer(&q, p->segments.producer.rw, -1), -EPROTO);
}

static void test_nothing_is_seen_before_publish(void **state)
{
	struct pair *p = *state;
	_Alignas(8) char in[64], out[64];

	assert_int_equal(queue_next(&p->consumer, out, sizeof(out)), 0);
	assert_int_equal(queue_push(&p->producer, record(in, 24, 1), 24), 0);
	assert_int_equal(queue_next(&p->consumer, out, sizeof(out)), 0);
	assert_int_equal(queue_used(&p->consumer), 0);
	queue_publish(&p->producer, p->producer.cursor);
	assert_int_equal(queue_used(&p->consumer), 24);
	assert_int_equal(queue_next(&p->consumer, out, sizeof(out)), 24);
	assert_memory_equal(in, out, 24);
	assert_int_equal(queue_used(&p->producer), 24);
	queue_release(&p->consumer, p->consumer.cursor);
	assert_int_equal(queue_used(&p->producer), 0);
}

/* Odd sizes run over the end many times; each record comes back whole and in order. */
static void test_order_and_wrap(void **state)
{
	struct pair *p = *state;
	_Alignas(8) char in[4096], out[4096];
	uint32_t pushed = 0, popped = 0;

	for (int round = 0; round < 400; round++) {
		while (!queue_push(&p->producer, record(in, 8 + 8 * (pushed % 500), pushed),
				   8 + 8 * (pushed % 500)))
			pushed++;
		assert_int_equal(errno, ENOBUFS);
		queue_publish(&p->producer, p->producer.cursor);
		while (queue_next(&p->consumer, out, sizeof(out)) > 0) {
			assert_memory_equal(out, record(in, 8 + 8 * (popped % 500), popped),
					    8 + 8 * (popped % 500));
			popped++;
		}
		assert_int_equal(popped, pushed);
		queue_release(&p->consumer, p->consumer.cursor);
	}
	assert_true(p->producer.cursor > 100ull * CAPACITY);
}

static void test_full_and_the_last_byte(void **state)
{
	struct pair *p = *state;
	_Alignas(8) char in[1024], out[1024];

	for (int i = 0; i < CAPACITY / 1024; i++)
		assert_int_equal(queue_push(&p->producer, record(in, 1024, 1), 1024), 0);
	assert_int_equal(queue_push(&p->producer, record(in, 8, 1), 8), -ENOBUFS);
	queue_publish(&p->producer, p->producer.cursor);
	assert_int_equal(queue_next(&p->consumer, out, sizeof(out)), 1024);
	/* read, but not released */
	assert_int_equal(queue_push(&p->producer, record(in, 8, 1), 8), -ENOBUFS);
	queue_release(&p->consumer, p->consumer.cursor);
	assert_int_equal(queue_push(&p->producer, record(in, 1024, 1), 1024), 0);
	assert_int_equal(queue_push(&p->producer, record(in, 8, 1), 8), -ENOBUFS);
	assert_false(p->producer.dead);
}

/* A restart between commit and publish: cursors go to what the ledger says, even when full. */
static void test_reopen_goes_on(void **state)
{
	struct pair *p = *state;
	_Alignas(8) char in[1024], out[1024];
	uint64_t committed;

	for (int i = 0; i < CAPACITY / 1024; i++)
		assert_int_equal(queue_push(&p->producer, record(in, 1024, (uint32_t)i), 1024), 0);
	committed = p->producer.cursor;
	queue_close(&p->producer);
	assert_int_equal(queue_open_producer(&p->producer, p->segments.producer.rw,
					     p->segments.consumer.ro), 0);
	assert_int_equal(p->producer.cursor, 0);
	p->producer.cursor = committed;
	queue_publish(&p->producer, committed);
	assert_int_equal(queue_push(&p->producer, record(in, 8, 1), 8), -ENOBUFS);
	assert_int_equal(queue_next(&p->consumer, out, sizeof(out)), 1024);
	committed = p->consumer.cursor;
	queue_close(&p->consumer);
	assert_int_equal(queue_open_consumer(&p->consumer, p->segments.consumer.rw,
					     p->segments.producer.ro), 0);
	assert_int_equal(p->consumer.cursor, 0);
	p->consumer.cursor = committed;
	queue_release(&p->consumer, committed);
	assert_int_equal(queue_next(&p->consumer, out, sizeof(out)), 1024);
	assert_memory_equal(out, record(in, 1024, 1), 1024);
	assert_int_equal(queue_push(&p->producer, record(in, 1024, 9), 1024), 0);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void *publish_later(void *arg)
{
	struct queue *q = arg;
	_Alignas(8) char in[8];

	usleep(50000);
	queue_push(q, record(in, 8, 1), 8);
	queue_publish(q, q->cursor);
	return NULL;
}

static void test_wait_and_wake(void **state)
{
	struct pair *p = *state;
	uint64_t start = now_ms();
	pthread_t thread;

	queue_wait(&p->consumer, 60);
	assert_true(now_ms() - start >= 50);
	assert_int_equal(pthread_create(&thread, NULL, publish_later, &p->producer), 0);
	start = now_ms();
	queue_wait(&p->consumer, 20000);
	assert_true(now_ms() - start < 10000);
	pthread_join(thread, NULL);
	assert_int_equal(queue_used(&p->consumer), 8);
	queue_wait(&p->consumer, 20000); /* something is there: no sleep */
	assert_true(now_ms() - start < 10000);
}

#define PAIR(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		PAIR(test_wrong_fds_are_refused),
		PAIR(test_nothing_is_seen_before_publish),
		PAIR(test_order_and_wrap),
		PAIR(test_full_and_the_last_byte),
		PAIR(test_reopen_goes_on),
		PAIR(test_wait_and_wake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
