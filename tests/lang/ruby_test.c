/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ruby's frames on a process that lives (bench/workloads/ruby/chain.rb), by what Ruby itself says
 * of them. RUBY=PROGRAM takes another one, ROOT=FOLDER that of another system's root.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lang/check.h"
#include "tests/lang/livefile.h"

#define WORKLOAD     "bench/workloads/ruby"
#define SAMPLES	     25
#define SETTLING_MAX 500

/* Functions are made machine code when they are called first: the chain's are called once. */
#define JIT_ALL "--yjit-call-threshold=1"

static struct {
	const char *program, *root, *samples;
} given;

static bool start(struct check_workload *workload, const char *jit, const char *mode)
{
	const char *program = given.program ? given.program : "ruby";
	char *argv[8];
	int n = 0;

	if (given.root) {
		argv[n++] = "chroot";
		argv[n++] = (char *)given.root;
	}
	argv[n++] = (char *)program;
	if (jit)
		argv[n++] = (char *)jit;
	argv[n++] = given.root ? "/tmp/sconce-" WORKLOAD "/chain.rb" : WORKLOAD "/chain.rb";
	argv[n++] = (char *)mode;
	argv[n] = NULL;
	return check_start(workload, argv);
}

/* The thread that has a name; 0: none has. */
static pid_t find_thread(pid_t pid, const char *name)
{
	char path[64], comm[32] = "";
	pid_t tids[16];
	uint32_t n = live_threads(pid, tids, 16);

	for (uint32_t i = 0; i < n; i++) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tids[i]);
		file = fopen(path, "r");
		if (file && fgets(comm, sizeof(comm), file) &&
		    strcspn(comm, "\n") == strlen(name) && strncmp(comm, name, strlen(name)) == 0) {
			fclose(file);
			return tids[i];
		}
		if (file)
			fclose(file);
	}
	return 0;
}

static bool has_frame(const struct live_stack *stack, const char *name)
{
	for (uint32_t i = 0; i < stack->frames_n; i++)
		if (strcmp(stack->frames[i].name, name) == 0)
			return true;
	return false;
}

/* Until it has returned from telling that it is ready. */
static void settle(pid_t pid, pid_t tid)
{
	struct live *live = live_open(pid);
	const struct live_stack *stack;
	uint64_t seed = 1;

	assert_non_null(live);
	for (int i = 0; i < SETTLING_MAX; i++) {
		stack = live_sample(live, tid ? tid : pid);
		assert_non_null(stack);
		if (!has_frame(stack, "Leaf.tell"))
			break;
		live_pause(&seed, 20000);
	}
	live_close(live);
}

static struct check_result sample(const char *jit, const char *mode, const char *thread, bool late)
{
	struct check_options options = {.samples = SAMPLES, .late = late};
	struct check_workload workload;
	struct check_result result;
	char label[64];

	if (given.samples)
		options.samples = (uint32_t)atoi(given.samples);
	snprintf(label, sizeof(label), "%s %s%s", mode, jit ? jit : "", late ? ", names late" : "");
	options.label = label;
	assert_true(start(&workload, jit, mode));
	if (thread) {
		options.tid = find_thread(workload.pid, thread);
		assert_int_not_equal(options.tid, 0);
	}
	settle(workload.pid, options.tid);
	result = check_run(workload.pid, &workload.chain, options);
	check_stop(&workload);
	return result;
}

/* False, and said so: there is none, or it has no such JIT. */
static bool has(const char *jit)
{
	const char *code =
	    jit ? "exit(RubyVM.const_defined?(:YJIT) && RubyVM::YJIT.enabled?)" : "0";
	char command[512];

	snprintf(command, sizeof(command), "%s%s %s --disable-gems %s -e '%s' >/dev/null 2>&1",
		 given.root ? "chroot " : "", given.root ? given.root : "",
		 given.program ? given.program : "ruby", jit ? jit : "", code);
	if (system(command) == 0)
		return true;
	print_message("skipped: no ruby here, or none with %s\n", jit ? jit : "anything");
	return false;
}

static void expect(const char *jit, const char *mode, const char *thread, bool late)
{
	struct check_result result;

	if (!has(jit))
		skip();
	result = sample(jit, mode, thread, late);
	assert_true(check_passes(&result));
}

static void test_a_chain(void **state)
{
	(void)state;
	expect(NULL, "chain", NULL, false);
}

static void test_names_of_a_process_that_goes_on(void **state)
{
	(void)state;
	expect(NULL, "chain", NULL, true);
}

/* Is it of a release in which all threads share one context? Then only who has the lock is walked.
 */
static bool has_one_context(void)
{
	char command[512];

	snprintf(command, sizeof(command), "%s%s %s --disable-gems -e 'exit(RUBY_VERSION < \"3\")'",
		 given.root ? "chroot " : "", given.root ? given.root : "",
		 given.program ? given.program : "ruby");
	return system(command) == 0;
}

/* The first thread waits for another one. What that one does must not be shown as its own. */
static void test_a_thread_without_the_lock(void **state)
{
	struct check_workload workload;
	const struct live_stack *stack;
	struct live *live;

	(void)state;
	if (!has(NULL))
		skip();
	assert_true(start(&workload, NULL, "thread"));
	live = live_open(workload.pid);
	assert_non_null(live);
	stack = live_sample(live, workload.pid);
	assert_non_null(stack);
	assert_false(has_frame(stack, "Leaf.turn"));
	live_close(live);
	check_stop(&workload);
}

/* Of three that want to run: two have to wait for the lock. */
static void test_a_thread_among_others(void **state)
{
	(void)state;
	if (has(NULL) && has_one_context()) {
		print_message("skipped: stopped by ptrace, a thread mostly is without the lock\n");
		skip();
	}
	expect(NULL, "thread", "chain", false);
}

static void test_a_fiber(void **state)
{
	(void)state;
	expect(NULL, "fiber", NULL, false);
}

/* Frames come and go: a stack may be shorter than the chain, but is not to be wrong. */
static void expect_calls(const char *jit)
{
	struct check_result result;

	if (!has(jit))
		skip();
	result = sample(jit, "calls", NULL, false);
	assert_int_not_equal(result.samples, 0);
	assert_true(result.count[CHECK_WRONG] <= result.samples / 50);
	assert_true(result.count[CHECK_FULL] >= result.samples / 4);
}

static void test_calls(void **state)
{
	(void)state;
	expect_calls(NULL);
}

static void test_yjit(void **state)
{
	(void)state;
	expect(JIT_ALL, "chain", NULL, false);
}

static void test_calls_yjit(void **state)
{
	(void)state;
	expect_calls(JIT_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_chain),
	    cmocka_unit_test(test_names_of_a_process_that_goes_on),
	    cmocka_unit_test(test_a_thread_among_others),
	    cmocka_unit_test(test_a_thread_without_the_lock),
	    cmocka_unit_test(test_a_fiber),
	    cmocka_unit_test(test_calls),
	    cmocka_unit_test(test_yjit),
	    cmocka_unit_test(test_calls_yjit),
	};

	given.program = getenv("RUBY");
	given.root = getenv("ROOT");
	given.samples = getenv("SAMPLES");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
