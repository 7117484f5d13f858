/* SPDX-License-Identifier: Apache-2.0 */
/* File ids: one per identity, never given twice, not even by the next sampler. */
#include "sampler/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct files files;

static int setup(void **state)
{
	(void)state;
	memset(&files, 0, sizeof(files));
	files_init(&files, 0);
	return 0;
}

static void test_identity(void **state)
{
	static const struct {
		uint32_t major, minor;
		uint64_t inode, generation;
		uint32_t id;
	} steps[] = {
	    {8, 1, 100, 7, 1}, {8, 1, 100, 7, 1},		      /* the same */
	    {8, 1, 100, 8, 2},					      /* inode used again */
	    {8, 2, 100, 7, 3}, {8, 1, 101, 7, 4},  {8, 1, 102, 0, 5}, /* the broker came first, */
	    {8, 1, 102, 9, 5}, /* the side-band knows the generation */
	    {8, 1, 102, 0, 5}, {8, 1, 102, 10, 6},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct file *f = files_of(&files, steps[i].major, steps[i].minor, steps[i].inode,
					  steps[i].generation, "");

		assert_int_equal(f->id, steps[i].id);
		assert_ptr_equal(files_by_id(&files, f->id), f);
	}
	assert_int_equal(files.n, 6);
	assert_null(files_by_id(&files, 0));
	assert_null(files_by_id(&files, 7));
}

static void test_path_is_kept_and_cut(void **state)
{
	char path[1000];
	struct file *f;

	(void)state;
	memset(path, 'p', sizeof(path));
	path[999] = 0;
	assert_string_equal(files_of(&files, 8, 1, 1, 0, "")->path, "");
	f = files_of(&files, 8, 1, 1, 0, path);
	assert_int_equal(strlen(f->path), RECORD_PATH_BYTES - 1);
	assert_string_equal(files_of(&files, 8, 1, 1, 0, "/other")->path, f->path);
}

static void test_oldest_goes_ids_stay_unique(void **state)
{
	/* The slot of the vdso's table is left out. */
	const uint32_t slots = FILES_MAX - 1;
	uint32_t first = 0, last = 0, id;

	(void)state;
	for (uint64_t inode = 1; inode <= 3 * slots; inode++) {
		id = files_of(&files, 8, 1, inode, 1, "")->id;
		assert_true(id > last);
		assert_int_not_equal(id % FILES_MAX, RECORD_VDSO_FILE_ID % FILES_MAX);
		if (inode == 2 * slots + 1)
			first = id;
		last = id;
	}
	assert_int_equal(files.n, slots);
	assert_null(files_by_id(&files, first - 1));
	assert_non_null(files_by_id(&files, first));
	/* the forgotten one is found under a new id, and only then */
	assert_int_equal(files_of(&files, 8, 1, 3 * slots, 1, "")->id, last);
	assert_int_equal(files_of(&files, 8, 1, 5, 1, "")->id, last + 1);
}

static void test_forget(void **state)
{
	struct file *f = files_of(&files, 8, 1, 5, 0, "");

	(void)state;
	files_forget(&files, f);
	files_forget(&files, f);
	assert_int_equal(files.n, 0);
	assert_ptr_equal(files_by_id(&files, 1), f); /* who has the id may still ask */
	assert_int_equal(files_of(&files, 8, 1, 5, 0, "")->id, 2);
}

static void test_limit_between_commits_and_restart(void **state)
{
	uint64_t inode;

	(void)state;
	for (inode = 1; files_of(&files, 8, 1, inode, 0, ""); inode++)
		;
	/* One id of every FILES_MAX would share the slot of the vdso's table. */
	assert_int_equal(inode, FILES_PER_COMMIT - FILES_PER_COMMIT / FILES_MAX + 1);
	files_committed(&files);
	assert_non_null(files_of(&files, 8, 1, inode, 0, ""));
	/* committed: 10; killed after FILES_PER_COMMIT more at most */
	memset(&files, 0, sizeof(files));
	files_init(&files, 10);
	assert_true(files_of(&files, 8, 1, 1, 0, "")->id > 10 + FILES_PER_COMMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_identity, setup),
	    cmocka_unit_test_setup(test_path_is_kept_and_cut, setup),
	    cmocka_unit_test_setup(test_oldest_goes_ids_stay_unique, setup),
	    cmocka_unit_test_setup(test_forget, setup),
	    cmocka_unit_test_setup(test_limit_between_commits_and_restart, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
