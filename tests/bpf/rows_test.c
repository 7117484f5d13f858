/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks without frame pointers, walked in the kernel: the tables of everything that a busy child
 * has mapped are compiled by the symbolizer's code and installed by the sampler's.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <cmocka.h>

#include "sampler/store.h"
#include "tests/bpf/busy.h"
#include "tests/bpf/chain.h"
#include "tests/bpf/frameless.h"
#include "tests/bpf/rig.h"
#include "tests/bpf/tables.h"

#define RING_BYTES (1u << 22)
#define DEPTH 24 /* and the nine that called it: 33 */

static struct rig rig;
static struct store store;
static struct rig_process process;
static uint64_t exec_id;
static int depth = DEPTH;
static struct table_header *own_table; /* of what the process maps first: this program */

static void skip_unless_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("skipped: loading BPF needs root\n");
	skip();
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void start(pid_t *pid, void (*work)(void))
{
	*pid = busy_start(work);
	memset(&store, 0, sizeof(store));
	rig_open(&rig, *pid, RING_BYTES);
	assert_int_equal(store_open(&store, rig.bpf.map[BPF_FILES], rig.bpf.map[BPF_CHUNK], TABLES_CHUNK_BYTES),
			 0);
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	rig_read_process(&process, *pid);
	rig_sample(&rig, 150, true);
	assert_true(rig.samples_n > 0);
	exec_id = rig.samples[0]->exec_id;
	rig_install(&rig, *pid, &process, exec_id, 0, BPF_PROCESS_EXEC_KNOWN);
	rig_forget(&rig);
}

static void end(pid_t pid)
{
	busy_end(pid);
	rig_close(&rig);
	munmap(store.files, (TABLES_FILES_MAX + 1) * sizeof(struct bpf_file));
	munmap(store.words, TABLES_CHUNK_BYTES);
	free(own_table);
	own_table = NULL;
}

/* Frames of the child that lie in the function without frame pointers, one behind the other. */
static uint32_t count_frameless(const struct frame *frames, uint32_t n)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t r = 0; r < process.ranges_n; r++) {
			const struct record_range *range = &process.ranges[r];

			if (frames[i].kind == FRAME_NATIVE && frames[i].file_id == range->file_id &&
			    frames[i].addr >= range->offset &&
			    frames[i].addr - range->offset < range->end - range->start)
				found += frameless_holds(frames[i].addr - range->offset +
							 range->start);
		}
	return found;
}

/* The whole chain: the function as often as it was called, and on to the start of the program. */
static bool is_whole(const struct frame *frames, uint32_t n, enum record_stop stop)
{
	return stop == STOP_COMPLETE && count_frameless(frames, n) == DEPTH && n > DEPTH + 4 &&
	       frames[n - 1].file_id == process.ranges[0].file_id;
}

static uint32_t count_whole(void)
{
	uint32_t whole = 0;

	for (size_t i = 0; i < rig.samples_n; i++) {
		const struct record_sample *s = rig.samples[i];

		whole += is_whole(s->frames + s->kernel_frames, s->user_slots, s->stop);
	}
	return whole;
}

static void work_deep(void)
{
	frameless_deep(depth);
}

static void work_signal(void)
{
	frameless_signal(depth);
}

/* Deferred as long as nothing is known of a file; by frame pointers when it has no table. */
static void test_without_tables(void **state)
{
	pid_t pid;

	(void)state;
	skip_unless_root();
	start(&pid, work_deep);
	rig_sample(&rig, 300, true);
	assert_true(rig.samples_n > 0);
	for (size_t i = 0; i < rig.samples_n; i++)
		assert_int_equal(rig.samples[i]->stop, STOP_DEFERRED);
	rig_forget(&rig);
	for (uint32_t i = 0; i < process.ranges_n; i++)
		if (process.ranges[i].file_id)
			store_install_none(&store, process.ranges[i].file_id, 0, false, now_ns());
	rig_sample(&rig, 300, true);
	assert_true(rig.samples_n > 0);
	for (size_t i = 0; i < rig.samples_n; i++)
		assert_int_equal(rig.samples[i]->stop, STOP_FRAME_POINTER);
	end(pid);
}

static void test_chain_by_rows(void **state)
{
	pid_t pid;

	(void)state;
	skip_unless_root();
	for (int signal = 0; signal < 2; signal++) {
		start(&pid, signal ? work_signal : work_deep);
		own_table = tables_install(&store, &process, pid, NULL);
		for (int i = 0; i < 20 && rig.samples_n <= 20; i++)
			rig_sample(&rig, 1000, true);
		assert_true(rig.samples_n > 20);
		assert_false(rig.malformed);
		print_message("%s: %u of %zu chains whole, %u frames\n",
			      signal ? "below a handler" : "plain", count_whole(), rig.samples_n,
			      rig.samples[0]->user_slots);
		assert_int_equal(count_whole(), rig.samples_n);
		end(pid);
	}
}

/* A file whose table is not there yet: the record is walked outside, by the same code. */
static void test_a_table_that_is_awaited(void **state)
{
	static struct chain chain;
	struct bpf_file *file;
	pid_t pid;

	(void)state;
	skip_unless_root();
	start(&pid, work_deep);
	own_table = tables_install(&store, &process, pid, NULL);
	file = &store.files[process.ranges[0].file_id % TABLES_FILES_MAX];
	chain.file = *file;
	chain.file.first = 0;
	chain.words = (const uint32_t *)(own_table + 1);
	chain.words_n = (uint32_t)TABLE_WORDS(file->pages, file->rows, file->rules);
	file->file_id = 0;
	rig_sample(&rig, 300, true);
	assert_true(rig.samples_n > 0);
	for (size_t i = 0; i < rig.samples_n; i++) {
		assert_int_equal(rig.samples[i]->stop, STOP_DEFERRED);
		assert_int_equal(rig.samples[i]->user_slots, 0);
		chain_walk(&chain, rig.samples[i], &process);
		assert_int_equal(count_frameless(chain.frames, chain.n), DEPTH);
	}
	end(pid);
}

/* Noise in the place of tables, published as if it were sound. */
static void test_hostile_tables(void **state)
{
	pid_t pid;

	(void)state;
	skip_unless_root();
	srandom(1);
	start(&pid, work_deep);
	own_table = tables_install(&store, &process, pid, NULL);
	for (int round = 0; round < 6; round++) {
		struct bpf_file *file = &store.files[process.ranges[0].file_id % TABLES_FILES_MAX];

		if (round == 0)
			for (uint32_t i = 0; i < TABLES_CHUNK_WORDS; i++)
				store.words[i] = (uint32_t)random() << 1;
		file->first = round < 2 ? file->first : (uint32_t)random() << (round % 2);
		file->pages = round < 3 ? file->pages : UINT32_MAX;
		file->first_page = round < 3 ? file->first_page : 0;
		file->rows = round < 4 ? file->rows : UINT32_MAX;
		file->rules = round < 5 ? file->rules : UINT32_MAX;
		rig_forget(&rig);
		rig_sample(&rig, 100, true);
		assert_true(rig.samples_n > 0);
		assert_false(rig.malformed);
		assert_int_equal(count_whole(), 0);
	}
	end(pid);
}

static void test_used_stamp(void **state)
{
	struct bpf_file *file;
	uint64_t before;
	pid_t pid;

	(void)state;
	skip_unless_root();
	start(&pid, work_deep);
	own_table = tables_install(&store, &process, pid, NULL);
	file = &store.files[process.ranges[0].file_id % TABLES_FILES_MAX];
	before = file->used_ns;
	rig_sample(&rig, 300, true);
	assert_true(file->used_ns > before + TABLES_USED_NS);
	assert_true(file->used_ns <= now_ns());
	end(pid);
}

static uint64_t run_time_ns(void)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(rig.bpf.program, &info, &size), 0);
	return info.run_time_ns;
}

static void test_cost(void **state)
{
	static const int depths[] = {1, 24, 91, 991};
	int stats;

	(void)state;
	skip_unless_root();
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	assert_true(stats >= 0);
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		uint64_t taken, ns;
		pid_t pid;

		depth = depths[i];
		start(&pid, work_deep);
		own_table = tables_install(&store, &process, pid, NULL);
		taken = rig_taken(&rig);
		ns = run_time_ns();
		rig_sample(&rig, 1500, true);
		ns = (run_time_ns() - ns) / (rig_taken(&rig) - taken);
		print_message("by rows: %llu ns per sample, %u user frames (%zu samples)\n",
			      (unsigned long long)ns, rig.samples[0]->user_slots, rig.samples_n);
		assert_true(ns > 0 && rig.samples[0]->user_slots >= (unsigned)depth);
		end(pid);
	}
	depth = DEPTH;
	close(stats);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_tables),
		cmocka_unit_test(test_chain_by_rows),
		cmocka_unit_test(test_a_table_that_is_awaited),
		cmocka_unit_test(test_hostile_tables),
		cmocka_unit_test(test_used_stamp),
		cmocka_unit_test(test_cost),
	};

	/* A rig that hangs ends, and its children with it. */
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
