/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of ranges: a table of insertions, and a random run against a byte-wise model. */
#include "sampler/ranges.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SET_MAX 64

struct text_case {
	const char *name;
	struct record_range before[4], put, after[5];
};

/* start, end, offset, file */
#define R(s, e, o, f)                                                                              \
	{                                                                                          \
		.start = s, .end = e, .offset = o, .file_id = f                                    \
	}
#define ANON(s, e)                                                                                 \
	{                                                                                          \
		.start = s, .end = e, .flags = RANGE_ANON                                          \
	}

static const struct text_case cases[] = {
    {"into nothing", {{0}}, R(10, 20, 0, 1), {R(10, 20, 0, 1)}},
    {"before", {R(30, 40, 0, 1)}, R(10, 20, 0, 2), {R(10, 20, 0, 2), R(30, 40, 0, 1)}},
    {"behind", {R(30, 40, 0, 1)}, R(50, 60, 0, 2), {R(30, 40, 0, 1), R(50, 60, 0, 2)}},
    {"same place, other file", {R(10, 20, 0, 1)}, R(10, 20, 0, 2), {R(10, 20, 0, 2)}},
    {"over all", {R(10, 20, 0, 1), R(30, 40, 0, 2)}, R(5, 50, 7, 3), {R(5, 50, 7, 3)}},
    {"cuts the left one's end",
     {R(10, 30, 100, 1)},
     R(20, 40, 0, 2),
     {R(10, 20, 100, 1), R(20, 40, 0, 2)}},
    {"cuts the right one's beginning",
     {R(20, 40, 100, 1)},
     R(10, 30, 0, 2),
     {R(10, 30, 0, 2), R(30, 40, 110, 1)}},
    {"out of the middle",
     {R(10, 40, 100, 1)},
     R(20, 30, 0, 2),
     {R(10, 20, 100, 1), R(20, 30, 0, 2), R(30, 40, 120, 1)}},
    {"cuts two",
     {R(10, 20, 0, 1), R(25, 28, 0, 2), R(30, 40, 0, 3)},
     R(15, 35, 0, 4),
     {R(10, 15, 0, 1), R(15, 35, 0, 4), R(35, 40, 5, 3)}},
    {"grows", {R(10, 20, 100, 1)}, R(20, 30, 110, 1), {R(10, 30, 100, 1)}},
    {"touches, but another part of the file",
     {R(10, 20, 100, 1)},
     R(20, 30, 500, 1),
     {R(10, 20, 100, 1), R(20, 30, 500, 1)}},
    {"anonymous grows", {ANON(10, 20)}, ANON(20, 30), {ANON(10, 30)}},
    {"grows over the next",
     {ANON(10, 20), R(25, 40, 0, 1)},
     ANON(20, 30),
     {ANON(10, 30), R(30, 40, 5, 1)}},
};

static uint32_t set_count(const struct record_range *set, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && set[n].end)
		n++;
	return n;
}

/* Whether a byte of the new one was another's. */
static int replaces(const struct text_case *c)
{
	int found = 0;

	for (uint32_t i = 0; i < set_count(c->before, 4); i++) {
		const struct record_range *old = &c->before[i];
		bool same = old->file_id == c->put.file_id && old->flags == c->put.flags;

		found |= !same && old->start < c->put.end && c->put.start < old->end;
	}
	return found;
}

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct text_case *c = &cases[i];
		struct record_range set[8] = {0};
		uint32_t n = set_count(c->before, 4), want = set_count(c->after, 5);

		print_message("%s\n", c->name);
		memcpy(set, c->before, sizeof(c->before));
		assert_int_equal(ranges_insert(set, &n, 8, &c->put), replaces(c));
		assert_int_equal(n, want);
		assert_memory_equal(set, c->after, n * sizeof(*set));
		assert_true(ranges_has(set, n, &c->put));
	}
}

static void test_full(void **state)
{
	struct record_range set[3] = {R(10, 20, 0, 1), R(30, 40, 0, 1)}, before[3];
	struct record_range put = R(50, 60, 0, 1);
	uint32_t n = 2;

	(void)state;
	memcpy(before, set, sizeof(set));
	assert_int_equal(ranges_insert(set, &n, 3, &put), -ENOSPC);
	assert_int_equal(n, 2);
	assert_memory_equal(set, before, sizeof(set));
}

/* Every byte of the model holds the file and offset that was mapped there last. */
static void test_random_against_model(void **state)
{
	enum { BYTES = 200 };
	struct record_range set[SET_MAX] = {0};
	struct {
		uint32_t file;
		uint64_t offset;
	} model[BYTES] = {0};
	uint32_t n = 0;

	(void)state;
	srandom(4041);
	for (int round = 0; round < 20000; round++) {
		uint64_t start = (uint64_t)random() % (BYTES - 1);
		uint64_t end = start + 1 + (uint64_t)random() % (BYTES - start - 1);
		struct record_range put =
		    R(start, end, (uint64_t)random() % 4 * 8 + start, 1 + (uint32_t)random() % 3);

		if (end - start > 40)
			continue;
		assert_true(ranges_insert(set, &n, SET_MAX, &put) >= 0);
		for (uint64_t b = start; b < end; b++) {
			model[b].file = put.file_id;
			model[b].offset = put.offset + b - start;
		}
		for (uint32_t i = 0, b = 0; b < BYTES; b++) {
			while (i < n && set[i].end <= b)
				i++;
			if (i < n && set[i].start <= b) {
				assert_int_equal(set[i].file_id, model[b].file);
				assert_int_equal(set[i].offset + b - set[i].start, model[b].offset);
			} else {
				assert_int_equal(model[b].file, 0);
			}
		}
		for (uint32_t i = 0; i < n; i++)
			assert_true(set[i].start < set[i].end &&
				    (i == 0 || set[i - 1].end <= set[i].start));
		if (n > SET_MAX - 8) {
			n = 0;
			memset(model, 0, sizeof(model));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_full),
	    cmocka_unit_test(test_random_against_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
