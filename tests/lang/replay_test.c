/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of real processes, walked and named once more without them: the same stacks. Then the
 * same snapshots with damage in them: it ends, within bounds, and nothing is read that is not
 * there.
 *
 *   replay_test [N]	N times damaged each (300)
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/langs.h"
#include "symbolizer/remote.h"
#include "tests/lang/check.h"
#include "tests/lang/damage.h"
#include "tests/lang/fold.h"
#include "tests/lang/livefile.h"
#include "tests/lang/specimens.h"

#define SNAPSHOTS   4
#define SECONDS_MAX 240 /* it takes a few */
/* Of a walk: so many steps (bpf/unwind.bpf.h), and in none of them more reads than this. */
#define READS_OF_A_WALK ((3ull * RECORD_USER_FRAMES_MAX + 1) * 24)

static unsigned damaged_each = 300;
static struct live_stack stack, before;

static void expect_same(const struct live_stack *a, const struct live_stack *b)
{
	const struct fold_options options = {0};
	char *left = fold_text(a, &options), *right = fold_text(b, &options);

	assert_string_equal(left, right);
	free(left);
	free(right);
}

static void replay_from_a_file(struct snapshot *snapshot)
{
	char path[] = "/tmp/sconce-replay-XXXXXX";
	struct snapshot loaded;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	assert_true(snapshot_save(snapshot, path));
	assert_true(snapshot_open(&loaded));
	assert_true(snapshot_load(&loaded, path));
	unlink(path);
	assert_true(live_resolve(&loaded));
	live_replay(&loaded, &stack);
	expect_same(&stack, &before);
	snapshot_close(&loaded);
}

static void expect_bounds(const struct snapshot *snapshot)
{
	assert_in_range(stack.stop, STOP_COMPLETE, STOP_COUNT - 1);
	assert_in_range(stack.frames_n, 1, RECORD_USER_FRAMES_MAX);
	assert_in_range(stack.walk_reads, 0, READS_OF_A_WALK);
	/* A name may go through remote_begin() once for each frame. */
	assert_in_range(snapshot->reads - stack.walk_reads, 0,
			(uint64_t)stack.frames_n * REMOTE_READS_MAX);
}

static void replay_damaged(struct snapshot *snapshot, uint64_t *seed)
{
	size_t bytes = snapshot->head.pieces_n * sizeof(*snapshot->pieces);
	struct snapshot_head *head = malloc(sizeof(*head));
	struct snapshot_piece *pieces = malloc(bytes);

	assert_non_null(head);
	assert_non_null(pieces);
	*head = snapshot->head;
	memcpy(pieces, snapshot->pieces, bytes);
	for (unsigned i = 0; i < damaged_each; i++) {
		damage(snapshot, seed);
		live_replay(snapshot, &stack);
		expect_bounds(snapshot);
		snapshot->head = *head;
		memcpy(snapshot->pieces, pieces, bytes);
	}
	snapshot->everywhere = false;
	snapshot_reindex(snapshot);
	free(head);
	free(pieces);
}

static void replay(enum language language)
{
	uint64_t seed = 0x9e3779b97f4a7c15ull;
	uint32_t frames = 0, scripts = 0;

	if (!check_program(specimens[language].name)) {
		print_message("%s: not here\n", specimens[language].name);
		skip();
	}
	for (int i = 0; i < SNAPSHOTS; i++) {
		struct live *live = specimen_take(language);

		assert_non_null(live);
		before = live->stack;
		live_replay(&live->snapshot, &stack);
		expect_same(&stack, &before);
		if (i == 0)
			replay_from_a_file(&live->snapshot);
		for (uint32_t k = 0; k < stack.frames_n; k++)
			scripts += stack.frames[k].kind == LIVE_SCRIPT;
		frames += stack.frames_n;
		replay_damaged(&live->snapshot, &seed);
		live_close(live);
	}
	print_message("%s: %u frames, %u of scripts\n", specimens[language].name, frames, scripts);
	assert_true(scripts > SNAPSHOTS);
}

#define LANGUAGE(NAME, name)                                                                       \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		replay(LANG_##NAME);                                                               \
	}
LANGUAGES(LANGUAGE)
#undef LANGUAGE

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define LANGUAGE(NAME, name) cmocka_unit_test(test_##name),
	    LANGUAGES(LANGUAGE)
#undef LANGUAGE
	};
	int failed;

	if (argc > 1)
		damaged_each = (unsigned)atoi(argv[1]);
	else
		alarm(SECONDS_MAX); /* what does not end is a failure */
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	livefile_forget();
	return failed;
}
