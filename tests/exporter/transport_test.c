/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exporter/transport.c against a receiver that answers, is busy, refuses, hangs, hangs up, is not
 * there: what is counted as arrived and as lost is what arrived and was lost.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "exporter/transport.h"
#include "profile/otlp.h"
#include "supervisor/child.h"
#include "tests/exporter/server.h"
#include "tests/profile/build.h"

#define MS 1000000ull

struct fixture {
	struct segment ledger_segment, spool_segment;
	struct ledger_writer ledger;
	struct spool spools[DESTINATION_COUNT];
	struct config config;
	struct transport transport;
	struct server server;
	uint64_t batch;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	log_init(ROLE_EXPORTER, LOG_ERROR);
	config_defaults(&f->config, MODE_RUN);
	assert_int_equal(ledger_create(&f->ledger_segment, "ledger"), 0);
	assert_int_equal(segment_create(&f->spool_segment, "spool", 1 << 20), 0);
	assert_int_equal(ledger_open(&f->ledger, f->ledger_segment.rw), 0);
	assert_int_equal(spool_open(&f->spools[DESTINATION_REMOTE], f->spool_segment.rw, &f->ledger,
				    DESTINATION_REMOTE),
			 0);
	server_start(&f->server, NULL);
	snprintf(f->config.remote.url, sizeof(f->config.remote.url), "http://127.0.0.1:%d%s",
		 f->server.port, OTLP_PATH);
	strcpy(f->config.remote.headers, "x-scope=a%20b, x-other=1%0d%0aX-Bad: 2");
	f->config.remote.timeout_ms = 400;
	assert_int_equal(transport_open(&f->transport, &f->config, f->spools), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	transport_close(&f->transport);
	if (!f->server.stop)
		server_stop(&f->server);
	free(f->server.ids);
	spool_close(&f->spools[DESTINATION_REMOTE]);
	munmap(f->ledger.shared, LEDGER_BYTES);
	segment_close(&f->ledger_segment);
	segment_close(&f->spool_segment);
	free(f);
	return 0;
}

static void push(struct fixture *f)
{
	struct otlp_encode_options options = {.instance = {9}, .batch = f->batch++};
	struct profile *p = build_profile();
	uint8_t *bytes;
	size_t len;

	assert_int_equal(otlp_encode(p, &options, &bytes, &len), 0);
	assert_true(spool_make_room(&f->spools[DESTINATION_REMOTE], len));
	spool_put(&f->spools[DESTINATION_REMOTE], bytes, len, BUILD_TOTAL, 3, options.batch);
	ledger_commit(&f->ledger);
	free(bytes);
	profile_free(p);
}

static uint64_t value(struct fixture *f, enum counter counter)
{
	return f->ledger.now.counter[counter];
}

static void check_books(struct fixture *f)
{
	assert_int_equal(value(f, C_remote_acked) + value(f, C_remote_lost_spool_full) +
			     value(f, C_remote_lost_rejected) + value(f, C_remote_in_doubt) +
			     value(f, C_remote_waiting),
			 f->batch * BUILD_TOTAL);
	assert_int_equal(f->server.undecodable, 0);
}

static void run_ms(struct fixture *f, uint64_t ms)
{
	uint64_t end = child_now_ns() + ms * MS;

	while (child_now_ns() < end)
		transport_step(&f->transport, 10);
	check_books(f);
}

static bool run_until_idle(struct fixture *f, uint64_t ms)
{
	uint64_t end = child_now_ns() + ms * MS;

	while (child_now_ns() < end && !transport_idle(&f->transport))
		transport_step(&f->transport, 10);
	check_books(f);
	return transport_idle(&f->transport);
}

static void test_accepted(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 20; i++)
		push(f);
	assert_true(run_until_idle(f, 5000));
	assert_int_equal(value(f, C_remote_acked), 20 * BUILD_TOTAL);
	assert_int_equal(f->server.samples, 20 * BUILD_TOTAL);
	assert_int_equal(f->server.requests, 20);
	assert_non_null(strstr(f->server.headers, "POST " OTLP_PATH " HTTP/1.1\r\n"));
	assert_non_null(strstr(f->server.headers, "Content-Type: application/x-protobuf\r\n"));
	assert_non_null(strstr(f->server.headers, "Content-Encoding: gzip\r\n"));
	assert_non_null(strstr(f->server.headers,
			       "User-Agent: sconce/" SCONCE_VERSION " OTel-OTLP-Exporter-C/"));
	assert_non_null(strstr(f->server.headers, "x-scope: a b\r\n"));
	assert_non_null(strstr(f->server.headers, "x-other: 1\r\n"));
	assert_null(strstr(f->server.headers, "X-Bad"));
}

static void test_busy(void **state)
{
	struct fixture *f = *state;

	f->server.mode = SERVER_BUSY;
	push(f);
	run_ms(f, 600);
	assert_int_equal(f->server.requests, 1); /* Retry-After: 1 is kept */
	assert_int_equal(value(f, C_remote_waiting), BUILD_TOTAL);
	run_ms(f, 800);
	assert_int_equal(f->server.requests, 2);
	f->server.mode = SERVER_OK;
	assert_true(run_until_idle(f, 3000));
	assert_int_equal(value(f, C_remote_acked), BUILD_TOTAL);
	assert_int_equal(value(f, C_remote_retries), f->server.requests - 1);
	assert_int_equal(f->server.samples, BUILD_TOTAL);
}

static void test_refused(void **state)
{
	struct fixture *f = *state;

	f->server.mode = SERVER_REFUSE;
	push(f);
	push(f);
	assert_true(run_until_idle(f, 3000));
	assert_int_equal(value(f, C_remote_lost_rejected), 2 * BUILD_TOTAL);
	assert_int_equal(f->server.requests, 2);
}

static void test_partial(void **state)
{
	struct fixture *f = *state;

	f->server.mode = SERVER_PARTIAL;
	push(f);
	assert_true(run_until_idle(f, 3000));
	assert_int_equal(f->server.requests, 1);
	assert_int_equal(value(f, C_remote_lost_rejected), (BUILD_TOTAL + 2) / 3);
}

/* Taken, but no answer: in doubt, sent again, and known by its profile ids. */
static void test_no_answer(void **state, enum server_mode mode)
{
	struct fixture *f = *state;

	f->server.mode = mode;
	push(f);
	push(f);
	run_ms(f, 700);
	assert_true(f->server.requests >= 1);
	f->server.mode = SERVER_OK;
	assert_int_equal(value(f, C_remote_acked), 0);
	assert_int_equal(value(f, C_remote_in_doubt), BUILD_TOTAL);
	assert_true(run_until_idle(f, 10000));
	assert_int_equal(value(f, C_remote_acked), 2 * BUILD_TOTAL);
	assert_int_equal(value(f, C_remote_in_doubt), 0);
	assert_int_equal(f->server.samples, 2 * BUILD_TOTAL);
	assert_true(f->server.duplicates >= BUILD_TOTAL);
}

static void test_hang(void **state)
{
	test_no_answer(state, SERVER_HANG);
}

static void test_close(void **state)
{
	test_no_answer(state, SERVER_CLOSE);
}

static void test_long_answer(void **state)
{
	struct fixture *f = *state;

	f->server.mode = SERVER_LONG;
	push(f);
	assert_true(run_until_idle(f, 3000));
	assert_int_equal(value(f, C_remote_in_doubt), BUILD_TOTAL);
	assert_int_equal(f->server.requests, 1);
}

static void test_dead_then_alive(void **state)
{
	struct fixture *f = *state;

	server_stop(&f->server);
	push(f);
	run_ms(f, 1500);
	push(f);
	assert_int_equal(value(f, C_remote_waiting), 2 * BUILD_TOTAL);
	assert_int_equal(value(f, C_remote_in_doubt), 0);
	server_start(&f->server, NULL); /* on the same port */
	assert_true(run_until_idle(f, 6000));
	assert_int_equal(value(f, C_remote_acked), 2 * BUILD_TOTAL);
	assert_int_equal(f->server.samples, 2 * BUILD_TOTAL);
	assert_int_equal(f->server.duplicates, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_accepted),    TEST(test_busy),
	    TEST(test_refused),	    TEST(test_partial),
	    TEST(test_hang),	    TEST(test_close),
	    TEST(test_long_answer), TEST(test_dead_then_alive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
