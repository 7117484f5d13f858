/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of Go programs: a small one made by hand in the formats of all releases, damaged in all the
 * ways that matter, and real ones (make workloads), with and without symbols, whole and with memory
 * for a part of their table only.
 *
 *   golines_test FILE < ADDRESSES   what is there, for comparisons (tests/tools/go_lines.py)
 *   golines_test --time N FILE      what N names cost
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolizer/filenames.h"
#include "symbolizer/golines.h"
#include "symbolizer/reader.h"
#include "tests/symbolizer/goimage.h"

#define BYTES_MAX (8u << 20)
#define TEXT_MAX  4096

/* An open file and its lines. */
struct opened {
	struct reader reader;
	struct golines *go;
	int slot;
	uint64_t text, text_bytes; /* its first executable segment */
};

/* Takes the fd. */
static int open_lines(struct opened *o, int fd, size_t bytes_max)
{
	static struct elffile file;
	struct stat st;
	int err;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	reader_open(&o->reader, false);
	o->slot = reader_add(&o->reader, fd);
	o->go = NULL;
	err = elffile_open(&file, &o->reader, o->slot, (uint64_t)st.st_size);
	if (err)
		return err;
	if (file.segments_n) {
		o->text = file.segments[0].vaddr;
		o->text_bytes = file.segments[0].bytes;
	}
	o->go = golines_open(&file, bytes_max);
	err = o->go ? 0 : -errno;
	elffile_close(&file);
	return err;
}

static void close_lines(struct opened *o)
{
	golines_close(o->go);
	reader_close(&o->reader);
}

static int open_bytes(const uint8_t *bytes, size_t n)
{
	int fd = memfd_create("go", MFD_CLOEXEC);

	assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	return fd;
}

static const char *text_of(const struct lines *lines)
{
	static char text[TEXT_MAX];
	size_t n = 0;

	text[0] = 0;
	for (uint32_t i = 0; i < lines->n && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %s:%u(%u)", i ? " < " : "",
				      lines->line[i].name,
				      lines->line[i].file ? lines->line[i].file : "?",
				      lines->line[i].line, lines->line[i].start_line);
	return text;
}

/* What is at an offset of the text. */
static const char *at(struct opened *o, uint64_t offset)
{
	struct lines lines;

	golines_find(o->go, o->slot, GOIMAGE_VADDR + GOIMAGE_TEXT + offset, &lines);
	return text_of(&lines);
}

static const char deepest_lines[] =
    "main.deepest a.go:30(0) < main.deep b.go:20(0) < main.f1 a.go:10(0)";
static const char deepest_lines_started[] =
    "main.deepest a.go:30(29) < main.deep b.go:20(19) < main.f1 a.go:10(9)";

static void test_releases(void **state)
{
	uint8_t bytes[GOIMAGE_BYTES];

	(void)state;
	for (size_t i = 0; i < GOIMAGE_RELEASES; i++) {
		const struct goimage_release *r = &goimage_releases[i];
		struct opened o;

		goimage_make(r, bytes);
		assert_int_equal(open_lines(&o, open_bytes(bytes, sizeof(bytes)), BYTES_MAX), 0);
		assert_string_equal(at(&o, 64 + 40),
				    r->start_lines ? deepest_lines_started : deepest_lines);
		assert_string_equal(at(&o, 16), r->start_lines
						    ? "main.deep b.go:20(19) < main.f0 a.go:10(9)"
						    : "main.deep b.go:20(0) < main.f0 a.go:10(0)");
		assert_string_equal(at(&o, 15),
				    r->start_lines ? "main.f0 a.go:10(9)" : "main.f0 a.go:10(0)");
		assert_string_equal(at(&o, 4 * 64 + 63),
				    r->start_lines ? "main.f4 a.go:11(9)" : "main.f4 a.go:11(0)");
		assert_string_equal(at(&o, 5 * 64), "");
		assert_string_equal(at(&o, UINT64_MAX), "");
		close_lines(&o);
	}
}

/* A byte that is something else, and what is left then of the first function. */
struct damage {
	size_t at;
	uint8_t value;
	const char *deepest;
};

static void damaged(const struct goimage_release *r, const struct damage *d, const char *otherwise)
{
	uint8_t bytes[GOIMAGE_BYTES];
	struct opened o;

	goimage_make(r, bytes);
	bytes[d->at] = d->value;
	assert_int_equal(open_lines(&o, open_bytes(bytes, sizeof(bytes)), BYTES_MAX), 0);
	if (strcmp(at(&o, 40), d->deepest ? d->deepest : otherwise))
		fail_msg("%s, %#zx = %#x: %s", r->name, d->at, d->value, at(&o, 40));
	close_lines(&o);
}

/* What does not prove right is not used: then the function stands alone, as the table has it. */
static void test_no_guess(void **state)
{
	const struct goimage_release *r = &goimage_releases[5];
	static const struct damage cases[] = {
	    {GOIMAGE_MODULE, 1, NULL},		    /* describes another table */
	    {GOIMAGE_MODULE + 8 * 4, 1, NULL},	    /* whose files are elsewhere */
	    {GOIMAGE_MODULE + 8 * 17, 9, NULL},	    /* with more functions */
	    {GOIMAGE_MODULE + 8 * 22, 9, NULL},	    /* another text */
	    {GOIMAGE_MODULE + 8 * 40, 1, NULL},	    /* calls are elsewhere */
	    {GOIMAGE_MODULE + 8 * 40 + 5, 1, NULL}, /* nowhere */
	    {GOIMAGE_CALLS + 4, 41, NULL},	    /* the middle of a name */
	    {GOIMAGE_CALLS + 7, 0x80, NULL},	    /* no name at all */
	    {GOIMAGE_CALLS + 8, 64, NULL},	    /* called from outside of the function */
	    {GOIMAGE_CALLS + 2, 1, NULL},	    /* what is always 0 */
	    {GOIMAGE_NAMES + 42, 3, NULL},	    /* a control character in a name */
	    {GOIMAGE_CALLS + 16 + 8, 40, NULL},	    /* called by itself, without end */
	    {GOIMAGE_STEPS + 4, 0x7e, NULL},	    /* call number 63 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		damaged(r, &cases[i], "main.f0 a.go:30(9)");
}

/* One function's record among good ones. */
static void test_bad_function(void **state)
{
	const struct goimage_release *r = &goimage_releases[5];
	static const struct damage cases[] = {
	    {GOIMAGE_FUNCTION + 4, 0xff, ""}, /* a name behind the names' end: none, no lines */
	    {GOIMAGE_FUNCTION + 20 + 2, 1,
	     "main.deepest ?:0(29) < main.deep ?:0(19) < main.f0 ?:0(9)"},
	    {GOIMAGE_FUNCTION + 24 + 2, 1,
	     "main.deepest a.go:0(29) < main.deep b.go:0(19) < "
	     "main.f0 a.go:0(9)"},
	    {GOIMAGE_FUNCTION + 28 + 3, 0xff, "main.f0 a.go:30(9)"}, /* numbers without end */
	    {GOIMAGE_FUNCTION + 32, 1,
	     "main.deepest b.go:30(29) < main.deep ?:0(19) < "
	     "main.f0 b.go:10(9)"}, /* another unit's files */
	    {GOIMAGE_FUNCTION + 36 + 3, 0x80,
	     "main.deepest a.go:30(29) < main.deep b.go:20(19) < "
	     "main.f0 a.go:10(0)"}, /* starts at a negative line */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		damaged(r, &cases[i], NULL);
}

static void test_bad_header(void **state)
{
	/* Magic, padding, how many, names, units, files, steps, table: far away. */
	static const size_t places[] = {0, 4, 7, 15, 36, 44, 52, 60, 68};
	uint8_t bytes[GOIMAGE_BYTES];
	struct opened o;

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		goimage_make(&goimage_releases[5], bytes);
		bytes[GOIMAGE_TABLE + places[i]] = 0x77;
		assert_int_equal(open_lines(&o, open_bytes(bytes, sizeof(bytes)), BYTES_MAX),
				 -ENOENT);
		close_lines(&o);
	}
	/* No functions; a table that is not all in the file; another table of the same name. */
	goimage_make(&goimage_releases[5], bytes);
	bytes[GOIMAGE_TABLE + 8] = 0;
	assert_int_equal(open_lines(&o, open_bytes(bytes, sizeof(bytes)), BYTES_MAX), -ENOENT);
	close_lines(&o);
	goimage_make(&goimage_releases[5], bytes);
	bytes[0x1200 + 2 * 64 + 24 + 3] = 1;
	assert_int_equal(open_lines(&o, open_bytes(bytes, sizeof(bytes)), BYTES_MAX), -ENOENT);
	close_lines(&o);
}

/* What was read is still known when the file is not open, and nothing else; also behind its end. */
static void test_not_open(void **state)
{
	uint8_t bytes[GOIMAGE_BYTES];
	struct lines lines;
	struct opened o;
	int fd;

	(void)state;
	goimage_make(&goimage_releases[5], bytes);
	fd = open_bytes(bytes, sizeof(bytes));
	assert_int_equal(open_lines(&o, dup(fd), BYTES_MAX), 0);
	golines_find(o.go, -1, GOIMAGE_VADDR + GOIMAGE_TEXT, &lines);
	assert_int_equal(lines.n, 0);
	assert_string_equal(at(&o, 0), "main.f0 a.go:10(9)");
	golines_find(o.go, -1, GOIMAGE_VADDR + GOIMAGE_TEXT, &lines);
	assert_string_equal(text_of(&lines), "main.f0 a.go:10(9)");
	golines_forget(o.go);
	assert_int_equal(ftruncate(fd, GOIMAGE_TABLE + 100), 0);
	assert_string_equal(at(&o, 0), "");
	close_lines(&o);
	close(fd);
}

static int open_workload(const char *name)
{
	const char *build = getenv("SCONCE_BUILD");
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/bench/workloads/go/%s", build ? build : "build", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		print_message("no Go here (make workloads)\n");
		skip();
	}
	return fd;
}

/* Every 97th byte of the text: the same with symbols and without, and with little memory. */
static void test_stripped(void **state)
{
	struct opened whole, bare, poor;
	unsigned named = 0, inlined = 0;
	char text[TEXT_MAX];
	struct lines lines;

	(void)state;
	assert_int_equal(open_lines(&whole, open_workload("go-chain"), BYTES_MAX), 0);
	assert_int_equal(open_lines(&bare, open_workload("go-bare"), BYTES_MAX), 0);
	assert_int_equal(open_lines(&poor, open_workload("go-bare"), 400000), 0);
	for (uint64_t i = 0; i < bare.text_bytes; i += 97) {
		golines_find(whole.go, whole.slot, whole.text + i, &lines);
		strcpy(text, text_of(&lines));
		named += lines.n > 0;
		inlined += lines.n > 1;
		golines_find(bare.go, bare.slot, bare.text + i, &lines);
		assert_string_equal(text_of(&lines), text);
		golines_find(poor.go, poor.slot, poor.text + i, &lines);
		assert_string_equal(text_of(&lines), text);
		assert_true(golines_bytes(poor.go) < 410000);
	}
	print_message("%u addresses named, %u of them of inlined functions; %zu bytes\n", named,
		      inlined, golines_bytes(bare.go));
	assert_true(named > 5000 && inlined > 500);
	golines_forget(bare.go);
	assert_true(golines_bytes(bare.go) < 10000);
	close_lines(&whole);
	close_lines(&bare);
	close_lines(&poor);
}

/* A file of the worker's, as the broker hands it over. */
static struct file *take(struct files *files, uint32_t id, int fd)
{
	struct message_file message = {.file_id = id, .key = {.device = 1, .inode = id}};
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	message.key.size_bytes = (uint64_t)st.st_size;
	snprintf(message.path, sizeof(message.path), "/go-%u", id);
	files_message(files, &message, fd);
	return files_get(files, id);
}

/* Of several programs together no more is kept than is allowed, and each has its names all the
 * time; one that was closed has them again when it is back. */
static void test_files(void **state)
{
	struct filenames_found found[2];
	struct files files;
	struct reader reader;
	struct file *file[2];
	uint64_t generation;

	(void)state;
	reader_open(&reader, false);
	assert_int_equal(files_open(&files, &reader, NULL, 1 << 20), 0);
	file[0] = take(&files, 1, open_workload("go-chain"));
	file[1] = take(&files, 2, open_workload("go-bare"));
	for (uint64_t at = 0x1000; at < 0x60000; at += 61) {
		filenames_find(&files, file[0], at, &found[0]);
		filenames_find(&files, file[1], at, &found[1]);
		assert_int_equal(found[0].address, found[1].address);
		assert_int_equal(found[0].lines.n, found[1].lines.n);
		assert_true(found[0].lines.n > 0 && files.symbol_bytes <= 1 << 20);
	}
	assert_true(files.evictions == 0 && files.indexed == 2 && files.symbol_bytes > 100000);
	/* Who was not asked for longest has to go when another one grows. */
	files_get(&files, 2);
	files.symbol_bytes_max = files.symbol_bytes;
	for (uint64_t at = 0x1000; at < 0x90000 && !files.evictions; at += 4096)
		filenames_find(&files, file[1], at, &found[1]);
	assert_true(files.evictions == 1 && files.symbol_bytes <= files.symbol_bytes_max);
	files.symbol_bytes_max = 1 << 20;
	for (uint32_t i = 0; i < READER_FILES_MAX; i++)
		take(&files, 10 + i, open("/dev/null", O_RDONLY | O_CLOEXEC));
	assert_true(file[0]->slot < 0 && !file_is_known(file[0]));
	filenames_find(&files, file[0], 0x1000, &found[0]);
	assert_int_equal(found[0].lines.n, 0);
	generation = file[0]->generation;
	take(&files, 1, open_workload("go-chain"));
	assert_true(file_is_known(file[0]) && file[0]->generation != generation);
	filenames_find(&files, file[0], 0x1000, &found[0]);
	assert_true(found[0].lines.n > 0);
	files_close(&files);
	reader_close(&reader);
}

static void answer(const char *path)
{
	struct opened o;
	struct lines lines;
	uint64_t vaddr;

	if (open_lines(&o, open(path, O_RDONLY | O_CLOEXEC), BYTES_MAX)) {
		fprintf(stderr, "%s: no Go program\n", path);
		exit(1);
	}
	while (scanf("%" SCNx64, &vaddr) == 1) {
		golines_find(o.go, o.slot, vaddr, &lines);
		printf("%#" PRIx64 "\n", vaddr);
		for (uint32_t i = 0; i < lines.n; i++)
			printf("%s\n%s:%u\n", lines.line[i].name,
			       lines.line[i].file ? lines.line[i].file : "", lines.line[i].line);
		printf("\n");
	}
	close_lines(&o);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void measure(const char *path, unsigned n)
{
	double start = now_us(), opened, cold, warm;
	uint64_t seed = 1, *places = calloc(n, sizeof(*places));
	struct lines lines;
	struct opened o;

	if (open_lines(&o, open(path, O_RDONLY | O_CLOEXEC), BYTES_MAX) || !places)
		exit(1);
	for (unsigned i = 0; i < n; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		places[i] = o.text + (seed >> 16) % o.text_bytes;
	}
	opened = now_us();
	for (unsigned i = 0; i < n; i++)
		golines_find(o.go, o.slot, places[i], &lines);
	cold = now_us();
	for (unsigned i = 0; i < n; i++)
		golines_find(o.go, o.slot, places[i], &lines);
	warm = now_us();
	printf("%s: open %.0f us; %u names cold %.1f us each, warm %.2f us; %zu bytes\n", path,
	       opened - start, n, (cold - opened) / n, (warm - cold) / n, golines_bytes(o.go));
	close_lines(&o);
	free(places);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_releases),	 cmocka_unit_test(test_no_guess),
	    cmocka_unit_test(test_bad_function), cmocka_unit_test(test_bad_header),
	    cmocka_unit_test(test_not_open),	 cmocka_unit_test(test_stripped),
	    cmocka_unit_test(test_files),
	};

	if (argc > 3 && !strcmp(argv[1], "--time"))
		measure(argv[3], (unsigned)atoi(argv[2]));
	else if (argc > 1)
		answer(argv[1]);
	return argc > 1 ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
