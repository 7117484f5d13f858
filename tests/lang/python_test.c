/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython: samples of bench/workloads/python, which says itself what its stack is, under every
 * version that is here: Debian's, those of pyenv (PYENV_ROOT, else ~/.pyenv), and programs named in
 * PYTHONS. Each runs the plain chain and one more; with PYTHON_TEST=all every one of them, and more
 * samples.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/lang/python.h"
#include "symbolizer/lang/python_layout.h"
#include "symbolizer/lang/python_lines.h"
#include "tests/lang/check.h"
#include "tests/lang/livefile.h"

#define PROGRAM	    "bench/workloads/python/chain.py"
#define PYTHONS_MAX 32
#define THREADS_MAX 16
#define SETTLED_NS  20000000

struct python {
	char path[256];
	unsigned minor;
};

static struct python pythons[PYTHONS_MAX];
static size_t pythons_n;
static bool all;

static const struct {
	const char *name;
	unsigned from, to; /* 3.from to 3.to */
} modes[] = {
    {"handler", 6, 99}, {"native", 6, 99}, {"generator", 6, 99}, {"callback", 6, 99},
    {"reduce", 6, 99},	{"deep", 6, 99},   {"names", 6, 99},	 {"async", 6, 99},
    {"threads", 6, 99}, {"sub", 8, 99},	   {"perf", 12, 99},
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

/* --- Which there are. --- */

/* "Python 3.9.18" */
static bool ask_version(const char *path, char version[64])
{
	char command[512];
	FILE *out;
	bool ok;

	snprintf(command, sizeof(command), "timeout 20 %s --version 2>&1", path);
	out = popen(command, "r");
	ok = out && fscanf(out, "Python %63s", version) == 1;
	if (out)
		pclose(out);
	return ok;
}

static void add(const char *path)
{
	struct python *python = &pythons[pythons_n];
	unsigned major;
	char version[64], real[4096];

	if (pythons_n == PYTHONS_MAX || access(path, X_OK) || !realpath(path, real) ||
	    !ask_version(path, version) || sscanf(version, "%u.%u", &major, &python->minor) != 2 ||
	    major != 3 || python->minor < 6)
		return;
	snprintf(python->path, sizeof(python->path), "%s", path);
	pythons_n++;
}

static void add_folder(const char *folder, const char *format)
{
	struct dirent **entries;
	int n = scandir(folder, &entries, NULL, versionsort);
	char path[1024];

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), format, folder, entries[i]->d_name);
		if (entries[i]->d_name[0] == '3')
			add(path);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

static int find_pythons(void **state)
{
	const char *root = getenv("PYENV_ROOT"), *home = getenv("HOME"), *more = getenv("PYTHONS");
	char folder[512], *list, *rest, *one;

	(void)state;
	all = getenv("PYTHON_TEST") && !strcmp(getenv("PYTHON_TEST"), "all");
	add("/usr/bin/python3");
	if (root)
		snprintf(folder, sizeof(folder), "%s/versions", root);
	else
		snprintf(folder, sizeof(folder), "%s/.pyenv/versions", home ? home : "");
	add_folder(folder, "%s/%s/bin/python3");
	list = rest = strdup(more ? more : "");
	while ((one = strsep(&rest, " ")))
		add(one);
	free(list);
	return 0;
}

/* --- Stacks. --- */

static void run_threads(const struct python *python, struct check_workload *workload,
			struct check_options options, struct check_result *sum)
{
	pid_t tids[THREADS_MAX];
	uint32_t n = live_threads(workload->pid, tids, THREADS_MAX);

	(void)python;
	assert_true(n > 2);
	for (uint32_t i = 0; i < n; i++) {
		struct check_result r;

		options.tid = tids[i];
		options.label = NULL;
		if (tids[i] == workload->pid)
			continue;
		r = check_run(workload->pid, &workload->chain, options);
		for (int v = 0; v < CHECK_VERDICTS; v++)
			sum->count[v] += r.count[v];
		sum->samples += r.samples;
	}
}

/* Its last line is written before the last function has it to itself. */
static void wait_for_cpu(pid_t pid)
{
	struct timespec start, now;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &start), 0);
	do {
		usleep(5000);
		assert_int_equal(clock_gettime(clock, &now), 0);
	} while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec <
		 SETTLED_NS);
}

static void check_mode(const struct python *python, const char *mode, uint32_t samples, bool late)
{
	/* -X perf: any word is allowed there by versions that know nothing of it. */
	bool perf = !strcmp(mode, "perf");
	char *argv[] = {(char *)python->path,
			(char *)"-B",
			(char *)(perf ? "-Xperf" : "-Xnothing"),
			(char *)PROGRAM,
			(char *)(perf ? "chain" : mode),
			NULL};
	struct check_options options = {.samples = samples, .wait_us = 800, .late = late};
	struct check_result result = {0};
	struct check_workload workload;
	char label[64], map[64];

	snprintf(label, sizeof(label), "3.%u %s%s", python->minor, mode, late ? " late" : "");
	options.label = label;
	assert_true(check_start(&workload, argv));
	assert_true(workload.chain.n > 5);
	wait_for_cpu(workload.pid);
	if (!strcmp(mode, "threads"))
		run_threads(python, &workload, options, &result);
	else
		result = check_run(workload.pid, &workload.chain, options);
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", workload.pid);
	check_stop(&workload);
	if (perf)
		unlink(map);
	if (!check_passes(&result))
		print_error("%s: %u samples, %u wrong, %u short\n", label, result.samples,
			    result.count[CHECK_WRONG], result.count[CHECK_PREFIX]);
	assert_true(check_passes(&result));
}

static void chain_is_told_right(void **state)
{
	(void)state;
	if (!pythons_n) {
		print_message("no Python from 3.6 on is here\n");
		skip();
	}
	for (size_t i = 0; i < pythons_n; i++)
		check_mode(&pythons[i], "chain", all ? 400 : 60, false);
}

static void every_kind_of_stack_is_told_right(void **state)
{
	size_t done = 0;

	(void)state;
	if (!pythons_n)
		skip();
	for (size_t i = 0; i < (all ? pythons_n * MODES : pythons_n + MODES); i++) {
		const struct python *python = &pythons[i % pythons_n];
		size_t mode = all ? i / pythons_n : i % MODES;

		/* As many runs as it takes for every mode and every version to have had one. */
		if (!all && i >= MODES && i >= pythons_n)
			break;
		if (python->minor < modes[mode].from || python->minor > modes[mode].to)
			continue;
		check_mode(python, modes[mode].name, all ? 100 : 20, all && i % 2);
		done++;
	}
	assert_true(done >= (pythons_n < MODES ? pythons_n : MODES) - 2);
}

/* The place of the first frame from the leaf on of this name. */
static uint32_t find_frame(const struct live_stack *stack, const char *name)
{
	uint32_t i = 0;

	while (i < stack->frames_n && strcmp(stack->frames[i].name, name) != 0)
		i++;
	return i;
}

static bool is_of_called_back(const char *name)
{
	size_t n = strlen("called_back"), length = strlen(name);

	return length >= n && strcmp(name + length - n, "called_back") == 0;
}

/* Code that is in no file need not be Python's: the caller's frames stand behind it, not before. */
static void check_made(const struct python *python)
{
	char *argv[] = {(char *)python->path, (char *)"-B", (char *)PROGRAM, (char *)"made", NULL};
	struct check_workload workload;
	struct live *live;

	assert_true(check_start(&workload, argv));
	wait_for_cpu(workload.pid);
	live = live_open(workload.pid);
	assert_non_null(live);
	for (int i = 0; i < 5; i++) {
		const struct live_stack *stack = live_sample(live, workload.pid);
		uint32_t back = 0, made, through;

		assert_non_null(stack);
		while (back < stack->frames_n && !is_of_called_back(stack->frames[back].name))
			back++;
		made = find_frame(stack, "[unknown]");
		through = find_frame(stack, "through_made_code");
		assert_true(back < made && made < through && through < stack->frames_n);
	}
	live_close(live);
	check_stop(&workload);
}

static void made_code_is_not_pythons(void **state)
{
	(void)state;
	if (!pythons_n)
		skip();
	check_made(&pythons[0]);
	check_made(&pythons[pythons_n - 1]);
	for (size_t i = 1; all && i + 1 < pythons_n; i++)
		check_made(&pythons[i]);
}

/* Named when the process has gone on: rather no name than a wrong one, and nearly always the right
 * one. */
static void names_are_read_late(void **state)
{
	(void)state;
	if (!pythons_n)
		skip();
	check_mode(&pythons[pythons_n - 1], "generator", 40, true);
}

/* --- Lines. --- */

static uint8_t *unhex(const char *text, size_t *n)
{
	uint8_t *bytes = malloc(strlen(text) / 2 + 1);
	unsigned byte;

	for (*n = 0; sscanf(text + 2 * *n, "%2x", &byte) == 1; ++*n)
		bytes[*n] = (uint8_t)byte;
	return bytes;
}

/* Each instruction of a function. How many were compared. */
static size_t check_table(enum python_lines kind, uint32_t first, const char *hex, char *ranges)
{
	size_t n, checked = 0;
	uint8_t *table = unhex(hex, &n);
	uint32_t start, end, line;

	for (char *one; (one = strsep(&ranges, " \n"));) {
		if (sscanf(one, "%u:%u:%u", &start, &end, &line) != 3)
			continue;
		for (uint32_t at = start; at < end; at += 2, checked++)
			assert_int_equal(python_line(kind, table, n, first, at), line);
	}
	assert_int_equal(python_line(kind, table, n, first, (uint32_t)-2), first);
	free(table);
	return checked;
}

static void check_lines(const struct python *python)
{
	enum python_lines kind = python->minor < 10    ? PYTHON_LNOTAB
				 : python->minor == 10 ? PYTHON_LINETABLE
						       : PYTHON_LOCATIONS;
	char command[512], *head = NULL, *ranges = NULL, hex[65536];
	size_t head_size = 0, ranges_size = 0, checked = 0;
	uint32_t first;
	FILE *out;

	snprintf(command, sizeof(command), "%s -B tests/lang/python_lines.py", python->path);
	out = popen(command, "r");
	assert_non_null(out);
	while (getline(&head, &head_size, out) > 0 && getline(&ranges, &ranges_size, out) > 0)
		if (sscanf(head, "%u %65535s", &first, hex) == 2)
			checked += check_table(kind, first, hex, ranges);
	assert_int_equal(pclose(out), 0);
	print_message("3.%u: lines of %zu instructions\n", python->minor, checked);
	assert_true(checked > 5000);
	free(head);
	free(ranges);
}

/* One version for each kind of table, or every one. */
static void lines_are_pythons_own(void **state)
{
	bool seen[3] = {false};

	(void)state;
	if (!pythons_n)
		skip();
	for (size_t i = 0; i < pythons_n; i++) {
		size_t kind = pythons[i].minor < 10 ? 0 : pythons[i].minor == 10 ? 1 : 2;

		if (!seen[kind] || all)
			check_lines(&pythons[i]);
		seen[kind] = true;
	}
}

/* --- Files. --- */

/* The file that has the loop says which version it is. */
static void check_file(const char *path, const char *version, int expected)
{
	struct lang_runtime *runtime = calloc(1, sizeof(*runtime));
	struct elffile *elf = malloc(sizeof(*elf));
	struct reader *reader = malloc(sizeof(*reader));
	int fd = open(path, O_RDONLY | O_CLOEXEC), slot;
	struct stat st;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	reader_open(reader, false);
	slot = reader_add(reader, fd);
	assert_int_equal(elffile_open(elf, reader, slot, (uint64_t)st.st_size), 0);
	assert_int_equal(lang_recognize(elf, "whatever", runtime), expected);
	assert_int_equal(runtime->walk.language, LANG_PYTHON);
	assert_string_equal(runtime->version, version);
	elffile_close(elf);
	reader_close(reader);
	free(reader);
	free(elf);
	free(runtime);
}

/* Its own libpython, or else the program itself. */
static bool library_of(const char *python, unsigned minor, char path[1024])
{
	const char *bin = strstr(python, "/bin/");

	for (int m = 0; bin && m < 2; m++) {
		snprintf(path, 1024, "%.*s/lib/libpython3.%u%s.so.1.0", (int)(bin - python), python,
			 minor, m ? "m" : "");
		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}

/* Which starts it in some other place. */
static bool is_script(const char *path)
{
	FILE *file = fopen(path, "r");
	bool script = file && fgetc(file) == '#';

	if (file)
		fclose(file);
	return script;
}

static void versions_are_known(void **state)
{
	char version[64], path[1024], real[4096];

	(void)state;
	if (!pythons_n)
		skip();
	for (size_t i = 0; i < pythons_n; i++) {
		assert_true(ask_version(pythons[i].path, version));
		if (is_script(pythons[i].path))
			continue;
		if (!library_of(pythons[i].path, pythons[i].minor, path) &&
		    !(realpath(pythons[i].path, real) &&
		      snprintf(path, sizeof(path), "%.1000s", real) > 0))
			fail();
		check_file(path, version, 0);
	}
}

/* A file's own table of offsets may say anything: then it is a version that is not known. */
static void offsets_are_not_believed(void **state)
{
	static const struct python_layout good = {.form = PYTHON_SHIM,
						  .state_id = 152,
						  .state_frame = 72,
						  .inner = -1,
						  .frame_back = 8,
						  .frame_lasti = 56,
						  .frame_mark = 70,
						  .code_file = 112,
						  .code_name = 128,
						  .code_lines = 136,
						  .code_first = 68,
						  .bytecode = 200};
	uint32_t fields[TABLE_FIELDS];
	struct python_layout bad;

	(void)state;
	assert_int_equal(python_layout_fields(&good, fields), 0);
	assert_int_equal(fields[PYTHON_STATE_AT] + fields[PYTHON_STATE_ID], 152);
	assert_int_equal(fields[PYTHON_FRAME_AT], 0);
	assert_int_equal(fields[PYTHON_CODE_AT] + fields[PYTHON_CODE_FIRST], 68);
#define BAD(field, value)                                                                          \
	bad = good;                                                                                \
	bad.field = value;                                                                         \
	assert_int_equal(python_layout_fields(&bad, fields), -ENOTSUP)
	BAD(state_id, UINT16_MAX);
	BAD(state_frame, 400);
	BAD(frame_mark, 80);
	BAD(frame_back, UINT16_MAX);
	BAD(frame_lasti, 79 + 8);
	BAD(code_first, 0);
	BAD(code_name, UINT16_MAX);
	BAD(code_lines, 64 + PYTHON_CODE_BYTES);
#undef BAD
}

static void old_versions_are_named(void **state)
{
	const char *root = getenv("PYENV_ROOT"), *home = getenv("HOME");
	char path[1024];

	(void)state;
	snprintf(path, sizeof(path), "%s%s/versions/2.7.18/lib/libpython2.7.so.1.0",
		 root ? root : home, root ? "" : "/.pyenv");
	if (access(path, R_OK)) {
		print_message("no Python 2.7.18 of pyenv here\n");
		skip();
	}
	check_file(path, "2.7.18", -ENOTSUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(versions_are_known),
	    cmocka_unit_test(old_versions_are_named),
	    cmocka_unit_test(offsets_are_not_believed),
	    cmocka_unit_test(lines_are_pythons_own),
	    cmocka_unit_test(chain_is_told_right),
	    cmocka_unit_test(every_kind_of_stack_is_told_right),
	    cmocka_unit_test(made_code_is_not_pythons),
	    cmocka_unit_test(names_are_read_late),
	};
	int failed = cmocka_run_group_tests(tests, find_pythons, NULL);

	livefile_forget();
	return failed;
}
