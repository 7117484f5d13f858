/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: what is committed survives its owner, what is not never happened; and the counters' list. */
#define _GNU_SOURCE
#include "shm/ledger.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

static void test_commit_is_all_or_nothing(void **state)
{
	struct segment s;
	struct ledger_writer *w = test_malloc(sizeof(*w));
	struct ledger_entry *e = test_malloc(sizeof(*e));
	const struct ledger *r;

	(void)state;
	assert_int_equal(ledger_create(&s, "test"), 0);
	assert_int_equal(ledger_open(w, s.rw), 0);
	r = ledger_map(s.ro);
	assert_non_null(r);
	ledger_add(w, C_taken, 3);
	w->now.position[1] = 64;
	w->now.last_seq[LEDGER_CPUS - 1] = 7;
	assert_int_equal(ledger_read(r, e), 0);
	assert_int_equal(e->counter[C_taken], 0);
	ledger_commit(w);
	assert_int_equal(ledger_read(r, e), 0);
	assert_int_equal(e->counter[C_taken], 3);
	assert_int_equal(e->position[1], 64);
	assert_int_equal(e->last_seq[LEDGER_CPUS - 1], 7);
	ledger_add(w, C_taken, 100); /* never committed */
	ledger_turn(w);
	assert_int_equal(r->turns, 1);
	munmap(w->shared, LEDGER_BYTES);

	memset(w, 0x55, sizeof(*w));
	assert_int_equal(ledger_open(w, s.rw), 0);
	assert_int_equal(w->now.counter[C_taken], 3);
	ledger_set(w, C_processes, 9);
	ledger_commit(w);
	assert_int_equal(ledger_read(r, e), 0);
	assert_int_equal(e->counter[C_taken], 3);
	assert_int_equal(e->counter[C_processes], 9);
	munmap(w->shared, LEDGER_BYTES);
	munmap((void *)(uintptr_t)r, LEDGER_BYTES);
	segment_close(&s);
	test_free(w);
	test_free(e);
}

static void test_short_segment_is_refused(void **state)
{
	struct ledger_writer *w = test_malloc(sizeof(*w));
	struct segment s;

	(void)state;
	assert_int_equal(segment_create(&s, "short", SEGMENT_PAGE), 0);
	assert_int_equal(ledger_open(w, s.rw), -EPROTO);
	assert_null(ledger_map(s.ro));
	segment_close(&s);
	test_free(w);
}

struct busy {
	struct ledger_writer writer;
	atomic_bool stop;
};

static void *commit_all_the_time(void *arg)
{
	struct busy *busy = arg;

	while (!atomic_load(&busy->stop)) {
		for (int i = 0; i < LEDGER_COUNTERS; i++)
			busy->writer.now.counter[i]++;
		for (int i = 0; i < LEDGER_CPUS; i++)
			busy->writer.now.last_seq[i]++;
		ledger_commit(&busy->writer);
	}
	return NULL;
}

/* Every entry that is read is one that was committed: all its numbers are equal, and never go back. */
static void test_reader_never_sees_half_a_commit(void **state)
{
	struct busy *busy = test_calloc(1, sizeof(*busy));
	struct ledger_entry *e = test_malloc(sizeof(*e));
	struct segment s;
	const struct ledger *r;
	uint64_t last = 0, good = 0;
	pthread_t thread;

	(void)state;
	assert_int_equal(ledger_create(&s, "test"), 0);
	assert_int_equal(ledger_open(&busy->writer, s.rw), 0);
	r = ledger_map(s.ro);
	assert_int_equal(pthread_create(&thread, NULL, commit_all_the_time, busy), 0);
	for (int i = 0; i < 20000; i++) {
		if (ledger_read(r, e))
			continue;
		good++;
		for (int k = 1; k < LEDGER_COUNTERS; k++)
			assert_int_equal(e->counter[k], e->counter[0]);
		for (int k = 0; k < LEDGER_CPUS; k++)
			assert_int_equal(e->last_seq[k], e->counter[0]);
		assert_true(e->counter[0] >= last);
		last = e->counter[0];
	}
	atomic_store(&busy->stop, true);
	pthread_join(thread, NULL);
	assert_true(good > 0);
	assert_true(last > 0);
	munmap(busy->writer.shared, LEDGER_BYTES);
	munmap((void *)(uintptr_t)r, LEDGER_BYTES);
	segment_close(&s);
	test_free(busy);
	test_free(e);
}

/* Names are what users and tests see: unique, [a-z0-9_], with a help text; a loss names its stage. */
static void test_counter_list(void **state)
{
	static const char *const stages[] = {"bpf", "sampler", "symbolizer", "exporter"};

	(void)state;
	for (int i = 0; i < COUNTER_COUNT; i++) {
		const char *name = counter_name((enum counter)i);
		int known = strncmp(name, "lost_", 5) != 0;

		assert_true(strlen(counter_help((enum counter)i)) > 5);
		assert_true(strlen(counter_role((enum counter)i)) > 0);
		for (const char *c = name; *c; c++)
			assert_true(islower(*c) || isdigit(*c) || *c == '_');
		for (int k = 0; k < i; k++)
			assert_string_not_equal(name, counter_name((enum counter)k));
		for (size_t k = 0; k < sizeof(stages) / sizeof(*stages); k++)
			known |= strncmp(name + 5, stages[k], strlen(stages[k])) == 0;
		assert_true(known);
	}
	assert_string_equal(counter_name(C_taken), "taken");
	assert_string_equal(counter_role(C_slots), "viewer");
	assert_int_equal(counter_kind(C_slots), COUNTER_GAUGE);
	assert_int_equal(counter_kind(C_taken), COUNTER_SUM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commit_is_all_or_nothing),
		cmocka_unit_test(test_short_segment_is_refused),
		cmocka_unit_test(test_reader_never_sees_half_a_commit),
		cmocka_unit_test(test_counter_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
