/* SPDX-License-Identifier: Apache-2.0 */
/* The definition log: interning, dense ids, full, epochs, going on after a restart, damage. */
#include "symbolizer/define.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "shm/segment.h"

#define LOG_BYTES 65536

static struct segment logs[2];

static int setup(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(
		    segment_create(&logs[i], "log", SYMBOL_LOG_HEADER_BYTES + LOG_BYTES), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		segment_close(&logs[i]);
	return 0;
}

static void open_logs(struct define *d)
{
	assert_int_equal(define_open(d, logs[0].rw, logs[1].rw), 0);
}

static uint32_t text(struct define *d, const char *s)
{
	return define_string(d, s, strlen(s));
}

static uint32_t numbered(struct define *d, int i)
{
	char s[32];

	snprintf(s, sizeof(s), "string %d", i);
	return text(d, s);
}

static uint32_t function(struct define *d, uint32_t name, uint32_t system_name)
{
	struct symbol_function function = {.name = name, .system_name = system_name};

	return define_function(d, &function);
}

static uint32_t location(struct define *d, uint32_t function)
{
	struct symbol_location location = {.mapping = 0, .address = 5, .lines_n = 2};
	struct symbol_line lines[] = {{function, 7}, {1, 9}};

	return define_location(d, &location, lines);
}

static void test_interning(void **state)
{
	struct symbol_process process = {.pid = 1, .start_ns = 9};
	struct symbol_mapping mapping = {.file = 1};
	struct define d;

	(void)state;
	open_logs(&d);
	assert_int_equal(d.epoch, 1);
	assert_int_equal(text(&d, "a"), 1);
	assert_int_equal(text(&d, "b"), 2);
	assert_int_equal(text(&d, "a"), 1);
	assert_int_equal(text(&d, ""), 3);
	assert_int_equal(function(&d, 1, 2), 1);
	assert_int_equal(function(&d, 2, 1), 2);
	assert_int_equal(function(&d, 1, 2), 1);
	assert_int_equal(define_mapping(&d, &mapping), 1);
	assert_int_equal(define_mapping(&d, &mapping), 1);
	assert_int_equal(location(&d, 1), 1);
	assert_int_equal(location(&d, 2), 2);
	assert_int_equal(location(&d, 1), 1);
	assert_int_equal(define_stack(&d, NULL, 0), 1); /* empty, and not 0 */
	assert_int_equal(define_stack(&d, (uint32_t[]){1, 2}, 2), 2);
	assert_int_equal(define_stack(&d, (uint32_t[]){2, 1}, 2), 3);
	assert_int_equal(define_stack(&d, (uint32_t[]){1}, 1), 4);
	assert_int_equal(define_stack(&d, (uint32_t[]){1, 2}, 2), 2);
	assert_int_equal(define_process(&d, &process), 1);
	process.pid = 2;
	assert_int_equal(define_process(&d, &process), 2);
	/* Nobody sees it before it is published. */
	assert_int_equal(atomic_load(&d.log->len_bytes), 0);
	define_publish(&d);
	assert_int_equal(atomic_load(&d.log->len_bytes), d.len_bytes);
	define_close(&d);
}

static void test_long_string(void **state)
{
	static char s[2 * SYMBOL_STRING_BYTES_MAX];
	struct define d;

	(void)state;
	memset(s, 'x', sizeof(s));
	open_logs(&d);
	assert_int_equal(define_string(&d, s, sizeof(s)), 1);
	assert_int_equal(define_string(&d, s, SYMBOL_STRING_BYTES_MAX), 1);
	assert_int_equal(define_string(&d, s, SYMBOL_STRING_BYTES_MAX - 1), 2);
	define_close(&d);
}

static void test_full_and_epochs(void **state)
{
	struct define d;
	uint32_t id;
	int n = 0;

	(void)state;
	open_logs(&d);
	while ((id = numbered(&d, n))) {
		assert_int_equal(id, ++n);
		assert_true(d.len_bytes <= LOG_BYTES);
	}
	assert_true(n > 1000);
	assert_int_equal(numbered(&d, 17), 18); /* what is there can still be used */
	define_publish(&d);
	define_next_epoch(&d);
	assert_int_equal(d.epoch, 2);
	assert_ptr_equal(d.log, d.logs[0]);
	assert_int_equal(d.log->epoch, 2);
	assert_int_equal(d.logs[1]->epoch, 1); /* the old one stays readable */
	assert_int_equal(numbered(&d, 17), 1);
	define_next_epoch(&d);
	assert_int_equal(d.logs[1]->epoch, 3);
	assert_int_equal(atomic_load(&d.logs[1]->len_bytes), 0);
	define_close(&d);
}

static void test_restart(void **state)
{
	struct define d;

	(void)state;
	open_logs(&d);
	define_next_epoch(&d);
	for (int i = 0; i < 100; i++)
		assert_int_equal(numbered(&d, i), i + 1);
	define_publish(&d);
	assert_int_equal(numbered(&d, 100), 101); /* never published: it did not happen */
	define_close(&d);

	open_logs(&d);
	assert_int_equal(d.epoch, 2);
	assert_int_equal(numbered(&d, 55), 56); /* remembered */
	assert_int_equal(text(&d, "new"), 101);
	assert_int_equal(function(&d, 1, 1), 1);
	define_publish(&d);
	assert_int_equal(d.log->next_id[SYMBOL_STRING], 102);
	define_close(&d);

	open_logs(&d);
	assert_int_equal(text(&d, "new"), 101);
	assert_int_equal(function(&d, 2, 2), 2);
	define_close(&d);
}

/* What another instance left may be anything: it is not gone on with, and never read beyond. */
static void test_damage(void **state)
{
	struct define d;

	(void)state;
	for (int kind = 0; kind < 5; kind++) {
		struct symbol_header *first;

		open_logs(&d);
		define_next_epoch(&d);
		for (int i = 0; i < 10; i++)
			numbered(&d, i);
		define_publish(&d);
		first = (void *)((char *)d.log + SYMBOL_LOG_HEADER_BYTES);
		if (kind == 0)
			atomic_store(&d.log->len_bytes, LOG_BYTES + 8);
		else if (kind == 1)
			first->len_bytes = 0;
		else if (kind == 2)
			first->len_bytes = 0xfffffff8;
		else if (kind == 3)
			first->kind = 77;
		else
			first->id = 5;
		define_close(&d);
		open_logs(&d);
		assert_true(d.damaged);
		assert_int_equal(text(&d, "x"), 0);
		define_next_epoch(&d);
		assert_false(d.damaged);
		assert_int_equal(text(&d, "x"), 1);
		define_close(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_interning, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_long_string, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_full_and_epochs, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
