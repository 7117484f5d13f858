/* SPDX-License-Identifier: Apache-2.0 */
/* Perf maps: what is a line and what is none, later lines over earlier ones, pieces of text of any
 * length, and limits. */
#include "symbolizer/perfmap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ROOM (1u << 20)

static struct perfmap map;

static int setup(void **state)
{
	(void)state;
	perfmap_init(&map, ROOM);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	perfmap_fini(&map);
	return 0;
}

static void feed(const char *text, size_t n, size_t taken)
{
	/* Of its very size, so that reading on is found. */
	char *exact = malloc(n ? n : 1);

	memcpy(exact, text, n);
	assert_int_equal(perfmap_feed(&map, exact, n), taken);
	free(exact);
	assert_int_equal(perfmap_settle(&map), 0);
}

static void feed_text(const char *text)
{
	feed(text, strlen(text), strlen(text));
}

static void assert_name(uint64_t address, const char *name)
{
	const char *found = perfmap_find(&map, address);

	if (!name)
		assert_null(found);
	else
		assert_string_equal(found ? found : "(nothing)", name);
}

static void test_lines(void **state)
{
	(void)state;
	feed_text("1000 10 first\n"
		  "0x2000 0x20 second one, with blanks \n"
		  "2020 8 LazyCompile:*third /a b/c.js:1:2\r\n"
		  "ABCDEF00 1 upper\n"
		  "3000\t10\ttabs\n");
	assert_int_equal(map.lines, 5);
	assert_int_equal(map.refused, 0);
	assert_name(0xfff, NULL);
	assert_name(0x1000, "first");
	assert_name(0x100f, "first");
	assert_name(0x1010, NULL);
	assert_name(0x201f, "second one, with blanks");
	assert_name(0x2020, "LazyCompile:*third /a b/c.js:1:2");
	assert_name(0x2028, NULL);
	assert_name(0xabcdef00, "upper");
	assert_name(0x3001, "tabs");
	assert_name(UINT64_MAX, NULL);
	assert_name(0, NULL);
}

static void test_no_lines(void **state)
{
	static const char *const none[] = {"\n",
					   " \n",
					   "1000\n",
					   "1000 10\n",
					   "1000 10 \n",
					   "1000 10  \r\n",
					   "1000 0 empty\n",
					   " 1000 10 blank\n",
					   "x000 10 no number\n",
					   "1000 1x no number\n",
					   "0x 10 no digits\n",
					   "-1 10 signed\n",
					   "1000 -1 signed\n",
					   "11000000000000000 10 too many digits\n",
					   "1000 10000000000000001 too many digits\n",
					   "ffffffffffffffff 10 over the end\n",
					   "ffffffffffffff 10 beyond user space\n",
					   "1000 ffffffffffffffff all\n",
					   "1000 40000001 too long\n",
					   "1000,10,name\n",
					   "# a comment\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		feed_text(none[i]);
		assert_int_equal(map.lines, 0);
		assert_int_equal(map.refused, i + 1);
		assert_name(0x1000, NULL);
	}
	feed("1000 10 \0name\n", 14, 14);
	assert_int_equal(map.lines, 0);
	feed("1000 10 a\0b\n", 12, 12);
	assert_name(0x1000, "a");
}

static void test_later_wins(void **state)
{
	(void)state;
	feed_text("1000 100 old\n1040 20 inside\n");
	assert_name(0x103f, "old");
	assert_name(0x1040, "inside");
	assert_name(0x105f, "inside");
	assert_name(0x1060, "old");
	feed_text("1000 100 new\n");
	assert_name(0x1040, "new");
	feed_text("ff0 20 before\n10f0 20 behind\n2000 10 a\n2000 10 b\n2000 8 c\n");
	assert_name(0xfff, "before");
	assert_name(0x1010, "new");
	assert_name(0x100f, "before");
	assert_name(0x10ef, "new");
	assert_name(0x110f, "behind");
	assert_name(0x2007, "c");
	assert_name(0x2008, "b");
	feed_text("500 2000 over all\n");
	assert_name(0x500, "over all");
	assert_name(0x2008, "over all");
	assert_name(0x24ff, "over all");
	assert_name(0x2500, NULL);
	assert_int_equal(map.index.n, 1);
}

/* Beside a table with an entry for each byte. */
static void test_against_bytes(void **state)
{
	enum { BYTES = 512, LINES = 4000 };
	static int owner[BYTES];
	char line[64];
	unsigned x = 1;

	(void)state;
	memset(owner, 0xff, sizeof(owner));
	for (int i = 0; i < LINES; i++) {
		unsigned start, n;

		x = x * 1664525 + 1013904223;
		start = (x >> 8) % BYTES;
		n = 1 + (x >> 20) % (x & 128 ? 200 : 12);
		n = n > BYTES - start ? BYTES - start : n;
		perfmap_feed(
		    &map, line,
		    (size_t)snprintf(line, sizeof(line), "%x %x f%d\n", 0x7000 + start, n, i));
		for (unsigned k = start; k < start + n; k++)
			owner[k] = i;
		if (x >> 24 & 7)
			continue;
		assert_int_equal(perfmap_settle(&map), 0);
		for (unsigned k = 0; k < BYTES; k++) {
			snprintf(line, sizeof(line), "f%d", owner[k]);
			assert_name(0x7000 + k, owner[k] < 0 ? NULL : line);
		}
	}
}

static void test_pieces(void **state)
{
	static const char text[] = "1000 10 one\n2000 20 two\n3000 30 three\n";
	size_t n = sizeof(text) - 1;

	(void)state;
	/* A line counts when its end is there. */
	feed("1000 10 o", 9, 0);
	assert_name(0x1000, NULL);
	feed("", 0, 0);
	for (size_t step = 1; step < n; step++) {
		size_t at = 0, end = step;

		perfmap_fini(&map);
		perfmap_init(&map, ROOM);
		while (at < n) {
			at += perfmap_feed(&map, text + at, (end < n ? end : n) - at);
			end += step;
		}
		assert_int_equal(perfmap_settle(&map), 0);
		assert_int_equal(map.lines, 3);
		assert_name(0x1000, "one");
		assert_name(0x201f, "two");
		assert_name(0x3000, "three");
	}
}

static void test_long_lines(void **state)
{
	static char text[3 * PERFMAP_LINE_MAX];
	char name[PERFMAP_NAME_MAX + 1];

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "1000 10 ", 8);
	text[4000] = '\n';
	feed(text, 4001, 4001);
	memset(name, 'x', sizeof(name));
	name[PERFMAP_NAME_MAX] = 0;
	assert_name(0x1000, name);
	/* No end in sight: nothing of it is kept, and what follows its end counts. */
	text[4000] = 'x';
	memcpy(text, "2000 10 ", 8);
	feed(text, sizeof(text), sizeof(text));
	assert_true(map.skipping);
	feed(text, sizeof(text), sizeof(text));
	feed_text("xxx\n3000 10 behind\n");
	assert_name(0x2000, NULL);
	assert_name(0x3000, "behind");
	assert_int_equal(map.lines, 2);
	assert_int_equal(map.refused, 1);
}

/* Much that is over by now gives its room back. */
static void test_reuse_of_room(void **state)
{
	char line[64];

	(void)state;
	for (int i = 0; i < 200000; i++) {
		perfmap_feed(&map, line,
			     (size_t)snprintf(line, sizeof(line), "%x 10 function number %d\n",
					      0x10000 + 16 * (i % 1000), i));
		if (i % 5000 == 4999)
			assert_int_equal(perfmap_settle(&map), 0);
	}
	assert_false(map.full);
	assert_int_equal(map.lines, 200000);
	assert_int_equal(map.index.n, 1000);
	assert_name(0x10000, "function number 199000");
	assert_name(0x10000 + 16 * 999, "function number 199999");
	assert_true(perfmap_bytes(&map) <= 2 * ROOM);
}

static void test_full(void **state)
{
	char line[PERFMAP_NAME_MAX];

	(void)state;
	for (int i = 0; i < 200000; i++)
		perfmap_feed(&map, line,
			     (size_t)snprintf(line, sizeof(line), "%x 10 function number %d\n",
					      0x10000 + 16 * i, i));
	assert_int_equal(perfmap_settle(&map), 0);
	assert_true(map.full);
	assert_true(map.lines > 10000 && map.refused > 10000);
	assert_true(perfmap_bytes(&map) <= 2 * ROOM);
	assert_name(0x10000, "function number 0");
	/* Rather no name than an old one. */
	for (int i = 0; i < 2000; i++)
		perfmap_feed(&map, line,
			     (size_t)snprintf(line, sizeof(line), "%x 10 another %0900d\n",
					      0x10000 + 16 * i, i));
	assert_int_equal(perfmap_settle(&map), 0);
	assert_name(0x10000 + 16 * 1999, NULL);
	assert_name(0x10000 + 16 * 2000, "function number 2000");
	assert_true(perfmap_bytes(&map) <= 2 * ROOM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_no_lines, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_later_wins, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_against_bytes, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_long_lines, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_reuse_of_room, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_full, setup, teardown),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
