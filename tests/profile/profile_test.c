/* SPDX-License-Identifier: Apache-2.0 */
/* profile/profile.c: equal things have one id, samples add up, and the limit holds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/profile/build.h"

static void test_strings(void **state)
{
	struct profile *p = profile_new(1 << 20);
	char longer[PROFILE_STRING_MAX + 100];
	uint32_t id;

	(void)state;
	id = build_string(p, "abc");
	assert_int_equal(id, 1);
	assert_int_equal(build_string(p, "abc"), id);
	assert_int_equal(profile_string(p, "abcd", 3), id);
	assert_int_equal(profile_string(p, "abc\0def", 7), id);
	assert_int_not_equal(build_string(p, "abd"), id);
	assert_int_equal(build_string(p, ""), 0);
	assert_string_equal(profile_text(p, 0), "");
	/* UTF-8 passes, everything else becomes '?' */
	assert_string_equal(profile_text(p, build_string(p, "gr\xc3\xbc\xc3\x9f")),
			    "gr\xc3\xbc\xc3\x9f");
	assert_string_equal(profile_text(p, build_string(p, "a\xff\xc3(\xed\xa0\x80\xc0\x80")),
			    "a?"
			    "?(?"
			    "?"
			    "?"
			    "?"
			    "?");
	memset(longer, 'x', sizeof(longer));
	assert_int_equal(strlen(profile_text(p, profile_string(p, longer, sizeof(longer)))),
			 PROFILE_STRING_MAX);
	profile_free(p);
}

static void test_interning(void **state)
{
	struct profile *p = build_profile();
	uint32_t functions = profile_functions_n(p), resources = profile_resources_n(p);
	uint32_t a, b;

	(void)state;
	build_function(p, "main", "b.c");
	assert_int_equal(profile_functions_n(p), functions);
	build_function(p, "main", "other.c");
	assert_int_equal(profile_functions_n(p), functions + 1);
	a = build_string(p, "k1");
	b = build_string(p, "k2");
	/* the order of attributes does not matter, and the first of equal keys counts */
	assert_int_equal(
	    profile_resource(p, (struct profile_attribute[]){{a, b}, {b, a}}, 2),
	    profile_resource(p, (struct profile_attribute[]){{b, a}, {a, b}, {b, b}}, 3));
	assert_int_equal(profile_resources_n(p), resources + 1);
	profile_free(p);
}

static void test_merge(void **state)
{
	struct profile *p = build_profile();
	struct profile_sample sample;
	uint64_t count;

	(void)state;
	assert_int_equal(profile_samples_total(p), BUILD_TOTAL);
	assert_int_equal(profile_samples_n(p), 5);
	sample = *profile_sample_at(p, 1, &count);
	assert_int_equal(count, 3);
	assert_int_equal(profile_add(p, &sample, 10), 0);
	assert_int_equal(profile_samples_n(p), 5);
	profile_sample_at(p, 1, &count);
	assert_int_equal(count, 13);
	sample.tid++;
	sample.pid++;
	assert_int_equal(profile_add(p, &sample, 1), 0);
	assert_int_equal(profile_samples_n(p), 6);
	assert_int_equal(profile_samples_total(p), BUILD_TOTAL + 11);
	profile_clear(p);
	assert_int_equal(profile_bytes(p), 0);
	assert_int_equal(profile_samples_n(p), 0);
	profile_free(p);
}

static void test_bad_ids(void **state)
{
	struct profile *p = build_profile();
	uint32_t big[PROFILE_LOCATIONS_MAX + 1] = {0};

	(void)state;
	assert_int_equal(profile_function(p, &(struct profile_function){.name = 0}), 0);
	assert_int_equal(profile_function(p, &(struct profile_function){.name = 100000}), 0);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(profile_location(p, &(struct profile_location){.mapping = 77}, NULL), 0);
	assert_int_equal(profile_stack(p, (uint32_t[]){1, 0}, 2), 0);
	assert_int_equal(profile_stack(p, (uint32_t[]){1, 1000}, 2), 0);
	assert_int_equal(profile_stack(p, big, PROFILE_LOCATIONS_MAX + 1), 0);
	assert_int_equal(profile_add(p, &(struct profile_sample){.resource = 0}, 1), -EINVAL);
	assert_int_equal(profile_add(p, &(struct profile_sample){.resource = 99}, 1), -EINVAL);
	assert_int_equal(profile_add(p, &(struct profile_sample){.resource = 1, .stack = 99}, 1),
			 -EINVAL);
	assert_int_equal(profile_samples_total(p), BUILD_TOTAL);
	profile_free(p);
}

static void test_frames(void **state)
{
	struct profile *p = build_profile();
	struct profile_frame frames[8];
	const struct profile_sample *sample = profile_sample_at(p, 1, NULL);

	(void)state;
	assert_int_equal(profile_frames(p, sample->stack, frames, 8), 5);
	assert_string_equal(frames[0].name, "vfs_read");
	assert_true(frames[0].kernel);
	assert_string_equal(frames[1].name, "leaf");
	assert_true(frames[1].inlined);
	assert_int_equal(frames[1].line, 7);
	assert_string_equal(frames[2].name, "helper");
	assert_false(frames[2].inlined);
	assert_string_equal(frames[4].name, "main");
	assert_string_equal(frames[4].module, "/usr/bin/prog");
	assert_int_equal(profile_frames(p, sample->stack, frames, 2), 5);
	sample = profile_sample_at(p, 4, NULL);
	assert_int_equal(profile_frames(p, sample->stack, frames, 8), 1);
	assert_string_equal(frames[0].name, "[prog+0x1abc]");
	assert_int_equal(profile_frames(p, 0, frames, 8), 0);
	profile_free(p);
}

/* Add until it is full: the limit holds, what is there stays right, equal samples still count. */
static void test_limit(void **state)
{
	const size_t limit = 200000;
	struct profile *p = profile_new(limit);
	uint32_t resource = build_resource(p, "x"), added = 0;
	uint64_t count;
	char name[32];

	(void)state;
	for (uint32_t i = 0; i < 100000; i++) {
		struct profile_sample sample = {.resource = resource, .period_ns = 1, .tid = i + 1};

		snprintf(name, sizeof(name), "thread-%u", i);
		sample.thread_name = build_string(p, name);
		assert_true(profile_bytes(p) <= limit);
		if (!sample.thread_name || profile_add(p, &sample, 1))
			break;
		added++;
	}
	assert_in_range(added, 500, 5000);
	assert_int_equal(profile_samples_n(p), added);
	assert_int_equal(profile_samples_total(p), added);
	for (uint32_t i = 0; i < added; i++) {
		struct profile_sample sample = *profile_sample_at(p, i + 1, &count);

		assert_int_equal(sample.tid, i + 1);
		assert_int_equal(count, 1);
		snprintf(name, sizeof(name), "thread-%u", i);
		assert_string_equal(profile_text(p, sample.thread_name), name);
		assert_int_equal(profile_add(p, &sample, 1), 0);
	}
	assert_int_equal(profile_samples_total(p), 2 * added);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_strings), cmocka_unit_test(test_interning),
	    cmocka_unit_test(test_merge),   cmocka_unit_test(test_bad_ids),
	    cmocka_unit_test(test_frames),  cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
