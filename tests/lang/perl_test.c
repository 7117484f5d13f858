/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perl's stacks, on bench/workloads/perl:
 *
 *   perl_test [-n SAMPLES] [-f CHAIN.PL] [COMMAND ...]	 COMMAND: perl, or chroot ROOT perl
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolizer/lang/facts.h"
#include "tests/lang/check.h"
#include "tests/lang/fold.h"
#include "tests/lang/livefile.h"

#define ARGS_MAX    12
#define THREADS_MAX 16
#define LOOP	    "Perl_runops_standard"

static struct {
	char *command[ARGS_MAX];
	int command_n;
	char *script;
	uint32_t samples;
} options = {{"perl"}, 1, "bench/workloads/perl/chain.pl", 60};

static struct check_workload workload;

static bool is_saying(const struct live_stack *stack)
{
	for (uint32_t i = 0; stack && i < stack->frames_n; i++)
		if (!strcmp(stack->frames[i].name, "Shop::Report::chain") ||
		    !strcmp(stack->frames[i].name, "Shop::Report::places"))
			return true;
	return false;
}

/* When it has said that it is ready it still is in what says so. */
static void wait_for_loop(pid_t tid)
{
	struct live *live = live_open(workload.pid);

	assert_non_null(live);
	for (int i = 0; i < 10000 && is_saying(live_sample(live, tid)); i++)
		usleep(1000);
	live_close(live);
}

static void start(char *mode)
{
	char *argv[ARGS_MAX + 3] = {0};

	memcpy(argv, options.command, sizeof(options.command));
	argv[options.command_n] = options.script;
	argv[options.command_n + 1] = mode;
	if (!check_program(argv[0])) {
		print_message("no %s here\n", argv[0]);
		skip();
	}
	assert_true(check_start(&workload, argv));
	wait_for_loop(workload.pid);
}

static int stop(void **state)
{
	(void)state;
	check_stop(&workload);
	return 0;
}

static void expect_chain(char *mode, uint32_t frames)
{
	struct check_result result;

	start(mode);
	assert_true(workload.chain.n >= frames);
	result = check_run(
	    workload.pid, &workload.chain,
	    (struct check_options){.samples = options.samples, .late = true, .label = mode});
	assert_int_equal(result.samples, options.samples);
	assert_true(check_passes(&result));
}

static void test_a_chain_is_as_perl_has_it(void **state)
{
	(void)state;
	expect_chain("chain", 20);
}

/* The same program with what it consists of in libperl.so, whose thread-local variable is another
 * kind. */
static void test_the_shared_library(void **state)
{
	char *const command = options.command[0];
	glob_t found;

	(void)state;
	if (options.command_n > 1 || glob("/usr/bin/perl5.*-*-gnu", 0, NULL, &found)) {
		print_message("no program with libperl.so here\n");
		skip();
	}
	options.command[0] = found.gl_pathv[0];
	expect_chain("chain", 20);
	options.command[0] = command;
	globfree(&found);
}

static void test_signals_warnings_and_regular_expressions(void **state)
{
	(void)state;
	expect_chain("corners", 8);
}

/* How many script frames stand above each activation of the loop, leaf first. */
static uint32_t count_groups(const struct live_stack *stack, uint32_t *groups, uint32_t max)
{
	uint32_t n = 0, scripts = 0;

	for (uint32_t i = 0; i < stack->frames_n; i++) {
		const struct live_frame *frame = &stack->frames[i];

		scripts += frame->kind != LIVE_NATIVE;
		if (frame->kind != LIVE_NATIVE || strcmp(frame->name, LOOP) != 0)
			continue;
		assert_true(n < max);
		groups[n++] = scripts;
		scripts = 0;
	}
	assert_int_equal(scripts, 0);
	return n;
}

/*
 * DESTROY; what C's own eval around it was called in; first; FETCH; the addition; sort; the
 * program. An eval in what C called has a loop of its own, below which the first one has nothing.
 */
static void test_the_loops_stand_between(void **state)
{
	static const uint32_t right[] = {2, 6, 0, 3, 0, 1, 0, 1, 10};
	uint64_t seed = 7;
	struct live *live;

	(void)state;
	start("chain");
	live = live_open(workload.pid);
	assert_non_null(live);
	for (int i = 0; i < 10; i++) {
		const struct live_stack *stack = live_sample(live, workload.pid);
		uint32_t groups[16];

		assert_non_null(stack);
		assert_int_equal(count_groups(stack, groups, 16), sizeof(right) / sizeof(*right));
		assert_memory_equal(groups, right, sizeof(right));
		live_pause(&seed, 3000);
	}
	live_close(live);
}

/* Until n threads have said what they do. */
static void wait_for_threads(int n)
{
	char text[4096];
	ssize_t bytes;

	/* check_start() has read what the first one said. */
	while (--n > 0) {
		char *end = NULL;

		while (!end) {
			bytes = read(workload.output, text, sizeof(text) - 1);
			assert_true(bytes > 0);
			text[bytes] = 0;
			for (end = strstr(text, "ready\n"); end && strstr(end + 1, "ready\n"); n--)
				end = strstr(end + 1, "ready\n");
		}
	}
}

static bool has_threads(void)
{
	char text[2048] = "";

	for (int i = 0; i < options.command_n; i++) {
		strncat(text, options.command[i], sizeof(text) - strlen(text) - 1);
		strncat(text, " ", sizeof(text) - strlen(text) - 1);
	}
	strncat(text, "-MConfig -e 'exit !$Config{useithreads}'", sizeof(text) - strlen(text) - 1);
	return system(text) == 0;
}

static void test_threads(void **state)
{
	pid_t tids[THREADS_MAX];
	uint32_t n, seen = 0;

	(void)state;
	if (!has_threads()) {
		print_message("this Perl is built without threads\n");
		skip();
	}
	start("threads");
	wait_for_threads(3);
	n = live_threads(workload.pid, tids, THREADS_MAX);
	assert_int_equal(n, 4);
	for (uint32_t i = 0; i < n; i++) {
		struct check_result result;

		if (tids[i] == workload.pid)
			continue;
		wait_for_loop(tids[i]);
		result = check_run(workload.pid, &workload.chain,
				   (struct check_options){.samples = options.samples / 3,
							  .tid = tids[i],
							  .label = "threads"});
		assert_true(check_passes(&result));
		seen++;
	}
	assert_int_equal(seen, 3);
}

/* --- Programs that are never long in one place. --- */

static bool is_place(const struct check_frame *place, const struct live_frame *frame)
{
	size_t n = strlen(frame->file), m = strlen(place->file);

	if (frame->kind != LIVE_SCRIPT || strcmp(frame->name, place->name) != 0)
		return false;
	/* Text that is not there any more, or text that is not compiled yet. */
	if (!strcmp(frame->name, "(eval)") && (!n || !strncmp(frame->file, "(eval ", 6)))
		return frame->line <= (n ? 2 : 0);
	if (n < m || strcmp(frame->file + n - m, place->file) != 0)
		return false;
	return !strcmp(frame->name, "(eval)") ||
	       (frame->line >= place->first && frame->line <= place->last);
}

/* The last one may be there again and again. How many script frames; 0: one is wrong. */
static uint32_t count_places(const struct check_chain *chain, const struct live_stack *stack)
{
	uint32_t n = 0;

	for (uint32_t i = stack->frames_n; i-- > 0;) {
		const struct live_frame *frame = &stack->frames[i];
		uint32_t place = n < chain->n ? n : chain->n - 1;

		if (frame->kind == LIVE_NATIVE)
			continue;
		if (!is_place(&chain->frames[place], frame))
			return 0;
		n++;
	}
	return n;
}

/* All are right, and most of them whole. */
static void expect_places(char *mode, bool late)
{
	uint32_t wrong = 0, whole = 0, samples = options.samples * 3;
	const struct fold_options all = {0};
	struct live *live;
	uint64_t seed = 3;

	start(mode);
	live = live_open(workload.pid);
	assert_non_null(live);
	live->late = late;
	for (uint32_t i = 0; i < samples; i++) {
		const struct live_stack *stack = live_sample(live, workload.pid);
		uint32_t n;

		assert_non_null(stack);
		n = count_places(&workload.chain, stack);
		whole += n >= workload.chain.n;
		if (!n && wrong++ < 3) {
			char *text = fold_text(stack, &all);

			print_error("    wrong: %s\n", text);
			free(text);
		}
		live_pause(&seed, 2000);
	}
	print_message("%s: %u samples, %u whole, %u wrong\n", mode, samples, whole, wrong);
	live_close(live);
	assert_int_equal(wrong, 0);
	assert_true(whole * 2 > samples);
}

static void test_closures_that_are_freed(void **state)
{
	(void)state;
	expect_places("closures", true);
}

static void test_texts_that_are_freed(void **state)
{
	(void)state;
	expect_places("texts", true);
}

static void test_between_calls(void **state)
{
	(void)state;
	expect_places("calls", true);
}

/* --- Files. --- */

/* A copy of the program in which the byte at an address says something else; what is said of it. */
static int recognize(const char *symbol_name, uint8_t byte, struct lang_runtime *runtime)
{
	static struct elffile elf;
	struct facts_symbol symbol;
	static struct reader reader;
	int fd = memfd_create("perl", MFD_CLOEXEC), from, err;
	struct facts facts;
	struct stat st;
	uint8_t is;

	from = open("/usr/bin/perl", O_RDONLY | O_CLOEXEC);
	if (from < 0)
		skip();
	assert_false(fstat(from, &st));
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(fd, from, NULL, (size_t)left);

		assert_true(n > 0);
		left -= n;
	}
	close(from);
	reader_open(&reader, false);
	assert_false(
	    elffile_open(&elf, &reader, reader_add(&reader, dup(fd)), (uint64_t)st.st_size));
	assert_false(facts_open(&facts, &elf));
	assert_false(facts_symbol(&facts, symbol_name, &symbol));
	assert_true(facts_read(&facts, symbol.vaddr, &is, 1));
	elffile_close(&elf);
	reader_close(&reader);
	/* Constants lie in the file as in memory. */
	assert_int_equal(pread(fd, &is, 1, (off_t)symbol.vaddr), 1);
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)symbol.vaddr), 1);
	reader_open(&reader, false);
	assert_false(elffile_open(&elf, &reader, reader_add(&reader, fd), (uint64_t)st.st_size));
	err = lang_recognize(&elf, "perl", runtime);
	elffile_close(&elf);
	reader_close(&reader);
	return err;
}

static void test_other_releases(void **state)
{
	static struct lang_runtime runtime;
	unsigned minor, sub;

	(void)state;
	assert_int_equal(recognize("PL_version", 43, &runtime), -ENOTSUP);
	assert_int_equal(runtime.walk.language, LANG_PERL);
	assert_int_equal(sscanf(runtime.version, "5.%u.%u", &minor, &sub), 2);
	assert_int_equal(minor, 43);
	assert_int_equal(recognize("PL_revision", 7, &runtime), -ENOTSUP);
	/* A build whose statement is at another place than that of its release. */
	assert_int_equal(recognize("Perl_call_list", 0xc3, &runtime), -ENOTSUP);
	/* The last number says nothing of the layout. */
	assert_int_equal(recognize("PL_subversion", 99, &runtime), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_a_chain_is_as_perl_has_it, stop),
	    cmocka_unit_test_teardown(test_the_shared_library, stop),
	    cmocka_unit_test_teardown(test_signals_warnings_and_regular_expressions, stop),
	    cmocka_unit_test_teardown(test_the_loops_stand_between, stop),
	    cmocka_unit_test_teardown(test_threads, stop),
	    cmocka_unit_test_teardown(test_closures_that_are_freed, stop),
	    cmocka_unit_test_teardown(test_texts_that_are_freed, stop),
	    cmocka_unit_test_teardown(test_between_calls, stop),
	    cmocka_unit_test(test_other_releases),
	};

	for (int c; (c = getopt(argc, argv, "+n:f:")) != -1;) {
		if (c == 'n')
			options.samples = (uint32_t)atoi(optarg);
		else if (c == 'f')
			options.script = optarg;
		else
			return 2;
	}
	if (argc - optind > ARGS_MAX)
		return 2;
	if (argc > optind) {
		options.command_n = argc - optind;
		memcpy(options.command, argv + optind, (size_t)options.command_n * sizeof(*argv));
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
