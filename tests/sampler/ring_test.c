/* SPDX-License-Identifier: Apache-2.0 */
/* The ring's consumer on a ring in plain memory: order, flag bits, wrap, and lengths that lie. */
#define _GNU_SOURCE
#include "sampler/ring.h"

#include <linux/bpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE 4096u

/* What the kernel lays out: consumer page, producer page, data twice. */
static struct {
	int fd;
	char *base;
	struct ring ring;
} fake;

static int setup(void **state)
{
	(void)state;
	fake.fd = memfd_create("ring", 0);
	assert_return_code(ftruncate(fake.fd, 2 * 4096 + 2 * SIZE), 0);
	fake.base = mmap(NULL, 2 * 4096 + 2 * SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fake.fd, 0);
	return ring_open(&fake.ring, fake.fd, SIZE);
}

static int teardown(void **state)
{
	(void)state;
	munmap(fake.base, 2 * 4096 + 2 * SIZE);
	munmap(fake.ring.consumer, 4096);
	munmap((void *)(uintptr_t)fake.ring.producer, 4096 + 2 * SIZE);
	return close(fake.fd);
}

static _Atomic uint64_t *producer(void)
{
	return (_Atomic uint64_t *)(void *)(fake.base + 4096);
}

static uint64_t consumer(void)
{
	return *(_Atomic uint64_t *)(void *)fake.base;
}

static void put_at(uint64_t at, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint64_t o = (at + i) & (SIZE - 1);

		fake.base[8192 + o] = fake.base[8192 + SIZE + o] = ((const char *)bytes)[i];
	}
}

/* word: the length, with the kernel's flag bits. */
static void produce(uint32_t word, char fill)
{
	uint64_t at = *producer();
	uint32_t len = word & 0x3fffffff;
	char body[SIZE];

	memset(body, fill, sizeof(body));
	put_at(at, &word, 4);
	put_at(at + 8, body, len);
	*producer() = at + ((8 + len + 7) & ~7u);
}

static void test_order_and_release(void **state)
{
	uint32_t len;
	const char *r;

	(void)state;
	produce(16, 'a');
	produce(20, 'b');
	assert_null(ring_next(&fake.ring, &len)); /* not before ring_begin() */
	ring_begin(&fake.ring);
	produce(8, 'c');
	r = ring_next(&fake.ring, &len);
	assert_true(r && len == 16 && r[0] == 'a');
	r = ring_next(&fake.ring, &len);
	assert_true(r && len == 20 && r[19] == 'b');
	assert_null(ring_next(&fake.ring, &len)); /* c came later */
	assert_int_equal(consumer(), 0);
	ring_release(&fake.ring);
	assert_int_equal(consumer(), 24 + 32);
	ring_begin(&fake.ring);
	r = ring_next(&fake.ring, &len);
	assert_true(r && len == 8 && r[0] == 'c');
}

static void test_busy_waits_discarded_is_skipped(void **state)
{
	uint32_t len, word = 16;
	const char *r;

	(void)state;
	produce(16 | BPF_RINGBUF_DISCARD_BIT, 'x');
	produce(16 | BPF_RINGBUF_BUSY_BIT, 'a');
	produce(16, 'b');
	ring_begin(&fake.ring);
	assert_null(ring_next(&fake.ring, &len));
	put_at(24, &word, 4); /* now it is written */
	r = ring_next(&fake.ring, &len);
	assert_true(r && r[0] == 'a');
	r = ring_next(&fake.ring, &len);
	assert_true(r && r[0] == 'b');
}

static void test_wraps(void **state)
{
	uint32_t len;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		const char *r;

		produce(1000, (char)i);
		ring_begin(&fake.ring);
		r = ring_next(&fake.ring, &len);
		assert_true(r && len == 1000 && r[0] == (char)i && r[999] == (char)i);
		assert_null(ring_next(&fake.ring, &len));
		ring_release(&fake.ring);
	}
	assert_int_equal(consumer(), *producer());
}

static void test_resume(void **state)
{
	static const struct {
		uint64_t committed, expected;
	} cases[] = {
	    {0, 0}, {24, 24}, {48, 48}, {56, 0} /* beyond what was produced: another ring */
	};

	(void)state;
	produce(16, 'a');
	produce(16, 'b');
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		fake.ring.cursor = 0;
		ring_release(&fake.ring);
		ring_resume(&fake.ring, cases[i].committed);
		assert_int_equal(fake.ring.cursor, cases[i].expected);
		assert_int_equal(consumer(), cases[i].expected);
	}
}

static void test_lengths_that_lie(void **state)
{
	static const uint32_t words[] = {1u << 20, 0x3fffffff, SIZE, 17};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		uint32_t len = 1;

		produce(8, 'a');
		put_at(*producer() - 16, &words[i], 4);
		ring_begin(&fake.ring);
		assert_non_null(ring_next(&fake.ring, &len));
		assert_int_equal(len, 0); /* refused by every check */
		assert_null(ring_next(&fake.ring, &len));
		assert_int_equal(fake.ring.cursor, *producer());
	}
}

/* Whatever the memory holds: it ends, and stays inside. */
static void test_noise(void **state)
{
	(void)state;
	srandom(9);
	for (int round = 0; round < 2000; round++) {
		uint64_t from = fake.ring.cursor;
		const char *r;
		uint32_t len;

		for (uint32_t i = 0; i < SIZE; i += 8) {
			uint32_t word = (uint32_t)random() & (round & 1 ? 0xc000007f : 0xffffffff);

			put_at(i, &word, 4);
		}
		*producer() = from + SIZE;
		ring_begin(&fake.ring);
		while ((r = ring_next(&fake.ring, &len)))
			assert_true(r >= fake.ring.data && r + len <= fake.ring.data + 2 * SIZE);
		assert_true(fake.ring.cursor <= *producer());
		fake.ring.cursor = *producer();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_order_and_release, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_busy_waits_discarded_is_skipped, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_wraps, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_resume, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_lengths_that_lie, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_noise, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
