/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue under load: first between two processes, then between two threads that share one mapping.
 * ThreadSanitizer knows memory by its address, so that only the second form shows it both sides; the
 * consumer checks number and bytes of every record in both.
 */
#define _GNU_SOURCE
#include "shm/queue.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CAPACITY QUEUE_CAPACITY_MIN
#define RECORD_MAX 2048
#define LAST UINT64_MAX /* as a number: nothing follows */

#ifdef __SANITIZE_THREAD__
#define RECORDS 200000ull
#else
#define RECORDS 1500000ull
#endif

struct stress_record {
	uint32_t len_bytes, salt;
	uint64_t number;
	uint8_t bytes[RECORD_MAX - 16];
};

static uint32_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	return (uint32_t)(x >> 32);
}

static uint32_t length_of(uint64_t number)
{
	/* mostly short ones, so that many fit; now and then one that fills much of the queue */
	return mix(number) % 64 ? 16 + 8 * (mix(number) % 16) : 16 + 8 * (mix(number) % 254);
}

static void fill(struct stress_record *r, uint64_t number)
{
	r->len_bytes = length_of(number);
	r->salt = mix(number + 1);
	r->number = number;
	memset(r->bytes, (int)(r->salt & 0xff), r->len_bytes - 16);
}

static void produce(struct queue *q)
{
	struct stress_record r;
	uint64_t unpublished = 0;

	for (uint64_t n = 0; n <= RECORDS; n++) {
		fill(&r, n == RECORDS ? LAST : n);
		while (queue_push(q, &r, r.len_bytes)) {
			queue_publish(q, q->cursor);
			sched_yield();
		}
		if (++unpublished == 1 + mix(n) % 32) {
			queue_publish(q, q->cursor);
			unpublished = 0;
		} else if (unpublished > 32) {
			unpublished = 0;
		}
	}
	queue_publish(q, q->cursor);
}

/* Number of faults. */
static int consume(struct queue *q)
{
	struct stress_record r, want;

	for (uint64_t n = 0;; n++) {
		long got;

		while ((got = queue_next(q, &r, sizeof(r))) == 0)
			queue_wait(q, 100);
		if (got < 0) {
			printf("record %llu: %ld\n", (unsigned long long)n, got);
			return 1;
		}
		fill(&want, n == RECORDS ? LAST : n);
		if (got != (long)want.len_bytes || memcmp(&r, &want, (size_t)got)) {
			printf("record %llu differs: number %llu, %ld bytes\n",
			       (unsigned long long)n, (unsigned long long)r.number, got);
			return 1;
		}
		if (mix(n) % 8 == 0 || n == RECORDS)
			queue_release(q, q->cursor);
		if (n == RECORDS)
			return 0;
	}
}

static int between_processes(void)
{
	struct queue_segments s;
	struct queue q;
	int status, faults;
	pid_t pid;

	if (queue_create(&s, "stress", CAPACITY))
		return 1;
	pid = fork();
	if (pid == 0) {
		if (queue_open_producer(&q, s.producer.rw, s.consumer.ro))
			_exit(1);
		produce(&q);
		_exit(0);
	}
	if (queue_open_consumer(&q, s.consumer.rw, s.producer.ro))
		return 1;
	faults = consume(&q);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		faults++;
	queue_close(&q);
	queue_destroy(&s);
	return faults;
}

static void *produce_thread(void *arg)
{
	produce(arg);
	return NULL;
}

/* One address for each byte: the producer's mapping of head and data, the consumer's of tail. */
static int between_threads(void)
{
	struct queue_segments s;
	struct queue producer, consumer, p, c;
	pthread_t thread;
	int faults;

	if (queue_create(&s, "stress", CAPACITY) ||
	    queue_open_producer(&producer, s.producer.rw, s.consumer.ro) ||
	    queue_open_consumer(&consumer, s.consumer.rw, s.producer.ro))
		return 1;
	p = producer;
	p.tail = consumer.tail;
	c = consumer;
	c.head = producer.head;
	c.data = producer.data;
	if (pthread_create(&thread, NULL, produce_thread, &p))
		return 1;
	faults = consume(&c);
	pthread_join(thread, NULL);
	queue_close(&producer);
	queue_close(&consumer);
	queue_destroy(&s);
	return faults;
}

int main(void)
{
	int faults = between_processes();

	printf("two processes: %s\n", faults ? "FAILED" : "ok");
	if (between_threads()) {
		printf("two threads: FAILED\n");
		faults++;
	}
	return faults ? 1 : 0;
}
