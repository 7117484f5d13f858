/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of the range array: never two owners of a range, and no reuse within the grace period. */
#include "sampler/slices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/tables.h"

#define RANGES 1024u

static struct slices slices;
static struct record_range array[RANGES];

static int setup(void **state)
{
	(void)state;
	memset(&slices, 0, sizeof(slices));
	slices_init(&slices, array, RANGES);
	return 0;
}

static void test_grace_before_reuse(void **state)
{
	uint32_t a;

	(void)state;
	a = slices_take(&slices, RANGES, 1000);
	assert_int_equal(a, 0);
	assert_int_equal(slices_take(&slices, 1, 1000), SLICES_NONE);
	slices_drop(&slices, a, 1000);
	assert_int_equal(slices_take(&slices, 1, 1000 + TABLES_GRACE_NS - 1), SLICES_NONE);
	assert_int_not_equal(slices_take(&slices, 1, 1000 + TABLES_GRACE_NS), SLICES_NONE);
}

static void test_shared_until_the_last(void **state)
{
	uint32_t a = slices_take(&slices, RANGES, 0);

	(void)state;
	assert_true(slices_has_room(&slices, a, RANGES - 1));
	assert_false(slices_has_room(&slices, a, RANGES));
	slices_share(&slices, a);
	assert_false(slices_has_room(&slices, a, 1));
	slices_drop(&slices, a, 0);
	assert_int_equal(slices_take(&slices, 1, TABLES_GRACE_NS), SLICES_NONE);
	slices_drop(&slices, a, 0);
	assert_int_not_equal(slices_take(&slices, 1, TABLES_GRACE_NS), SLICES_NONE);
}

static void test_random_owners(void **state)
{
	struct {
		uint32_t first, n;
	} own[64] = {0};
	static unsigned char owner[RANGES];
	uint64_t now = 0;
	int taken = 0, refused = 0;

	(void)state;
	srandom(1);
	memset(owner, 0, sizeof(owner));
	for (int round = 0; round < 20000; round++, now += TABLES_GRACE_NS / 8) {
		int i = (int)(random() % 64);

		if (own[i].n) {
			for (uint32_t r = 0; r < own[i].n; r++) {
				assert_int_equal(owner[own[i].first + r], i + 1);
				owner[own[i].first + r] = 0;
			}
			slices_drop(&slices, own[i].first, now);
			own[i].n = 0;
			continue;
		}
		own[i].n = 1 + (uint32_t)random() % 60;
		own[i].first = slices_take(&slices, own[i].n, now);
		if (own[i].first == SLICES_NONE) {
			own[i].n = 0;
			refused++;
			continue;
		}
		taken++;
		assert_true(own[i].first + own[i].n <= RANGES);
		for (uint32_t r = 0; r < own[i].n; r++) {
			assert_int_equal(owner[own[i].first + r], 0);
			owner[own[i].first + r] = (unsigned char)(i + 1);
		}
	}
	assert_true(taken > 5000 && refused > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_grace_before_reuse, setup),
	    cmocka_unit_test_setup(test_shared_until_the_last, setup),
	    cmocka_unit_test_setup(test_random_owners, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
