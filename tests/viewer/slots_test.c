/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a slot, event by event, on a clock that the test sets; and its byte limit. */
#include "viewer/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/viewer/samples.h"

#define S	  1000000000ull
#define MAX_SLOTS 2
#define TTL_S	  120

enum event { OPEN, USE, CLEAR, CLOSE, SWEEP, DATA };

/* After the event the open slots are `open`, most recently opened first, "key:samples ...". */
struct step {
	unsigned at_s;
	enum event event;
	const char *key;
	bool ok;
	const char *open;
};

static const struct step opening[] = {
    {1, OPEN, "a", true, "a:0"},
    {2, OPEN, "b", true, "b:0 a:0"},
    /* again: only renewed, nothing is lost */
    {3, DATA, "a", true, "b:0 a:1"},
    {4, OPEN, "a", true, "b:0 a:1"},
    /* full: b was not asked for since 2 s, a since 4 s */
    {5, OPEN, "c", true, "c:0 a:1"},
    /* data does not renew: a is the older of the two */
    {6, DATA, "a", true, "c:0 a:2"},
    {7, OPEN, "d", true, "d:0 c:0"},
    {0},
};

static const struct step reading[] = {
    {1, OPEN, "a", true, "a:0"},
    {2, OPEN, "b", true, "b:0 a:0"},
    /* reading renews */
    {3, USE, "a", true, "b:0 a:0"},
    {4, OPEN, "c", true, "c:0 a:0"},
    /* reading does not open what was evicted, nor what never was */
    {5, USE, "b", false, "c:0 a:0"},
    {5, USE, "x", false, "c:0 a:0"},
    {0},
};

static const struct step clearing[] = {
    {1, OPEN, "a", true, "a:0"},
    {2, DATA, "a", true, "a:1"},
    {3, OPEN, "b", true, "b:0 a:1"},
    /* emptied, kept, renewed */
    {4, CLEAR, "a", true, "b:0 a:0"},
    {5, DATA, "a", true, "b:0 a:1"},
    {6, OPEN, "c", true, "c:0 a:1"},
    /* an error when there is none */
    {7, CLEAR, "b", false, "c:0 a:1"},
    {0},
};

static const struct step closing[] = {
    {1, OPEN, "a", true, "a:0"},
    {2, DATA, "a", true, "a:1"},
    {3, CLOSE, "a", true, ""},
    /* idempotent */
    {4, CLOSE, "a", true, ""},
    {5, CLOSE, "x", true, ""},
    /* the bytes went with it */
    {6, OPEN, "a", true, "a:0"},
    /* data for what is not open goes nowhere */
    {7, DATA, "b", false, "a:0"},
    {0},
};

static const struct step expiring[] = {
    {10, OPEN, "a", true, "a:0"},
    {20, OPEN, "b", true, "b:0 a:0"},
    {129, DATA, "a", true, "b:0 a:1"},
    /* strictly older than the time to live */
    {10 + TTL_S, SWEEP, "", true, "b:0 a:1"},
    {11 + TTL_S, SWEEP, "", true, "b:0"},
    {21 + TTL_S, SWEEP, "", true, ""},
    {0},
};

static bool apply(struct slots *slots, const struct step *step, struct copy *copy)
{
	uint64_t now_ns = step->at_s * S;
	struct slot *slot;

	switch (step->event) {
	case OPEN:
		return slots_open(slots, step->key, now_ns);
	case USE:
		return slots_use(slots, step->key, now_ns);
	case CLEAR:
		return slots_clear(slots, step->key, now_ns);
	case CLOSE:
		slots_close(slots, step->key, now_ns);
		return true;
	case SWEEP:
		slots_sweep(slots, now_ns);
		return true;
	case DATA:
		slot = slots_find(slots, step->key);
		if (slot)
			slot_add(slots, slot, copy, 1, now_ns);
		return slot;
	}
	return false;
}

static void show(const struct slots *slots, char *open, size_t size)
{
	size_t n = 0;

	*open = '\0';
	for (const struct slot *s = slots->first; s; s = s->next)
		n += (size_t)snprintf(open + n, size - n, "%s%s:%llu", n ? " " : "", s->key,
				      (unsigned long long)slot_samples(s));
}

static void run(const struct step *steps)
{
	const struct slots_limits limits = {MAX_SLOTS, TTL_S * S, 1 << 20};
	struct profile *from = profile_new(1 << 20);
	struct copy copy;
	struct slots slots;
	char open[256];

	samples_add(from, "process.executable.name=x", "f;main", "", 1);
	assert_int_equal(copy_init(&copy, from), 0);
	slots_init(&slots, &limits);
	for (const struct step *step = steps; step->key; step++) {
		bool ok = apply(&slots, step, &copy);

		show(&slots, open, sizeof(open));
		if (ok != step->ok || strcmp(open, step->open))
			fail_msg("step %td: %d \"%s\", expected %d \"%s\"", step - steps, ok, open,
				 step->ok, step->open);
		assert_true(slots.n <= MAX_SLOTS);
	}
	slots_fini(&slots);
	copy_fini(&copy);
	profile_free(from);
}

static void test_opening(void **state)
{
	(void)state;
	run(opening);
}

static void test_reading(void **state)
{
	(void)state;
	run(reading);
}

static void test_clearing(void **state)
{
	(void)state;
	run(clearing);
}

static void test_closing(void **state)
{
	(void)state;
	run(closing);
}

static void test_expiring(void **state)
{
	(void)state;
	run(expiring);
}

/* Who looks at a slot that ended is told when and why; who opened it again is not. */
static void test_ends_are_remembered(void **state)
{
	const struct slots_limits limits = {1, TTL_S * S, 1 << 20};
	const struct slot_ended *ended;
	struct slots slots;
	char key[32];

	(void)state;
	slots_init(&slots, &limits);
	assert_null(slots_last_end(&slots, "a"));
	slots_open(&slots, "a", 1 * S);
	slots_open(&slots, "b", 2 * S);
	ended = slots_last_end(&slots, "a");
	assert_non_null(ended);
	assert_int_equal(ended->why, SLOT_EVICTED);
	assert_string_equal(ended->by, "b");
	assert_int_equal(ended->time_ns, 2 * S);
	slots_sweep(&slots, 200 * S);
	assert_int_equal(slots_last_end(&slots, "b")->why, SLOT_EXPIRED);
	slots_open(&slots, "a", 201 * S);
	assert_null(slots_last_end(&slots, "a"));
	slots_close(&slots, "a", 202 * S);
	assert_int_equal(slots_last_end(&slots, "a")->why, SLOT_CLOSED);
	assert_int_equal(slots.evicted, 1);
	assert_int_equal(slots.expired, 1);
	for (int i = 0; i <= SLOTS_ENDED_MAX; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		slots_open(&slots, key, 300 * S);
	}
	assert_null(slots_last_end(&slots, "a"));
	assert_non_null(slots_last_end(&slots, "k1"));
	slots_fini(&slots);
}

/* Far more stacks than fit: never above the limit, the newest are there, the rest is counted. */
static void test_byte_limit(void **state)
{
	const struct slots_limits limits = {2, TTL_S * S, 256 << 10};
	const int batches = 200, stacks = 50;
	uint64_t given = 0;
	struct slots slots;
	struct slot *slot;

	(void)state;
	slots_init(&slots, &limits);
	slot = slots_open(&slots, "a", S);
	for (int b = 0; b < batches; b++) {
		struct profile *from = profile_new(4 << 20);
		struct copy copy;
		char stack[64];

		for (int i = 0; i < stacks; i++) {
			snprintf(stack, sizeof(stack), "leaf_%d_%d;caller_%d;main", b, i, b);
			samples_add(from, "process.executable.name=x", stack, "", 2);
		}
		assert_int_equal(copy_init(&copy, from), 0);
		for (uint32_t id = 1; id <= profile_samples_n(from); id++) {
			slot_add(&slots, slot, &copy, id, S);
			given += 2;
			assert_true(slot_bytes(slot) <= limits.max_bytes);
		}
		copy_fini(&copy);
		profile_free(from);
	}
	assert_true(slot->dropped > 0);
	assert_int_equal(slot_samples(slot) + slot->dropped, given);
	/* the ring is used: seven of eight parts are full at any time */
	assert_true(slot_bytes(slot) > limits.max_bytes / 2);
	assert_true(slot_samples(slot) > 2u * (unsigned)stacks);
	slots_fini(&slots);
}

/* A limit in which nothing fits keeps nothing, and says so. */
static void test_tiny_limit(void **state)
{
	const struct slots_limits limits = {2, TTL_S * S, 1};
	struct profile *from = profile_new(1 << 20);
	struct copy copy;
	struct slots slots;
	struct slot *slot;

	(void)state;
	samples_add(from, "process.executable.name=x", "f;main", "", 3);
	assert_int_equal(copy_init(&copy, from), 0);
	slots_init(&slots, &limits);
	slot = slots_open(&slots, "a", S);
	slot_add(&slots, slot, &copy, 1, S);
	slot_add(&slots, slot, &copy, 1, S);
	assert_int_equal(slot_samples(slot), 0);
	assert_int_equal(slot->dropped, 6);
	assert_true(slot_bytes(slot) <= 1);
	slots_fini(&slots);
	copy_fini(&copy);
	profile_free(from);
}

/* What a slot holds is a copy: all fields, nothing of the other resource. */
static void test_copy(void **state)
{
	struct profile *from = profile_new(1 << 20), *to = profile_new(1 << 20);
	const struct profile_sample *sample;
	struct profile_frame frames[4];
	struct copy copy;
	uint64_t count;

	(void)state;
	samples_add(from, "process.executable.name=other", "secret;main", "", 1);
	samples_add(from, "process.executable.name=x,host.name=h", "in+out;main", "no_row", 5);
	assert_int_equal(copy_init(&copy, from), 0);
	copy_to(&copy, to);
	assert_int_equal(copy_sample(&copy, 2), 0);
	assert_int_equal(copy_sample(&copy, 2), 0);
	copy_fini(&copy);
	profile_free(from);
	assert_int_equal(profile_samples_n(to), 1);
	assert_int_equal(profile_functions_n(to), 3);
	sample = profile_sample_at(to, 1, &count);
	assert_int_equal(count, 10);
	assert_int_equal(sample->period_ns, SAMPLES_PERIOD_NS);
	assert_string_equal(profile_text(to, sample->stop), "no_row");
	assert_string_equal(profile_resource_text(to, sample->resource, "host.name"), "h");
	assert_int_equal(profile_frames(to, sample->stack, frames, 4), 3);
	assert_string_equal(frames[0].name, "in");
	assert_true(frames[0].inlined);
	assert_string_equal(frames[1].name, "out");
	assert_string_equal(frames[2].name, "main");
	assert_string_equal(frames[2].module, "/usr/bin/example");
	for (uint32_t id = 1; id <= profile_strings_n(to); id++)
		assert_null(strstr(profile_text(to, id), "secret"));
	profile_free(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_opening),    cmocka_unit_test(test_reading),
	    cmocka_unit_test(test_clearing),   cmocka_unit_test(test_closing),
	    cmocka_unit_test(test_expiring),   cmocka_unit_test(test_ends_are_remembered),
	    cmocka_unit_test(test_byte_limit), cmocka_unit_test(test_tiny_limit),
	    cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
