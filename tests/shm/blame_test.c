/* SPDX-License-Identifier: Apache-2.0 */
/* Whose fault an end was: lives of a process that are cut off at one place or another. */
#include "shm/blame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "shm/blamed.h"

#define DEVICE	 0x801
#define STUCK_MS 1000

enum end { KILLED, CRASHED, HELD, HELD_READING };

static struct ledger ledger;
static struct blame *const blame = &ledger.blame;

static int clear(void **state)
{
	(void)state;
	memset(&ledger, 0, sizeof(ledger));
	return 0;
}

/* A life that ends while it is at this file; the next one has begun. */
static void life(uint64_t device, uint64_t inode, enum end end)
{
	blame_begin(blame, device, inode, "/usr/lib/some/where/far/from/the/root/libx.so.1");
	blame->crashed = end == CRASHED;
	blame->reading = end == HELD_READING;
	if (end >= HELD)
		blame->since_ns -= STUCK_MS * 1000000ull;
	blame_resume(blame, STUCK_MS);
	assert_false(blame->busy || blame->crashed || blame->reading);
	blame_resume(blame, STUCK_MS); /* ended again before it touched anything */
}

static void done(uint64_t inode)
{
	blame_begin(blame, DEVICE, inode, "");
	blame_end(blame);
}

static void test_two_faults(void **state)
{
	(void)state;
	for (enum end end = CRASHED; end <= HELD_READING; end++) {
		uint64_t inode = 10 + end;

		life(DEVICE, inode, end);
		assert_false(blame_refuses(blame, DEVICE, inode));
		done(inode); /* another part of it, which does no harm */
		life(DEVICE, inode, end);
		assert_true(blame_refuses(blame, DEVICE, inode));
		assert_false(blame_refuses(blame, DEVICE + 1, inode));
		assert_false(blame_refuses(blame, DEVICE, inode + 100));
	}
	assert_false(blame_refuses(NULL, DEVICE, 10));
}

/* A kill that hits by chance is forgiven as soon as the file is done; one that always hits is not.
 */
static void test_kills(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		life(DEVICE, 7, KILLED);
		life(DEVICE, 7, KILLED);
		assert_false(blame_refuses(blame, DEVICE, 7));
		done(7);
	}
	for (int i = 0; i < BLAME_FILE; i++) {
		assert_false(blame_refuses(blame, DEVICE, 7));
		life(DEVICE, 7, KILLED);
	}
	assert_true(blame_refuses(blame, DEVICE, 7));
}

static void test_device(void **state)
{
	(void)state;
	/* What stands in files says nothing about their device. */
	for (uint64_t inode = 100; inode < 110; inode++) {
		life(DEVICE, inode, CRASHED);
		life(DEVICE, inode, HELD);
	}
	assert_false(blame_refuses(blame, DEVICE, 1));
	for (uint64_t inode = 200; inode < 200 + BLAME_DEVICE; inode++) {
		assert_false(blame_refuses(blame, DEVICE, 1));
		life(DEVICE, inode, HELD_READING);
	}
	assert_true(blame_refuses(blame, DEVICE, 1));
	assert_false(blame_refuses(blame, DEVICE + 1, 1));
}

static void test_process(void **state)
{
	(void)state;
	life(0, 55, KILLED);
	life(0, 55, KILLED);
	life(0, 55, KILLED);
	assert_false(blame_refuses(blame, 0, 55));
	life(0, 55, HELD_READING);
	assert_true(blame_refuses(blame, 0, 55));
	assert_false(blame_refuses(blame, 0, 56));
}

/* Files in plenty push out those of which the least is known. */
static void test_full(void **state)
{
	(void)state;
	life(DEVICE, 5, CRASHED);
	life(DEVICE, 5, CRASHED);
	for (uint64_t inode = 1000; inode < 1000 + 10 * BLAME_FILES; inode++)
		life(DEVICE, inode, KILLED);
	assert_true(blame_refuses(blame, DEVICE, 5));
}

static void test_shown(void **state)
{
	struct blamed blamed;
	uint32_t at = 0;

	(void)state;
	assert_false(blamed_next(NULL, &at, &blamed));
	life(DEVICE, 5, CRASHED);
	assert_false(blamed_next(&ledger, &at, &blamed));
	life(DEVICE, 5, CRASHED);
	at = 0;
	assert_true(blamed_next(&ledger, &at, &blamed));
	assert_non_null(strstr(blamed.text, "far/from/the/root/libx.so.1 (8:1, inode 5)"));
	assert_false(blamed_next(&ledger, &at, &blamed));
	/* Its owner may write anything. */
	memset(blame->files, 0xff, sizeof(blame->files));
	memcpy(blame->files[0].name, "\"<\n\x01\\", 5);
	for (at = 0; blamed_next(&ledger, &at, &blamed);)
		for (const char *c = blamed.text; *c; c++)
			assert_true(*c >= ' ' && *c <= '~' && !strchr("\"<\\", *c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_two_faults, clear),
	    cmocka_unit_test_setup(test_kills, clear),
	    cmocka_unit_test_setup(test_device, clear),
	    cmocka_unit_test_setup(test_process, clear),
	    cmocka_unit_test_setup(test_full, clear),
	    cmocka_unit_test_setup(test_shown, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
