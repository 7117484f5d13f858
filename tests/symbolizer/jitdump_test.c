/* SPDX-License-Identifier: Apache-2.0 */
/* Jitdumps: code that is loaded, moved and replaced, at the time of the sample; lines; files that
 * are cut, wrong or too large. */
#include "symbolizer/jitdump.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ROOM (1u << 20)
#define NOW  1000000

static struct jitdump dump;
static char file[1u << 20];
static size_t file_bytes;
static uint64_t fed;

static void put(const void *bytes, size_t n)
{
	assert_true(n <= sizeof(file) - file_bytes);
	memcpy(file + file_bytes, bytes, n);
	file_bytes += n;
}

static void put_u32(uint32_t value)
{
	put(&value, sizeof(value));
}

static void put_u64(uint64_t value)
{
	put(&value, sizeof(value));
}

static void put_header(uint32_t magic, uint32_t version, uint64_t flags)
{
	put_u32(magic);
	put_u32(version);
	put_u32(40);
	put_u32(62);
	put_u32(0);
	put_u32(4711);
	put_u64(5);
	put_u64(flags);
}

static void put_prefix(uint32_t id, size_t body, uint64_t time)
{
	put_u32(id);
	put_u32((uint32_t)(16 + body));
	put_u64(time);
}

static void put_load(uint64_t time, uint64_t start, uint32_t bytes, const char *name)
{
	static const char code[4096];

	put_prefix(0, 40 + strlen(name) + 1 + bytes, time);
	put_u32(4711);
	put_u32(4711);
	put_u64(start);
	put_u64(start);
	put_u64(bytes);
	put_u64(1);
	put(name, strlen(name) + 1);
	put(code, bytes);
}

static void put_move(uint64_t time, uint64_t from, uint64_t to, uint64_t bytes)
{
	put_prefix(1, 48, time);
	put_u32(4711);
	put_u32(4711);
	put_u64(to);
	put_u64(from);
	put_u64(to);
	put_u64(bytes);
	put_u64(1);
}

struct at {
	uint64_t address;
	uint32_t line;
	const char *file;
};

static void put_lines(uint64_t start, const struct at *at, uint64_t n)
{
	size_t body = 16;

	for (uint64_t i = 0; i < n; i++)
		body += 16 + strlen(at[i].file) + 1;
	put_prefix(2, body, 7);
	put_u64(start);
	put_u64(n);
	for (uint64_t i = 0; i < n; i++) {
		put_u64(at[i].address);
		put_u32(at[i].line);
		put_u32(0);
		put(at[i].file, strlen(at[i].file) + 1);
	}
}

/* What is new, in pieces of so many bytes, as it would be read: from where it was left. */
static void feed(size_t step)
{
	for (size_t end = fed + step;; end += step) {
		size_t n = end < file_bytes ? end : file_bytes;

		while (fed < n) {
			char *exact = malloc(n - fed);
			uint64_t by;

			memcpy(exact, file + fed, n - fed);
			by = jitdump_feed(&dump, exact, n - fed, NOW);
			free(exact);
			assert_int_equal(jitdump_settle(&dump), 0);
			fed += by;
			if (by == 0)
				break;
		}
		if (end >= file_bytes)
			return;
	}
}

static int setup(void **state)
{
	(void)state;
	jitdump_init(&dump, ROOM);
	file_bytes = fed = 0;
	put_header(0x4a695444, 1, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	jitdump_fini(&dump);
	return 0;
}

static const struct line *find(uint64_t address, uint64_t time)
{
	static struct lines lines;

	jitdump_find(&dump, address, time, &lines);
	return lines.n ? &lines.line[0] : NULL;
}

static void assert_name(uint64_t address, uint64_t time, const char *name)
{
	const struct line *line = find(address, time);

	if (!name)
		assert_null(line);
	else
		assert_string_equal(line ? line->name : "(nothing)", name);
}

static void assert_line(uint64_t address, const char *name, uint32_t number)
{
	const struct line *line = find(address, NOW);

	assert_non_null(line);
	assert_int_equal(line->line, number);
	if (name)
		assert_string_equal(line->file ? line->file : "(nothing)", name);
	else
		assert_null(line->file);
}

static void test_loads(void **state)
{
	(void)state;
	put_load(100, 0x1000, 0x40, "first");
	put_load(110, 0x2000, 0x20, "second");
	put_prefix(3, 0, 120);
	feed(file_bytes);
	assert_int_equal(fed, file_bytes);
	assert_name(0xfff, NOW, NULL);
	assert_name(0x1000, NOW, "first");
	assert_name(0x103f, 100, "first");
	assert_name(0x1000, 99, NULL);
	assert_name(0x1040, NOW, NULL);
	assert_name(0x201f, NOW, "second");
	assert_line(0x1000, NULL, 0);
}

/* The same whatever comes at once; code that is not written yet is passed over. */
static void test_pieces(void **state)
{
	static const struct at lines[] = {{0x3000, 5, "a.c"}};

	(void)state;
	put_load(100, 0x1000, 0x400, "first");
	put_move(110, 0x1000, 0x2000, 0x400);
	put_lines(0x3000, lines, 1);
	put_load(120, 0x3000, 0x20, "third");
	for (size_t step = 1; step < 600; step += step < 80 ? 1 : 97) {
		jitdump_fini(&dump);
		jitdump_init(&dump, ROOM);
		fed = 0;
		feed(step);
		assert_int_equal(fed, file_bytes);
		assert_name(0x2000, NOW, "first");
		assert_name(0x3000, NOW, "third");
		assert_line(0x3000, "a.c", 5);
		assert_int_equal(dump.refused, 0);
	}
}

static void test_times(void **state)
{
	(void)state;
	put_load(100, 0x1000, 0x40, "first");
	put_load(200, 0x1000, 0x40, "second");
	feed(file_bytes);
	put_load(300, 0x1020, 0x40, "third");
	put_move(400, 0x1020, 0x5000, 0x40);
	feed(file_bytes);
	assert_name(0x1000, 150, "first");
	assert_name(0x1000, 200, "second");
	assert_name(0x1020, 99, NULL);
	assert_name(0x1020, 150, "first");
	assert_name(0x1020, 250, "second");
	assert_name(0x1020, 350, "third");
	assert_name(0x1020, 400, NULL);
	assert_name(0x1010, 500, "second");
	assert_name(0x5000, 350, NULL);
	assert_name(0x503f, 400, "third");
}

static void test_moves(void **state)
{
	static const struct at lines[] = {{0x1000, 10, "a.c"}, {0x1010, 11, "a.c"}};

	(void)state;
	put_lines(0x1000, lines, 2);
	put_load(100, 0x1000, 0x40, "first");
	put_move(110, 0x1000, 0x2000, 0x40);
	put_move(120, 0x2000, 0x2020, 0x40); /* over itself */
	put_move(130, 0x7777, 0x8000, 0x40); /* of what was never there */
	put_move(140, 0x2021, 0x8000, 0x40); /* not of its beginning */
	feed(file_bytes);
	assert_name(0x1000, NOW, NULL);
	assert_name(0x2000, NOW, NULL);
	assert_name(0x2020, NOW, "first");
	assert_line(0x2020, "a.c", 10);
	assert_line(0x2030, "a.c", 11);
	assert_name(0x8000, NOW, NULL);
	assert_int_equal(dump.refused, 2);
}

static void test_lines(void **state)
{
	static const struct at lines[] = {{0x1010, 11, "/src/a.c"}, {0x1004, 10, "/src/a.c"},
					  {0x1020, 12, "\xff"},	    {0x1030, 5, "/src/b.c"},
					  {0x1030, 6, "/src/b.c"},  {0x20, 99, "/src/before.c"}};
	static const struct at garbled[] = {{0x5000, 1, "\x8e\x0b"},
					    {0x5004, 2, "/src/\xc3"},
					    {0x5008, 3, "\x7f"},
					    {0x5010, 4, "/src/\xc3\xa4.c"}};
	static const struct at others[] = {{0x9000, 1, "/src/never.c"}};

	(void)state;
	put_lines(0x5000, garbled, 4);
	put_load(100, 0x5000, 0x40, "garbled");
	put_lines(0x9000, others, 1);
	put_lines(0x1000, lines, 6);
	put_load(100, 0x1000, 0x40, "first");
	put_load(100, 0x2000, 0x40, "second");
	feed(file_bytes);
	assert_line(0x1000, NULL, 0);
	assert_line(0x1004, "/src/a.c", 10);
	assert_line(0x100f, "/src/a.c", 10);
	assert_line(0x1010, "/src/a.c", 11);
	assert_line(0x102f, "/src/a.c", 12);
	assert_line(0x103f, "/src/b.c", 6);
	assert_line(0x2000, NULL, 0);
	assert_line(0x500f, NULL, 0);
	assert_line(0x5010, "/src/\xc3\xa4.c", 4);
}

/* As V8 counts them; one that begins where it ought to says that it is somebody else's dump. */
static void test_shifted_lines(void **state)
{
	(void)state;
	for (uint64_t i = 1; i < 20; i++) {
		const struct at lines[] = {{0x1000 * i + 64, 10, "a.js"},
					   {0x1000 * i + 80, 11, "a.js"}};

		put_lines(0x1000 * i, lines, 2);
		put_load(100, 0x1000 * i, 0x200, "function");
	}
	feed(file_bytes);
	assert_line(0x1000, "a.js", 10);
	assert_line(0x1010, "a.js", 11);
	put_lines(0x90000, (const struct at[]){{0x90000, 10, "b.js"}}, 1);
	put_load(100, 0x90000, 0x200, "function");
	feed(file_bytes);
	assert_line(0x90000, "b.js", 10);
	assert_line(0x1010, NULL, 0);
	assert_line(0x1040, "a.js", 10);
}

static void test_other_clocks(void **state)
{
	(void)state;
	file_bytes = 0;
	put_header(0x4a695444, 1, 1);
	put_load(900, 0x1000, 0x40, "first");
	feed(file_bytes);
	assert_name(0x1000, 100, "first");
	jitdump_fini(&dump);
	jitdump_init(&dump, ROOM);
	file_bytes = fed = 0;
	put_header(0x4a695444, 1, 0);
	put_load(NOW + 3600000000000, 0x1000, 0x40, "second");
	feed(file_bytes);
	assert_name(0x1000, 100, "second");
}

static void test_broken(void **state)
{
	static const uint32_t magics[] = {0x4454694a, 0, 0x4a695444};

	(void)state;
	for (int i = 0; i < 3; i++) {
		jitdump_fini(&dump);
		jitdump_init(&dump, ROOM);
		file_bytes = fed = 0;
		put_header(magics[i], i == 2 ? 2 : 1, 0);
		put_load(100, 0x1000, 0x40, "first");
		feed(file_bytes);
		assert_true(dump.broken);
		assert_name(0x1000, NOW, NULL);
	}
	jitdump_fini(&dump);
	jitdump_init(&dump, ROOM);
	file_bytes = fed = 0;
	put_header(0x4a695444, 1, 0);
	put_load(100, 0x1000, 0x40, "first");
	put_u32(0);
	put_u32(15); /* shorter than its own prefix */
	put_u64(0);
	put_load(100, 0x2000, 0x40, "second");
	feed(file_bytes);
	assert_true(dump.broken);
	assert_name(0x1000, NOW, "first");
	assert_name(0x2000, NOW, NULL);
}

static void test_hostile_records(void **state)
{
	(void)state;
	put_prefix(0, 4, 1); /* no room for a load */
	put_u32(1);
	put_prefix(1, 8, 1);
	put_u64(1);
	put_prefix(2, 8, 1);
	put_u64(1);
	put_prefix(77, 8, 1);
	put_u64(1);
	put_load(1, UINT64_MAX - 8, 0x40, "over the end");
	put_load(1, 0x1000, 0, "empty");
	put_load(1, 0x1000, 0x10, "");
	put_prefix(2, 40, 1); /* more entries than it holds, and a name without an end */
	put_u64(0x3000);
	put_u64(UINT64_MAX);
	put_u64(0x3000);
	put_u32(7);
	put_u32(0);
	put("notended", 8);
	put_load(1, 0x3000, 0x10, "behind");
	put_prefix(0, 0xffffff00, 1); /* longer than the file */
	put_u64(0);
	feed(file_bytes);
	assert_false(dump.broken);
	assert_name(0x1000, NOW, NULL);
	assert_name(0x3000, NOW, "behind");
	assert_line(0x3000, NULL, 0);
	assert_name(UINT64_MAX - 8, NOW, NULL);
}

static void test_full(void **state)
{
	(void)state;
	for (int round = 0; round < 30; round++) {
		file_bytes = fed = 0;
		if (round == 0)
			put_header(0x4a695444, 1, 0);
		for (uint64_t i = 0; i < 2000; i++)
			put_load(100, (uint64_t)(round + 1) << 20 | i << 5, 0x20, "a function");
		feed(file_bytes);
		assert_true(jitdump_bytes(&dump) <= 2 * ROOM);
	}
	assert_true(dump.full);
	assert_true(dump.codes_n > 5000 && dump.refused > 5000);
	assert_name(1 << 20, NOW, "a function");
	file_bytes = fed = 0;
	put_load(200, 1 << 20, 0x20, "another");
	feed(file_bytes);
	assert_name(1 << 20, NOW, NULL);
	assert_name(1 << 20 | 1 << 5, NOW, "a function");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_loads, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_times, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_moves, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_shifted_lines, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_other_clocks, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_broken, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_hostile_records, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_full, setup, teardown),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
