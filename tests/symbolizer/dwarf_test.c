/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug information of small programs (tests/symbolizer/dwarf.mk) with answers that are known from
 * their sources; what is kept, given up, asked for and refused. dwarf_others_test compares with
 * other tools, tests/fuzz/dwarf_fuzz takes any bytes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolizer/dwarfpieces.h"
#include "tests/symbolizer/dwarf_program.h"

#define SECOND	  1000000000ull
#define BYTES_MAX (64u << 20)

static struct dwarf_program program;
static char programs[PATH_MAX];

/* build/[asan/]tests/symbolizer/x -> build/tests/symbolizer/dwarf */
static void find_programs(const char *argv0)
{
	char here[PATH_MAX - 64], *mode;

	if (readlink("/proc/self/exe", here, sizeof(here)) < 0)
		snprintf(here, sizeof(here), "%s", argv0);
	mode = strstr(here, "/tests/symbolizer");
	assert_non_null(mode);
	*mode = 0;
	snprintf(programs, sizeof(programs), "%s/tests/symbolizer/dwarf", here);
	if (access(programs, R_OK))
		snprintf(programs, sizeof(programs), "%s/../tests/symbolizer/dwarf", here);
}

static const char *path_of(const char *name)
{
	static char paths[4][PATH_MAX + 64];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", programs, name);
	return path;
}

static void open_program(const char *name, const char *dwp, size_t bytes_max)
{
	assert_true(dwarf_program_open(&program, path_of(name), NULL, dwp ? path_of(dwp) : NULL,
				       bytes_max));
}

static const struct symbols_entry *symbol_of(const char *name)
{
	for (uint32_t i = 0; i < program.symbols->entries_n; i++)
		if (strcmp(program.symbols->names + program.symbols->entries[i].name, name) == 0)
			return &program.symbols->entries[i];
	fail_msg("no symbol %s", name);
	return NULL;
}

/* The number of the first line that begins so. */
static uint32_t source_line(const char *path, const char *begin)
{
	char line[256];
	FILE *file = fopen(path, "r");
	uint32_t n = 1;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) && strncmp(line, begin, strlen(begin)) != 0)
		n++;
	fclose(file);
	return n;
}

static bool has_end(const char *text, const char *end)
{
	size_t n = text ? strlen(text) : 0, m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

/* --- Known answers. --- */

/* mix() in twice() in four() in work(), somewhere in work(): names, files, first lines. */
static bool is_whole_chain(const struct lines *lines)
{
	static const char *const names[] = {"mix", "twice", "four", "work"};
	static const char *const begins[] = {
	    "static inline unsigned mix(", "static inline unsigned twice(",
	    "static inline unsigned four(", "__attribute__((noinline)) unsigned work("};

	if (lines->n != 4)
		return false;
	for (int i = 0; i < 4; i++) {
		const struct line *line = &lines->line[i];
		uint32_t begin = source_line(line->file, begins[i]);

		if (strcmp(line->name, names[i]) != 0 || line->start_line != begin ||
		    !has_end(line->file, "/tests/symbolizer/dwarf_c.c") || line->line <= begin ||
		    line->line > begin + 18)
			return false;
	}
	return true;
}

static void check_chain(const char *name)
{
	const struct symbols_entry *work;
	unsigned chains = 0;
	struct lines lines;

	open_program(name, NULL, BYTES_MAX);
	assert_non_null(program.dwarf);
	work = symbol_of("work");
	for (uint64_t at = work->start; at < work->start + work->bytes; at++) {
		dwarf_program_find(&program, at, &lines);
		assert_true(lines.n >= 1);
		assert_string_equal(lines.line[lines.n - 1].name, "work");
		chains += lines.n == 4 && strcmp(lines.line[0].name, "mix") == 0 &&
			  is_whole_chain(&lines);
	}
	print_message("%s: %u of %u addresses in the innermost one\n", name, chains, work->bytes);
	assert_true(chains > work->bytes / 10);
	dwarf_program_close(&program);
}

static void test_chain(void **state)
{
	static const char *const names[] = {"gcc-c2",	"gcc-c3",   "gcc-c4",	"gcc-c5",
					    "clang-c2", "clang-c4", "clang-c5", "gcc-c-dropped"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		check_chain(names[i]);
}

/* The part of a function that is split off is called by its symbol, or else by its entry. */
static void test_symbol_wins(void **state)
{
	const struct symbols_entry *cold;
	struct lines lines;

	(void)state;
	open_program("gcc-c5", NULL, BYTES_MAX);
	cold = symbol_of("work.cold");
	dwarf_find(program.dwarf, cold->start, "work.cold", &lines);
	assert_string_equal(lines.line[lines.n - 1].name, "work.cold");
	assert_int_not_equal(lines.line[lines.n - 1].start_line, 0);
	dwarf_find(program.dwarf, cold->start, NULL, &lines);
	assert_string_equal(lines.line[lines.n - 1].name, "work");
	/* No unit has the program's entry. */
	dwarf_find(program.dwarf, symbol_of("_start")->start, "_start", &lines);
	assert_int_equal(lines.n, 0);
	dwarf_program_close(&program);
}

/* What has no linkage name is called with its namespace and class. */
static void test_scopes(void **state)
{
	unsigned scoped = 0;
	uint64_t start, bytes;
	struct lines lines;

	(void)state;
	open_program("gcc-x5", NULL, BYTES_MAX);
	start = dwarf_program_code(&program, &bytes);
	for (uint64_t at = start; at < start + bytes; at++) {
		dwarf_program_find(&program, at, &lines);
		for (uint32_t i = 0; i + 1 < lines.n; i++)
			scoped +=
			    strcmp(lines.line[i].name, "shapes::(anonymous)::point::squared") == 0;
	}
	assert_true(scoped > 0);
	dwarf_program_close(&program);
}

static void test_nothing(void **state)
{
	(void)state;
	/* Debian's programs are stripped. */
	assert_true(dwarf_program_open(&program, "/bin/true", NULL, NULL, BYTES_MAX));
	assert_null(program.dwarf);
	assert_int_equal(errno, ENOENT);
	dwarf_program_close(&program);
	open_program("gcc-x-packed", NULL, 300000);
	assert_null(program.dwarf);
	assert_int_equal(errno, EFBIG);
	dwarf_program_close(&program);
}

/* --- Split units. --- */

/* The most frames of an address in other_work(), and how often a .dwo was wanted. */
static uint32_t deepest(uint32_t *wanted)
{
	const struct symbols_entry *function = symbol_of("other_work");
	struct dwarf_want want;
	uint32_t most = 0;
	struct lines lines;

	*wanted = 0;
	for (uint64_t at = function->start; at < function->start + function->bytes; at++) {
		dwarf_find(program.dwarf, at, NULL, &lines);
		most = lines.n > most ? lines.n : most;
		*wanted += dwarf_wants(program.dwarf, &want);
	}
	return most;
}

static void test_split(void **state)
{
	struct dwarf_want want;
	struct lines lines;
	uint32_t wanted;

	(void)state;
	open_program("seed-gcc-split4", NULL, BYTES_MAX);
	assert_int_equal(deepest(&wanted), 0);
	assert_int_equal(wanted, symbol_of("other_work")->bytes);
	assert_true(dwarf_wants(program.dwarf, &want));
	assert_string_equal(want.name, "seed-gcc-split4.dwo");
	/* Something else, under its id: not to be asked for again. */
	assert_int_equal(dwarf_give(program.dwarf, want.dwo_id, &program.file), -ENOENT);
	assert_int_equal(deepest(&wanted), 0);
	assert_int_equal(wanted, 0);
	dwarf_program_close(&program);

	open_program("seed-gcc-split4", NULL, BYTES_MAX);
	dwarf_program_find(&program, symbol_of("other_work")->start, &lines);
	assert_int_equal(program.dwos, 1);
	assert_true(deepest(&wanted) > 1);
	assert_int_equal(wanted, 0);
	dwarf_program_close(&program);
}

/* Clang's skeletons can tell of inlined functions themselves (-fsplit-dwarf-inlining). */
static void test_skeleton(void **state)
{
	uint32_t wanted;

	(void)state;
	open_program("seed-clang-split5", NULL, BYTES_MAX);
	assert_true(deepest(&wanted) > 1);
	assert_true(wanted > 0);
	dwarf_program_close(&program);
}

static void test_packages(void **state)
{
	static const char *const names[][2] = {{"seed-gcc-split5", "seed-gcc-split5.dwp"},
					       {"seed-clang-split4", "seed-clang-split4.dwp"}};
	uint32_t wanted;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_program(names[i][0], names[i][1], BYTES_MAX);
		assert_true(deepest(&wanted) > 1);
		assert_int_equal(wanted, 0);
		dwarf_program_close(&program);
	}
}

/* --- Limits. --- */

static uint64_t answer_hash(uint64_t at)
{
	uint64_t hash = 1469598103934665603ull;
	struct lines lines;

	dwarf_program_find(&program, at, &lines);
	for (uint32_t i = 0; i < lines.n; i++) {
		for (const char *c = lines.line[i].name; *c; c++)
			hash = (hash ^ (uint8_t)*c) * 1099511628211ull;
		for (const char *c = lines.line[i].file; c && *c; c++)
			hash = (hash ^ (uint8_t)*c) * 1099511628211ull;
		hash = (hash ^ lines.line[i].line) * 1099511628211ull;
	}
	return hash;
}

#define ASKED 3000

/* This test's own program has some twenty units: little memory, the same answers. */
static void test_eviction(void **state)
{
	static uint64_t hashes[ASKED];
	uint64_t start, bytes, most = 0, whole, at = 0;

	(void)state;
	assert_true(dwarf_program_open(&program, "/proc/self/exe", NULL, NULL, BYTES_MAX));
	assert_non_null(program.dwarf);
	start = dwarf_program_code(&program, &bytes);
	for (int i = 0; i < ASKED; i++, at += 7919)
		hashes[i] = answer_hash(start + at % bytes);
	whole = dwarf_bytes(program.dwarf);
	dwarf_program_close(&program);

	assert_true(dwarf_program_open(&program, "/proc/self/exe", NULL, NULL, whole / 2));
	for (int i = 0, k = 0; i < ASKED; i++, k++) {
		at = (uint64_t)k * 7919;
		assert_int_equal(answer_hash(start + at % bytes), hashes[i]);
		most = dwarf_bytes(program.dwarf) > most ? dwarf_bytes(program.dwarf) : most;
	}
	print_message("%zu KiB for all, %zu at most with half of that\n", (size_t)whole >> 10,
		      (size_t)most >> 10);
	assert_true(most <= whole / 2);
	dwarf_program_close(&program);
}

/* Intervals that overlap at random: each address belongs to the last one that holds it. */
static void test_pieces(void **state)
{
	enum { N = 40, SPAN = 100 };
	static struct dwarfpieces_interval intervals[N], kept[N];
	struct dwarflimit limit = {.bytes_max = 1 << 20, .until_ns = UINT64_MAX};

	(void)state;
	srandom(7);
	for (int round = 0; round < 2000; round++) {
		struct dwarfindex index = {0};

		for (uint32_t i = 0; i < N; i++) {
			intervals[i].start = 1000 + (uint64_t)random() % SPAN;
			intervals[i].end = intervals[i].start + 1 + (uint64_t)random() % 20;
			intervals[i].site = i / 2; /* an entry may have several */
		}
		memcpy(kept, intervals, sizeof(kept));
		assert_int_equal(dwarfpieces_make(&index, intervals, N, &limit), 0);
		for (uint64_t at = 990; at < 1000 + SPAN + 30; at++) {
			uint32_t expected = DWARFINDEX_NONE;

			for (uint32_t i = 0; i < N; i++)
				if (at >= kept[i].start && at < kept[i].end)
					expected = kept[i].site;
			assert_int_equal(dwarfindex_find(&index, at), expected);
		}
		dwarfindex_free(&index);
	}
}

/* --- Time. --- */

static uint64_t clock_ahead_ns;
static unsigned clock_steps;

/* libc's, and so many seconds later at each of the next calls. */
int clock_gettime(clockid_t id, struct timespec *t)
{
	long err = syscall(SYS_clock_gettime, id, t);

	if (clock_steps) {
		clock_steps--;
		clock_ahead_ns += 4 * SECOND;
	}
	t->tv_sec += (time_t)(clock_ahead_ns / SECOND);
	return (int)err;
}

/* When it has had its part of the time, there are symbols; behind that it says so, once. */
static void test_time(void **state)
{
	struct lines lines;

	(void)state;
	open_program("gcc-c5", NULL, BYTES_MAX);
	/* Two clocks are read twice to find out which unit is where, and to read one; but not the
	 * last, or an eighth of that would count for the next. */
	clock_steps = 7;
	dwarf_program_find(&program, symbol_of("work")->start, &lines);
	assert_int_equal(clock_steps, 0);
	assert_non_null(lines.line[0].file);
	dwarf_program_find(&program, symbol_of("other_work")->start, &lines);
	assert_int_equal(lines.n, 1);
	assert_null(lines.line[0].file);
	assert_false(dwarf_resumed(program.dwarf));
	clock_ahead_ns += 60 * SECOND;
	dwarf_program_find(&program, symbol_of("other_work")->start, &lines);
	assert_non_null(lines.line[0].file);
	assert_true(dwarf_resumed(program.dwarf));
	assert_false(dwarf_resumed(program.dwarf));
	dwarf_program_close(&program);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_chain),    cmocka_unit_test(test_symbol_wins),
	    cmocka_unit_test(test_scopes),   cmocka_unit_test(test_nothing),
	    cmocka_unit_test(test_split),    cmocka_unit_test(test_skeleton),
	    cmocka_unit_test(test_packages), cmocka_unit_test(test_eviction),
	    cmocka_unit_test(test_pieces),   cmocka_unit_test(test_time),
	};

	(void)argc;
	find_programs(argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
