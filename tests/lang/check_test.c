/* SPDX-License-Identifier: Apache-2.0 */
/* What all tests of languages stand on: workloads that start, stacks that are told right from
 * wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lang/check.h"

static struct check_chain chain = {
    .n = 3,
    .frames = {{"<module>", "app.py", 30, 1, 31},
	       {"outer", "app.py", 12, 10, 14},
	       {"inner", "lib/part.py", 0, 3, 8}},
};
static struct live_stack stack;

static void push(enum live_kind kind, const char *name, const char *file, uint32_t line)
{
	struct live_frame *frame;

	/* Told from the root on, kept from the leaf on. */
	memmove(stack.frames + 1, stack.frames, stack.frames_n * sizeof(*stack.frames));
	frame = memset(stack.frames, 0, sizeof(*frame));
	stack.frames_n++;
	frame->kind = kind;
	snprintf(frame->name, sizeof(frame->name), "%s", name);
	snprintf(frame->file, sizeof(frame->file), "%s", file);
	frame->line = line;
}

static void push_callers(void)
{
	stack.frames_n = 0;
	push(LIVE_NATIVE, "main", "/usr/bin/x", 0);
	push(LIVE_SCRIPT, "<module>", "/srv/app.py", 30);
	push(LIVE_NATIVE, "loop", "/usr/bin/x", 0);
	push(LIVE_SCRIPT, "outer", "/srv/app.py", 12);
}

static void test_a_whole_chain(void **state)
{
	(void)state;
	push_callers();
	push(LIVE_SCRIPT, "inner", "/srv/lib/part.py", 5);
	push(LIVE_NATIVE, "strlen", "/lib/libc.so.6", 0);
	assert_int_equal(check_stack(&chain, &stack), CHECK_FULL);
	push(LIVE_SCRIPT, "more", "/srv/app.py", 5);
	assert_int_equal(check_stack(&chain, &stack), CHECK_WRONG);
}

static void test_a_shorter_chain(void **state)
{
	(void)state;
	push_callers();
	assert_int_equal(check_stack(&chain, &stack), CHECK_PREFIX);
	/* The leaf may be anywhere in its function, and nowhere else. */
	stack.frames[0].line = 14;
	assert_int_equal(check_stack(&chain, &stack), CHECK_PREFIX);
	stack.frames[0].line = 15;
	assert_int_equal(check_stack(&chain, &stack), CHECK_WRONG);
	stack.frames_n = 0;
	assert_int_equal(check_stack(&chain, &stack), CHECK_PREFIX);
}

static void expect_wrong(enum live_kind kind, const char *name, const char *file, uint32_t line)
{
	push_callers();
	push(kind, name, file, line);
	assert_int_equal(check_stack(&chain, &stack), CHECK_WRONG);
}

static void test_what_is_wrong(void **state)
{
	(void)state;
	expect_wrong(LIVE_SCRIPT, "inner", "/srv/lib/other.py", 5);
	expect_wrong(LIVE_SCRIPT, "inner", "/srv/lib/a_part.py", 5);
	expect_wrong(LIVE_SCRIPT, "outer", "/srv/lib/part.py", 5);
	expect_wrong(LIVE_SCRIPT, "inner", "/srv/lib/part.py", 9);
	expect_wrong(LIVE_SCRIPT, "inner", "", 5);
	expect_wrong(LIVE_UNNAMED, "inner", "/srv/lib/part.py", 5);
	/* A caller has to be at its very call. */
	push_callers();
	stack.frames[0].line = 13;
	push(LIVE_SCRIPT, "inner", "/srv/lib/part.py", 5);
	assert_int_equal(check_stack(&chain, &stack), CHECK_WRONG);
}

static void test_a_workload_tells_its_chain(void **state)
{
	char *const argv[] = {"/bin/sh", "-c",
			      "printf 'frame\\tA::b\\tx/y.sh\\t7\\t5\\t9\\nother\\nready\\n';"
			      "while :; do :; done",
			      NULL};
	char *const silent[] = {"/bin/sh", "-c", "echo not yet", NULL};
	struct check_workload workload;
	struct check_result result;

	(void)state;
	assert_true(check_start(&workload, argv));
	assert_int_equal(workload.chain.n, 1);
	assert_string_equal(workload.chain.frames[0].name, "A::b");
	assert_string_equal(workload.chain.frames[0].file, "x/y.sh");
	assert_int_equal(workload.chain.frames[0].line, 7);
	assert_int_equal(workload.chain.frames[0].first, 5);
	assert_int_equal(workload.chain.frames[0].last, 9);
	/* A shell has no frames of scripts: each is shorter, and natives are there. */
	result = check_run(workload.pid, &workload.chain,
			   (struct check_options){.samples = 5, .label = "sh"});
	assert_int_equal(result.samples, 5);
	assert_int_equal(result.count[CHECK_PREFIX], 5);
	assert_false(check_passes(&result));
	check_stop(&workload);
	assert_false(check_start(&workload, silent));
}

static void test_what_passes(void **state)
{
	struct check_result result = {.samples = 60, .count = {59, 1, 0}};

	(void)state;
	assert_true(check_passes(&result));
	result = (struct check_result){.samples = 60, .count = {59, 0, 1}};
	assert_false(check_passes(&result));
	result = (struct check_result){.samples = 300, .count = {295, 5, 0}};
	assert_false(check_passes(&result));
	result = (struct check_result){.samples = 0};
	assert_false(check_passes(&result));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_whole_chain), cmocka_unit_test(test_a_shorter_chain),
	    cmocka_unit_test(test_what_is_wrong), cmocka_unit_test(test_a_workload_tells_its_chain),
	    cmocka_unit_test(test_what_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
