/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the other side's segment of a queue. A consumer gets records of a length that is
 * true, within what was published; a producer gets room, or is told that there is none.
 *
 *   u64 own index | u64 the other's index | u64 length of a record to write | data
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shm/queue.h"
#include "tests/fuzz/fuzz.h"

#define CAPACITY QUEUE_CAPACITY_MIN

const unsigned fuzz_mutations = 3000;

static struct queue_segments segments;
static struct queue_head *head;
static struct queue_tail *tail;

static void consume(uint64_t own, uint64_t other)
{
	_Alignas(8) static char record[4096];
	struct queue q;
	uint64_t before;
	long n;

	atomic_store(&tail->tail, own);
	atomic_store(&head->head, other);
	if (queue_open_consumer(&q, segments.consumer.rw, segments.producer.ro))
		abort();
	for (before = q.cursor; (n = queue_next(&q, record, sizeof(record))) > 0; before = q.cursor)
		if (n < 8 || n > (long)sizeof(record) || n % 8 ||
		    q.cursor != before + (uint64_t)n || q.cursor > other ||
		    *(uint32_t *)(void *)record != (uint32_t)n)
			abort();
	queue_close(&q);
}

static void produce(uint64_t own, uint64_t other, uint64_t len)
{
	struct queue q;
	char *room;

	atomic_store(&head->head, own);
	atomic_store(&tail->tail, other);
	if (queue_open_producer(&q, segments.producer.rw, segments.consumer.ro))
		abort();
	for (int i = 0; i < 100 && (room = queue_reserve(&q, len)); i++) {
		if (len > CAPACITY || room < q.data || room + len > q.data + 2 * CAPACITY)
			abort();
		memset(room, 1, len);
		queue_commit(&q, len);
		queue_publish(&q, q.cursor);
	}
	queue_close(&q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t first[3];
	char *bytes;

	if (size < sizeof(first))
		return 0;
	if (!head) {
		if (queue_create(&segments, "fuzz", CAPACITY))
			abort();
		head = segment_map(segments.producer.rw, SEGMENT_PAGE + CAPACITY, 1);
		tail = segment_map(segments.consumer.rw, SEGMENT_PAGE, 1);
	}
	memcpy(first, data, sizeof(first));
	first[0] &= ~7ull; /* that one is honest */
	first[2] &= ~7ull;
	bytes = (char *)head + SEGMENT_PAGE;
	memset(bytes, 0, CAPACITY);
	size -= sizeof(first);
	for (size_t i = 0; i < size && i < CAPACITY; i++)
		bytes[(first[0] + i) % CAPACITY] = (char)data[sizeof(first) + i];
	consume(first[0], first[1]);
	produce(first[0], first[1], first[2]);
	return 0;
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	static const uint64_t firsts[][3] = {
	    {0, 88, 64}, {65528, 65528 + 88, 4096}, {65536, 8, 16}};
	static const uint32_t lengths[] = {16, 8, 64};
	size_t at = 24;

	if (n >= 3)
		return 0;
	memcpy(data, firsts[n], 24);
	for (int i = 0; i < 3; at += lengths[i++]) {
		memset(data + at, 0, lengths[i]);
		memcpy(data + at, &lengths[i], 4);
	}
	return at;
}
