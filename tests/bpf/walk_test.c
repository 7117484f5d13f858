/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk of a user stack (bpf/unwind.bpf.h) as an ordinary program, by frame pointers, on stacks
 * made by hand and on range tables that lie.
 */
#include "tests/bpf/walk_image.h"

static void test_complete_chain(void **state)
{
	static struct image image;

	(void)state;
	image_init(&image, 4);
	image_frame(&image, 4, 10, CODE + 0x200);
	image_frame(&image, 10, 20, LIBRARY + 0x300);
	image_frame(&image, 20, 30, JIT + 0x40);
	image_frame(&image, 30, 0, LIBRARY + 0x500);
	image.words[30] = 0;
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
	assert_int_equal(image.walk.slots, 5);
	assert_frame(&image.frames[0], FRAME_NATIVE, 0, 7, 0x1010);
	assert_frame(&image.frames[1], FRAME_NATIVE, FRAME_RETURN, 7, 0x1200);
	assert_frame(&image.frames[2], FRAME_NATIVE, FRAME_RETURN, 9, 0x2300);
	assert_frame(&image.frames[3], FRAME_PC, FRAME_RETURN | FRAME_ANON, 0, JIT + 0x40);
	assert_frame(&image.frames[4], FRAME_NATIVE, FRAME_RETURN, 9, 0x2500);
}

static void test_return_to_zero_is_the_end(void **state)
{
	static struct image image;

	(void)state;
	image_init(&image, 4);
	image_frame(&image, 4, 10, 0);
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
	assert_int_equal(image.walk.slots, 1);
}

static void test_red_zone_leaf(void **state)
{
	static struct image image;

	(void)state;
	image_init(&image, 0);
	image_frame(&image, 0, 2, CODE + 0x100);
	image_frame(&image, 2, 0, 0);
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
	assert_int_equal(image.walk.slots, 2);
}

static void test_leaf_behind_syscall(void **state)
{
	static struct image image;

	(void)state;
	image_init(&image, 0);
	image.regs.fp = 0;
	image.regs.flags = RECORD_REGS_SYSCALL;
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
	assert_frame(&image.frames[0], FRAME_NATIVE, FRAME_RETURN, 7, 0x1010);
}

static void test_leaf_in_no_range_is_shown(void **state)
{
	static struct image image;

	(void)state;
	image_init(&image, 4);
	image.regs.pc = 0x123456;
	image_frame(&image, 4, 0, CODE + 0x100);
	image.words[4] = 0;
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
	assert_int_equal(image.walk.slots, 2);
	assert_frame(&image.frames[0], FRAME_PC, 0, 0, 0x123456);
	assert_frame(&image.frames[1], FRAME_NATIVE, FRAME_RETURN, 7, 0x1100);
}

/* A call that never returns may be the last instruction of a mapping. */
static void test_return_address_behind_the_range(void **state)
{
	static struct image image;

	(void)state;
	image_init(&image, 4);
	image_frame(&image, 4, 0, CODE + CODE_BYTES);
	image.words[4] = 0;
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
	assert_frame(&image.frames[1], FRAME_NATIVE, FRAME_RETURN, 7, 0x1000 + CODE_BYTES);
	image_init(&image, 4);
	image_frame(&image, 4, 10, CODE);
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_NO_MAPPING);
}

static void test_return_address_outside(void **state)
{
	static struct image image;

	(void)state;
	image_init(&image, 4);
	image_frame(&image, 4, 10, CODE + 0x100);
	image_frame(&image, 10, 20, 0xdeadbeef);
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_NO_MAPPING);
	assert_int_equal(image.walk.slots, 2);
}

static void test_bad_frame_pointers(void **state)
{
	static const struct {
		uint64_t fp;
		enum record_stop stop;
	} bad[] = {
		{STACK_BASE + 4 * 8, STOP_FRAME_POINTER},  /* itself */
		{STACK_BASE + 2 * 8, STOP_FRAME_POINTER},  /* down the stack */
		{STACK_BASE + 5 * 8, STOP_FRAME_POINTER},  /* into the frame before */
		{STACK_BASE + 83, STOP_FRAME_POINTER},	   /* misaligned */
		{1, STOP_FRAME_POINTER},
		{STACK_BASE + STACK_WORDS * 8, STOP_READ_FAULT},
		{STACK_BASE + STACK_WORDS * 8 - 8, STOP_READ_FAULT},
		{UINT64_MAX - 7, STOP_READ_FAULT},	   /* its end wraps around */
		{UINT64_MAX - 15, STOP_READ_FAULT},
	};
	static struct image image;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		image_init(&image, 4);
		image.words[4] = bad[i].fp;
		image.words[5] = CODE + 0x100;
		assert_int_equal(image_walk(&image, 0, image.ranges_n), bad[i].stop);
		assert_int_equal(image.walk.slots, 2);
	}
}

static void test_cycle(void **state)
{
	static struct image image;

	(void)state;
	image_init(&image, 4);
	image_frame(&image, 4, 10, CODE + 0x100);
	image_frame(&image, 10, 20, CODE + 0x200);
	image_frame(&image, 20, 4, CODE + 0x300);
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_FRAME_POINTER);
	assert_int_equal(image.walk.slots, 4);
}

static void test_depth(void **state)
{
	static struct image image;

	(void)state;
	for (unsigned more = 0; more < 3; more++) {
		unsigned frames = RECORD_USER_FRAMES_MAX + more;

		image_init(&image, 2);
		for (unsigned i = 1; i < frames; i++)
			image_frame(&image, 2 * i, 2 * i + 2, CODE + 0x100 + i);
		image.words[2 * (frames - 1)] = 0;
		assert_int_equal(image_walk(&image, 0, image.ranges_n),
				 more ? STOP_DEPTH : STOP_COMPLETE);
		assert_int_equal(image.walk.slots, RECORD_USER_FRAMES_MAX);
	}
}

/* Whatever size the slice has, each of its ranges is found, and the gaps are not. */
static void test_search_finds_every_range(void **state)
{
	static struct image image;

	(void)state;
	for (uint32_t n = 0; n <= RANGES_MAX - 2; n++) {
		image_init(&image, 0);
		image.regs.fp = 0;
		image.ranges_n = 2;
		for (uint32_t i = 0; i < n; i++)
			image_add_range(&image, CODE + i * 0x2000, 0x1000, 0, 100 + i, 0);
		for (uint32_t i = 0; i < n; i++) {
			image.regs.pc = CODE + i * 0x2000;
			image_walk(&image, 2, n);
			assert_frame(&image.frames[0], FRAME_NATIVE, 0, 100 + i, 0);
			image.regs.pc += 0xfff;
			image_walk(&image, 2, n);
			assert_frame(&image.frames[0], FRAME_NATIVE, 0, 100 + i, 0xfff);
			image.regs.pc++;
			image_walk(&image, 2, n);
			assert_frame(&image.frames[0], FRAME_PC, 0, 0, image.regs.pc);
		}
		image.regs.pc = CODE - 1;
		image_walk(&image, 2, n);
		assert_int_equal(image.frames[0].kind, FRAME_PC);
	}
}

/* A slice that reaches beyond the array, or wraps around it, costs a bounded search and no more. */
static void test_hostile_slices(void **state)
{
	static const uint32_t firsts[] = {0, 1, 63, 64, UINT32_MAX};
	static const uint32_t counts[] = {0, 1, 3, 64, 1u << 20, UINT32_MAX};
	static struct image image;

	(void)state;
	for (size_t f = 0; f < sizeof(firsts) / sizeof(firsts[0]); f++)
		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
			image_init(&image, 4);
			image_frame(&image, 4, 10, 0xdeadbeef);
			assert_int_equal(image_walk(&image, firsts[f], counts[c]), STOP_NO_MAPPING);
			assert_true(image.range_reads <= 2 * (UNWIND_SEARCH_STEPS + 1));
		}
	/* The ranges are found although the count lies, as long as it lies within the array. */
	image_init(&image, 4);
	image_frame(&image, 4, 10, 0);
	image_walk(&image, 0, 1000000);
	assert_frame(&image.frames[0], FRAME_NATIVE, 0, 7, 0x1010);
}

static void test_hostile_tables_and_stacks(void **state)
{
	static struct image image;
	uint64_t seed = 0x9e3779b97f4a7c15ull, deep = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		image_scramble(&image, &seed);
		image_walk(&image, (uint32_t)(random_next(&seed) % 4),
			   (uint32_t)(random_next(&seed) % (2 * RANGES_MAX)));
		assert_in_range(image.walk.stop, STOP_COMPLETE, STOP_COUNT - 1);
		assert_frames_in_ranges(&image);
		deep += image.walk.slots > 2;
	}
	/* The nonsense is good enough to be walked into. */
	assert_true(deep > 100);
}

static void test_unknown_unwinder_ends_the_walk(void **state)
{
	static struct image image;

	(void)state;
	image_init(&image, 4);
	unwind_start(&image.walk, &image.regs, 0, image.ranges_n);
	image.walk.unwinder = 77;
	unwind_walk(&image.walk);
	assert_int_equal(image.walk.stop, STOP_BAD_ROW);
	assert_int_equal(image.walk.slots, 0);
}

/* A step that pushes for the runtime of this file; the object of what it pushed. */
static uint64_t step_of_runtime(struct image *image, uint32_t file)
{
	struct unwind *w = &image->walk;
	uint32_t slot = w->slots;

	w->unwinder = UNWIND_SCRIPT;
	w->runtime_file = file;
	assert_int_equal(unwind_step(0, &w), 0);
	assert_int_equal(w->slots, slot + 2);
	assert_int_equal(image->frames[slot].kind, FRAME_SCRIPT);
	assert_int_equal(image->frames[slot].file_id, file);
	return image->frames[slot].addr;
}

/* What a walker keeps is of one runtime: another one in the same stack must not go on from it. */
static void test_second_runtime_has_no_frames(void **state)
{
	static struct image image;

	(void)state;
	image_init(&image, 4);
	unwind_start(&image.walk, &image.regs, 0, image.ranges_n);
	assert_int_equal(step_of_runtime(&image, 7), IMAGE_SCRIPT);
	assert_int_equal(step_of_runtime(&image, 9), 0);
	assert_int_equal(image.walk.unwinder, UNWIND_NATIVE);
	assert_int_equal(step_of_runtime(&image, 7), IMAGE_SCRIPT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_complete_chain),
		cmocka_unit_test(test_return_to_zero_is_the_end),
		cmocka_unit_test(test_red_zone_leaf),
		cmocka_unit_test(test_leaf_behind_syscall),
		cmocka_unit_test(test_leaf_in_no_range_is_shown),
		cmocka_unit_test(test_return_address_behind_the_range),
		cmocka_unit_test(test_return_address_outside),
		cmocka_unit_test(test_bad_frame_pointers),
		cmocka_unit_test(test_cycle),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_search_finds_every_range),
		cmocka_unit_test(test_hostile_slices),
		cmocka_unit_test(test_hostile_tables_and_stacks),
		cmocka_unit_test(test_unknown_unwinder_ends_the_walk),
		cmocka_unit_test(test_second_runtime_has_no_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
