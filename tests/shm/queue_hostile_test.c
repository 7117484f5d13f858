/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other side of a queue lies: about head and tail, about lengths, and while it is being read.
 * The honest side says -EPROTO, or has a copy with a length that it can trust; it never touches a
 * byte outside of the mapping (a fault would end the test) or behind the caller's buffer.
 */
#define _GNU_SOURCE
#include "shm/queue.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#define CAPACITY QUEUE_CAPACITY_MIN
#define BUF_BYTES 512
#define PATIENCE_MS 60000 /* of a busy machine */

/* Both pages and the data, writable: the liar's view. */
struct liar {
	struct queue_segments segments;
	struct queue_head *head;
	struct queue_tail *tail;
	char *data;
	struct queue q; /* the honest side */
};

static int liar_setup(void **state)
{
	struct liar *l = test_calloc(1, sizeof(*l));

	*state = l;
	assert_int_equal(queue_create(&l->segments, "liar", CAPACITY), 0);
	l->head = segment_map(l->segments.producer.rw, SEGMENT_PAGE + CAPACITY, 1);
	l->tail = segment_map(l->segments.consumer.rw, SEGMENT_PAGE, 1);
	assert_non_null(l->head);
	assert_non_null(l->tail);
	l->data = (char *)l->head + SEGMENT_PAGE;
	return 0;
}

static int liar_teardown(void **state)
{
	struct liar *l = *state;

	munmap(l->head, SEGMENT_PAGE + CAPACITY);
	munmap(l->tail, SEGMENT_PAGE);
	queue_destroy(&l->segments);
	test_free(l);
	return 0;
}

static void consumer_open(struct liar *l)
{
	assert_int_equal(queue_open_consumer(&l->q, l->segments.consumer.rw,
					     l->segments.producer.ro), 0);
}

static void producer_open(struct liar *l)
{
	assert_int_equal(queue_open_producer(&l->q, l->segments.producer.rw,
					     l->segments.consumer.ro), 0);
}

/* A fresh consumer at `tail` meets `head` and, where the record stands, `len`. */
static long consume(struct liar *l, uint64_t tail, uint64_t head, uint32_t len)
{
	_Alignas(8) char buf[BUF_BYTES + 64];
	long got;

	atomic_store(&l->tail->tail, tail);
	atomic_store(&l->head->head, head);
	memcpy(l->data + (tail & (CAPACITY - 1)), &len, sizeof(len));
	memset(buf, 0x5a, sizeof(buf));
	consumer_open(l);
	got = queue_next(&l->q, buf, BUF_BYTES);
	if (got < 0) {
		/* dead until it is opened again */
		atomic_store(&l->head->head, tail);
		assert_int_equal(queue_next(&l->q, buf, BUF_BYTES), -EPROTO);
	}
	queue_close(&l->q);
	for (size_t i = BUF_BYTES; i < sizeof(buf); i++)
		assert_int_equal(buf[i], 0x5a);
	return got;
}

static void test_lying_head(void **state)
{
	static const struct {
		uint64_t tail, head;
		long want;
	} cases[] = {
		{0, 16, 16},
		{4096, 4080, -EPROTO},			 /* behind */
		{4096, 0, -EPROTO},			 /* behind */
		{0, CAPACITY, 16},			 /* full */
		{0, CAPACITY + 8, -EPROTO},		 /* ahead of what fits */
		{4096, UINT64_MAX & ~7ull, -EPROTO},	 /* far ahead */
		{UINT64_MAX - 7, 8, -EPROTO},		 /* wrapped */
		{0, 17, -EPROTO},			 /* unaligned */
		{0, 20, -EPROTO},			 /* unaligned */
		{CAPACITY - 8, CAPACITY + 8, 16},	 /* over the end: mapped twice */
	};
	struct liar *l = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(consume(l, cases[i].tail, cases[i].head, 16), cases[i].want);
}

static void test_lying_lengths(void **state)
{
	static const struct {
		uint32_t len;
		long want;
	} cases[] = {
		{0, -EPROTO},  {4, -EPROTO},		{7, -EPROTO},
		{8, 8},	       {9, -EPROTO},		{12, -EPROTO},
		{504, 504},    {512, 512},		{520, -EPROTO}, /* longer than the buffer */
		{1024, -EPROTO}, {CAPACITY, -EPROTO},	{UINT32_MAX, -EPROTO},
		{UINT32_MAX & ~7u, -EPROTO}, {0x80000000u, -EPROTO},
	};
	struct liar *l = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(consume(l, 4096, 4096 + 1024, cases[i].len), cases[i].want);
	assert_int_equal(consume(l, 4096, 4096 + 64, 72), -EPROTO); /* longer than published */
	assert_int_equal(consume(l, 4096, 4096 + 64, 64), 64);
	/* the last 8 bytes before the end, longer than there is */
	assert_int_equal(consume(l, CAPACITY - 8, CAPACITY, 512), -EPROTO);
	assert_int_equal(consume(l, CAPACITY - 8, CAPACITY + 504, 512), 512);
}

/* The queue carries any kind; whoever reads judges. What matters: the copy is what was checked. */
static void test_unknown_kind_is_delivered_as_it_is(void **state)
{
	struct liar *l = *state;
	uint16_t kind = 0xffff;

	memcpy(l->data + 4096 + 4, &kind, sizeof(kind));
	assert_int_equal(consume(l, 4096, 4096 + 64, 32), 32);
}

static void test_lying_tail(void **state)
{
	static const struct {
		uint64_t head, tail;
		int want;
	} cases[] = {
		{8192, 8192, 0},
		{8192, 8200, EPROTO},		   /* ahead of what was published */
		{8192, UINT64_MAX & ~7ull, EPROTO},
		{8192, 8191, EPROTO},		   /* unaligned */
		{CAPACITY + 8192, 8184, EPROTO},   /* further behind than fits */
		{CAPACITY + 8192, 8192, ENOBUFS},  /* full */
		{1ull << 40, 0, EPROTO},
		{0, 8, EPROTO},
	};
	struct liar *l = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		void *room;

		atomic_store(&l->head->head, cases[i].head);
		atomic_store(&l->tail->tail, cases[i].tail);
		producer_open(l);
		errno = 0;
		room = queue_reserve(&l->q, 64);
		assert_int_equal(errno, cases[i].want);
		assert_int_equal(room == NULL, cases[i].want != 0);
		/* more than there can ever be */
		assert_null(queue_reserve(&l->q, CAPACITY + 8));
		queue_close(&l->q);
	}
}

/* A liar leaves them so to the one that comes next, and to a consumer that was started anew. */
static void test_pages_full_of_nonsense_can_be_opened(void **state)
{
	struct liar *l = *state;

	memset(l->head, 0xff, SEGMENT_PAGE);
	memset(l->tail, 0xff, SEGMENT_PAGE);
	consumer_open(l);
	assert_int_equal(l->q.capacity, CAPACITY);
	queue_close(&l->q);
	producer_open(l);
	assert_null(queue_reserve(&l->q, 64));
	queue_close(&l->q);
}

struct scribbler {
	struct liar *l;
	atomic_bool stop;
	bool tail;
};

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/*
 * Mostly plausible indices and lengths, so that the reader gets far; sometimes anything. A data race on
 * purpose: that is what a hostile process does, hence no ThreadSanitizer here.
 */
__attribute__((no_sanitize("thread"))) static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	uint64_t x = 88172645463325252ull;

	while (!atomic_load(&s->stop)) {
		uint64_t r = next_random(&x);
		uint64_t base = atomic_load(s->tail ? &s->l->head->head : &s->l->tail->tail);
		uint64_t step = (r >> 8) % CAPACITY & ~7ull;
		volatile uint32_t *word = (volatile uint32_t *)(void *)s->l->data;

		if (s->tail) {
			atomic_store(&s->l->tail->tail,
				     r % 64 ? base - (step < base ? step : base) : next_random(&x));
			continue;
		}
		atomic_store(&s->l->head->head, r % 64 ? base + step : next_random(&x));
		for (int i = 0; i < 64; i++) {
			r = next_random(&x);
			word[(r >> 16) % (CAPACITY / 4)] = r % 16 ? (uint32_t)(r % 600) & ~7u
								  : (uint32_t)(r >> 32);
		}
	}
	return NULL;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void test_scribbled_on_while_reading(void **state)
{
	struct scribbler s = {.l = *state};
	_Alignas(8) char buf[BUF_BYTES + 64];
	uint64_t end = now_ms() + 1000, valid = 0, refused = 0;
	pthread_t thread;

	memset(buf, 0x5a, sizeof(buf));
	assert_int_equal(pthread_create(&thread, NULL, scribble, &s), 0);
	consumer_open(s.l);
	while (now_ms() < end || (now_ms() < end + PATIENCE_MS && (valid <= 100 || refused <= 100))) {
		long got = queue_next(&s.l->q, buf, BUF_BYTES);

		if (got > 0) {
			uint32_t len;

			memcpy(&len, buf, sizeof(len));
			assert_int_equal(len, got); /* the copy says what was checked */
			assert_true(got >= 8 && got <= BUF_BYTES && got % 8 == 0);
			valid++;
			queue_release(&s.l->q, s.l->q.cursor);
		} else if (got < 0) {
			assert_int_equal(got, -EPROTO);
			refused++;
			queue_close(&s.l->q);
			consumer_open(s.l);
		}
	}
	atomic_store(&s.stop, true);
	pthread_join(thread, NULL);
	queue_close(&s.l->q);
	for (size_t i = BUF_BYTES; i < sizeof(buf); i++)
		assert_int_equal(buf[i], 0x5a);
	assert_true(valid > 100);
	assert_true(refused > 100);
}

static void test_tail_scribbled_on_while_writing(void **state)
{
	struct scribbler s = {.l = *state, .tail = true};
	uint64_t end = now_ms() + 1000, written = 0, refused = 0, x = 2463534242u;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, scribble, &s), 0);
	producer_open(s.l);
	while (now_ms() < end || (now_ms() < end + PATIENCE_MS && (written <= 100 || refused <= 10))) {
		size_t len = 8 + 8 * (next_random(&x) % 256);
		char *room = queue_reserve(&s.l->q, len);

		if (room) {
			assert_true(room >= s.l->q.data &&
				    room + len <= s.l->q.data + 2 * (size_t)CAPACITY);
			memset(room, 0x11, len);
			queue_commit(&s.l->q, len);
			queue_publish(&s.l->q, s.l->q.cursor);
			written++;
		} else if (errno == EPROTO) {
			refused++;
			queue_close(&s.l->q);
			producer_open(s.l);
		} else {
			assert_int_equal(errno, ENOBUFS);
		}
	}
	atomic_store(&s.stop, true);
	pthread_join(thread, NULL);
	queue_close(&s.l->q);
	assert_true(written > 100);
	assert_true(refused > 10);
}

#define LIAR(f) cmocka_unit_test_setup_teardown(f, liar_setup, liar_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIAR(test_lying_head),
		LIAR(test_lying_lengths),
		LIAR(test_unknown_kind_is_delivered_as_it_is),
		LIAR(test_lying_tail),
		LIAR(test_pages_full_of_nonsense_can_be_opened),
		LIAR(test_scribbled_on_while_reading),
		LIAR(test_tail_scribbled_on_while_writing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
