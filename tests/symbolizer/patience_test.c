/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long samples may wait, all together.
 */
#include "symbolizer/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MS 1000000ull

/* A thing after the other that never comes: one part in four of all time, and one second once. */
static void test_share(void **state)
{
	struct patience patience;
	uint64_t now_ns = 0, waited_ns = 0;

	(void)state;
	patience_init(&patience, now_ns);
	for (uint64_t i = 1; now_ns < 20000 * MS; i++) {
		uint64_t until_ns = 0;
		bool over = false;

		patience_earn(&patience, now_ns);
		/* Something else arrives all the while. */
		if (patience_allows(&patience, now_ns, i, &until_ns, &over, 100 * MS)) {
			patience_spend(&patience, 5 * MS);
			waited_ns += 5 * MS;
			now_ns += 5 * MS;
		}
		now_ns += MS / 100;
	}
	assert_in_range(waited_ns, 5500 * MS, 6100 * MS);
	assert_false(patience_ample(&patience));
	patience_earn(&patience, now_ns + 3000 * MS);
	assert_true(patience_ample(&patience));
}

/* A thing is waited for once, and nothing is while nobody answers. */
static void test_in_vain(void **state)
{
	struct patience patience;
	uint64_t until_ns = 0, other_ns = 0;
	bool over = false, other_over = false;

	(void)state;
	patience_init(&patience, 0);
	assert_true(patience_allows(&patience, 0, 1, &until_ns, &over, 100 * MS));
	assert_true(patience_allows(&patience, 99 * MS, 1, &until_ns, &over, 100 * MS));
	assert_false(patience_allows(&patience, 100 * MS, 1, &until_ns, &over, 100 * MS));
	assert_false(patience_allows(&patience, 101 * MS, 1, &other_ns, &other_over, 100 * MS));
	assert_true(patience_allows(&patience, 102 * MS, 2, &other_ns, &other_over, 100 * MS));
	assert_false(patience_allows(&patience, 102 * MS, 2, &until_ns, &over, 100 * MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_share),
	    cmocka_unit_test(test_in_vain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
