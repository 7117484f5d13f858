/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exporter/spool.c: after every commit each sample is in exactly one class, whatever instruction
 * the exporter is killed at.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "exporter/spool.h"

#define SPOOL_SIZE  (SEGMENT_PAGE + 65536)
#define KILLS	    200
#define BATCHES_MAX (1u << 20)

struct fixture {
	struct segment ledger_segment, spool_segment;
	struct ledger_writer ledger;
	struct spool spool;
};

static void fixture_open(struct fixture *f)
{
	assert_int_equal(ledger_open(&f->ledger, f->ledger_segment.rw), 0);
	assert_int_equal(spool_open(&f->spool, f->spool_segment.rw, &f->ledger, DESTINATION_REMOTE),
			 0);
}

static void fixture_close(struct fixture *f)
{
	spool_close(&f->spool);
	munmap(f->ledger.shared, LEDGER_BYTES);
}

static void fixture_make(struct fixture *f)
{
	assert_int_equal(ledger_create(&f->ledger_segment, "ledger"), 0);
	assert_int_equal(segment_create(&f->spool_segment, "spool", SPOOL_SIZE), 0);
	fixture_open(f);
}

static void fixture_end(struct fixture *f)
{
	fixture_close(f);
	segment_close(&f->ledger_segment);
	segment_close(&f->spool_segment);
}

static uint64_t value(struct fixture *f, enum counter counter)
{
	return f->ledger.now.counter[counter];
}

static uint64_t books(struct fixture *f)
{
	return value(f, C_remote_acked) + value(f, C_remote_lost_spool_full) +
	       value(f, C_remote_lost_rejected) + value(f, C_remote_in_doubt) +
	       value(f, C_remote_waiting);
}

/* The request of a batch: bytes that tell whether they are still those of this batch. */
static void put(struct fixture *f, size_t len, uint64_t samples)
{
	static uint8_t request[65536];
	uint64_t batch = f->ledger.now.position[POSITION_BATCH]++;

	memset(request, (int)(batch * 31 + 7), len);
	/* A dropped entry commits by itself, so the number of the batch must not be in it yet. */
	f->ledger.now.position[POSITION_BATCH] = batch;
	spool_make_room(&f->spool, len);
	spool_put(&f->spool, request, len, samples, 2, batch);
	f->ledger.now.position[POSITION_BATCH] = batch + 1;
	f->ledger.now.position[POSITION_TAIL] += samples; /* pushed so far */
	ledger_commit(&f->ledger);
}

static void check_entry(const struct spool_entry *entry)
{
	for (uint32_t i = 0; i < entry->len_bytes; i++)
		assert_int_equal(entry->request[i], (uint8_t)(entry->batch * 31 + 7));
}

static uint32_t check_entries(const struct spool *spool)
{
	uint32_t n = 0;

	for (const struct spool_entry *e = spool_first(spool); e; e = spool_next(spool, e), n++)
		check_entry(e);
	return n;
}

static void test_ends(void **state)
{
	struct fixture f;

	(void)state;
	fixture_make(&f);
	assert_null(spool_first(&f.spool));
	for (int i = 0; i < 5; i++)
		put(&f, 100, 10);
	assert_int_equal(value(&f, C_remote_waiting), 50);
	spool_begin(&f.spool);
	spool_end(&f.spool, SPOOL_ACKED, 0);
	spool_begin(&f.spool);
	spool_end(&f.spool, SPOOL_ACKED, 1); /* one of two profiles refused */
	spool_begin(&f.spool);
	spool_end(&f.spool, SPOOL_REJECTED, 0);
	assert_int_equal(value(&f, C_remote_acked), 15);
	assert_int_equal(value(&f, C_remote_lost_rejected), 15);
	assert_int_equal(value(&f, C_remote_waiting), 20);
	spool_begin(&f.spool);
	spool_end(&f.spool, SPOOL_RETRY, 0);
	assert_int_equal(value(&f, C_remote_waiting), 20);
	assert_int_equal(value(&f, C_remote_retries), 0);
	spool_begin(&f.spool);
	assert_int_equal(value(&f, C_remote_retries), 1);
	spool_end(&f.spool, SPOOL_UNCLEAR, 0);
	assert_int_equal(value(&f, C_remote_in_doubt), 10);
	assert_int_equal(value(&f, C_remote_waiting), 10);
	/* Refused now, but perhaps taken before: in doubt for good. */
	spool_begin(&f.spool);
	spool_end(&f.spool, SPOOL_REJECTED, 0);
	assert_int_equal(value(&f, C_remote_in_doubt), 10);
	assert_int_equal(value(&f, C_remote_lost_rejected), 15);
	spool_begin(&f.spool);
	spool_end(&f.spool, SPOOL_UNCLEAR, 0);
	spool_begin(&f.spool);
	spool_end(&f.spool, SPOOL_ACKED, 0);
	assert_int_equal(value(&f, C_remote_acked), 25);
	assert_int_equal(value(&f, C_remote_in_doubt), 10);
	assert_int_equal(books(&f), 50);
	assert_null(spool_first(&f.spool));
	fixture_end(&f);
}

static void test_full(void **state)
{
	struct fixture f;

	(void)state;
	fixture_make(&f);
	for (int i = 0; i < 1000; i++) {
		put(&f, 1 + (size_t)(i * 37 % 3000), 3);
		check_entries(&f.spool);
		assert_int_equal(books(&f), 3 * (i + 1));
	}
	/* The oldest went: what is there ends with the newest. */
	assert_true(value(&f, C_remote_lost_spool_full) > 2000);
	assert_in_range(check_entries(&f.spool), 20, 200);
	/* One that can never fit. */
	assert_false(spool_make_room(&f.spool, 70000));
	spool_put(&f.spool, "", 70000, 5, 1, 0);
	assert_int_equal(books(&f), 3005);
	fixture_end(&f);
}

static void test_full_in_flight(void **state)
{
	struct fixture f;
	uint64_t first;

	(void)state;
	fixture_make(&f);
	for (int i = 0; i < 6; i++)
		put(&f, 10000, 1);
	first = spool_first(&f.spool)->batch;
	assert_int_equal(value(&f, C_remote_lost_spool_full), 0);
	spool_begin(&f.spool);
	put(&f, 10000, 1);
	/* The one in flight stays, the new one is not taken. */
	assert_int_equal(spool_first(&f.spool)->batch, first);
	assert_int_equal(value(&f, C_remote_lost_spool_full), 1);
	spool_end(&f.spool, SPOOL_RETRY, 0);
	put(&f, 10000, 1);
	assert_int_equal(spool_first(&f.spool)->batch, first + 1);
	assert_int_equal(value(&f, C_remote_lost_spool_full), 2);
	assert_int_equal(books(&f), 8);
	fixture_end(&f);
}

static void test_reopen(void **state)
{
	struct fixture f;

	(void)state;
	fixture_make(&f);
	for (int i = 0; i < 4; i++)
		put(&f, 500, 7);
	spool_begin(&f.spool);
	for (int i = 0; i < 3; i++) { /* killed again and again: doubted once */
		fixture_close(&f);
		fixture_open(&f);
		assert_int_equal(check_entries(&f.spool), 4);
		assert_int_equal(value(&f, C_remote_in_doubt), 7);
		assert_int_equal(value(&f, C_remote_waiting), 21);
	}
	spool_begin(&f.spool);
	spool_end(&f.spool, SPOOL_ACKED, 0);
	assert_int_equal(value(&f, C_remote_in_doubt), 0);
	assert_int_equal(value(&f, C_remote_acked), 7);
	/* The segment is lost, the ledger is not: what it held is lost, and said so. */
	fixture_close(&f);
	segment_close(&f.spool_segment);
	assert_int_equal(segment_create(&f.spool_segment, "spool", SPOOL_SIZE), 0);
	fixture_open(&f);
	assert_int_equal(value(&f, C_remote_lost_spool_full), 21);
	assert_int_equal(value(&f, C_remote_waiting), 0);
	assert_int_equal(books(&f), 28);
	put(&f, 500, 1);
	assert_int_equal(check_entries(&f.spool), 1);
	fixture_end(&f);
}

/* What the receiver has, by batch; written by the child before it can know of an answer. */
static _Atomic uint32_t *received;

static void child_send(struct fixture *f)
{
	const struct spool_entry *entry = spool_first(&f->spool);
	int dice = rand() % 10;

	spool_begin(&f->spool);
	check_entry(entry);
	if (dice < 8)
		atomic_store(&received[entry->batch], (uint32_t)entry->samples);
	spool_end(&f->spool,
		  dice < 6   ? SPOOL_ACKED
		  : dice < 8 ? SPOOL_UNCLEAR
		  : dice < 9 ? SPOOL_RETRY
			     : SPOOL_REJECTED,
		  0);
}

static void child_main(struct fixture *f, unsigned seed)
{
	srand(seed);
	fixture_open(f);
	while (f->ledger.now.position[POSITION_BATCH] < BATCHES_MAX - 1) {
		/* Sometimes more comes than goes, so that it wraps and gets full. */
		if (rand() % (seed % 2 ? 2 : 8) || !spool_first(&f->spool))
			put(f, 1 + (size_t)(rand() % 4000), 1 + (uint64_t)(rand() % 9));
		else
			child_send(f);
	}
	_exit(0);
}

static void sleep_us(unsigned us)
{
	struct timespec t = {0, us * 1000L};

	nanosleep(&t, NULL);
}

static void kill_one(struct fixture *f, unsigned seed)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid)
		child_main(f, seed);
	sleep_us(300 + (unsigned)rand() % 3000);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_kills(void **state)
{
	struct fixture f;
	uint64_t arrived, last = 0;

	(void)state;
	received = mmap(NULL, BATCHES_MAX * sizeof(*received), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(received != MAP_FAILED);
	fixture_make(&f);
	srand(42);
	for (unsigned i = 0; i < KILLS; i++) {
		fixture_close(&f);
		kill_one(&f, i);
		fixture_open(&f);
		check_entries(&f.spool);
		assert_int_equal(books(&f), f.ledger.now.position[POSITION_TAIL]);
		arrived = 0;
		for (uint64_t b = 0; b < f.ledger.now.position[POSITION_BATCH]; b++)
			arrived += received[b];
		/* Everything acknowledged has arrived; what else has arrived is in doubt. */
		assert_in_range(arrived, value(&f, C_remote_acked),
				value(&f, C_remote_acked) + value(&f, C_remote_in_doubt));
	}
	last = f.ledger.now.position[POSITION_BATCH];
	assert_true(last > KILLS && value(&f, C_remote_lost_spool_full) > 0 &&
		    value(&f, C_remote_acked) > 0);
	fixture_end(&f);
	munmap((void *)received, BATCHES_MAX * sizeof(*received));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ends),	   cmocka_unit_test(test_full),
	    cmocka_unit_test(test_full_in_flight), cmocka_unit_test(test_reopen),
	    cmocka_unit_test(test_kills),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
