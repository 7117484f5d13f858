/* SPDX-License-Identifier: Apache-2.0 */
/* Self and Total: recursion once, inlined frames as frames, parts of a slot added up. */
#include "viewer/functions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/viewer/samples.h"

#define S 1000000000ull

static void deliver(struct slots *slots, struct slot *slot, struct profile *from)
{
	struct copy copy;

	assert_int_equal(copy_init(&copy, from), 0);
	for (uint32_t id = 1; id <= profile_samples_n(from); id++)
		slot_add(slots, slot, &copy, id, S);
	copy_fini(&copy);
	profile_free(from);
}

static const struct function_row *row_of(const struct functions *functions, const char *name)
{
	for (size_t i = 0; i < functions->n; i++)
		if (!strcmp(functions->row[i].name, name))
			return &functions->row[i];
	fail_msg("no function %s", name);
	return NULL;
}

static void expect(const struct functions *functions, const char *name, uint64_t self,
		   uint64_t total)
{
	const struct function_row *row = row_of(functions, name);

	if (row->self != self || row->total != total)
		fail_msg("%s: self %llu total %llu", name, (unsigned long long)row->self,
			 (unsigned long long)row->total);
}

static void test_self_and_total(void **state)
{
	const struct slots_limits limits = {2, 120 * S, 8 << 20};
	struct profile *from = profile_new(1 << 20);
	struct functions functions;
	struct slots slots;
	struct slot *slot;

	(void)state;
	slots_init(&slots, &limits);
	slot = slots_open(&slots, "a", S);
	samples_add(from, "", "leaf;middle;main", "", 10);
	samples_add(from, "", "middle;main", "", 5);
	/* a calls itself, twice in a row and through b: counted once */
	samples_add(from, "", "a;a;b;a;main", "depth", 7);
	samples_add(from, "", "b;a;main", "", 2);
	samples_add(from, "", "inner+outer;main", "", 3);
	samples_add(from, "", "", "", 4);
	deliver(&slots, slot, from);
	assert_int_equal(functions_count(&functions, slot, FUNCTIONS_BY_SELF), 0);
	assert_int_equal(functions.samples, 31);
	assert_int_equal(functions.cpu_ns, 31 * SAMPLES_PERIOD_NS);
	assert_int_equal(functions.complete, 24);
	assert_int_equal(functions.n, 8);
	expect(&functions, "leaf", 10, 10);
	expect(&functions, "middle", 5, 15);
	expect(&functions, "main", 0, 27);
	expect(&functions, "a", 7, 9);
	expect(&functions, "b", 2, 9);
	expect(&functions, "inner", 3, 3);
	expect(&functions, "outer", 0, 3);
	expect(&functions, "[no stack]", 4, 4);
	assert_string_equal(functions.row[0].name, "leaf");
	functions_fini(&functions);

	assert_int_equal(functions_count(&functions, slot, FUNCTIONS_BY_TOTAL), 0);
	assert_string_equal(functions.row[0].name, "main");
	functions_fini(&functions);
	assert_int_equal(functions_count(&functions, slot, FUNCTIONS_BY_NAME), 0);
	assert_string_equal(functions.row[0].name, "[no stack]");
	assert_string_equal(functions.row[1].name, "a");
	functions_fini(&functions);
	slots_fini(&slots);
}

/* Self of all functions is all samples; no Total is above; also when the slot has several parts. */
static void test_many(void **state)
{
	const struct slots_limits limits = {2, 120 * S, 512 << 10};
	struct functions functions;
	uint64_t self = 0;
	struct slots slots;
	struct slot *slot;
	char stack[64];

	(void)state;
	slots_init(&slots, &limits);
	slot = slots_open(&slots, "a", S);
	for (int b = 0; b < 10; b++) {
		struct profile *from = profile_new(8 << 20);

		for (int i = 0; i < 200; i++) {
			snprintf(stack, sizeof(stack), "f%d;f%d;f%d;main", i, i / 2, b);
			samples_add(from, "", stack, "", (uint64_t)i + 1);
		}
		deliver(&slots, slot, from);
	}
	assert_non_null(slot->part[1]);
	assert_int_equal(functions_count(&functions, slot, FUNCTIONS_BY_SELF), 0);
	for (size_t i = 0; i < functions.n; i++) {
		self += functions.row[i].self;
		assert_true(functions.row[i].total <= functions.samples);
		assert_true(functions.row[i].self <= functions.row[i].total);
	}
	assert_int_equal(self, functions.samples);
	assert_int_equal(functions.samples, slot_samples(slot));
	expect(&functions, "main", 0, functions.samples);
	assert_int_equal(functions.n, 201);
	functions_fini(&functions);
	slots_fini(&slots);
}

static void test_empty(void **state)
{
	const struct slots_limits limits = {2, 120 * S, 8 << 20};
	struct functions functions;
	struct slots slots;

	(void)state;
	slots_init(&slots, &limits);
	assert_int_equal(functions_count(&functions, slots_open(&slots, "a", S), FUNCTIONS_BY_SELF),
			 0);
	assert_int_equal(functions.n, 0);
	assert_int_equal(functions.samples, 0);
	functions_fini(&functions);
	slots_fini(&slots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_self_and_total),
	    cmocka_unit_test(test_many),
	    cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
