/* SPDX-License-Identifier: Apache-2.0 */
/* Processes: identity, ranges that replace others, exec, bounds. */
#include "symbolizer/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGES 64

static struct processes all;

static void tell(uint32_t pid, uint64_t lo, uint64_t hi, uint64_t exec_id, uint32_t flags)
{
	struct record_process r = {.header = {sizeof(r), RECORD_PROCESS, 0},
				   .pid = pid,
				   .start_lo_ns = lo,
				   .start_hi_ns = hi,
				   .exec_id = exec_id,
				   .flags = flags};

	assert_true(processes_record(&all, &r.header));
}

static void map(uint32_t pid, uint64_t start, uint64_t end, uint64_t offset, uint32_t file_id)
{
	struct record_mapping r = {.header = {sizeof(r), RECORD_MAPPING, 0},
				   .pid = pid,
				   .range = {start, end, offset, file_id, 0}};

	assert_true(processes_record(&all, &r.header));
}

/* Against a table of pages: each page belongs to whom it was mapped last. */
static void test_ranges(void **state)
{
	struct {
		uint32_t file;
		uint64_t offset;
	} truth[PAGES] = {0};
	struct process *p;

	(void)state;
	assert_int_equal(processes_open(&all, 16, 10000), 0);
	tell(1, 100, 100, 1, 0);
	srand(5);
	for (int round = 0; round < 3000; round++) {
		uint32_t a = (uint32_t)rand() % PAGES, n = 1 + (uint32_t)rand() % 12;
		uint32_t end = a + n < PAGES ? a + n : PAGES, total = 0;

		map(1, a, end, 1000u * (uint32_t)round, (uint32_t)round + 1);
		for (uint32_t i = a; i < end; i++) {
			truth[i].file = (uint32_t)round + 1;
			truth[i].offset = 1000u * (uint32_t)round + i - a;
		}
		p = processes_get(&all, 1, 100);
		for (uint32_t i = 0; i < PAGES; i++) {
			const struct record_range *r = process_find_range(p, i);

			assert_int_equal(r ? r->file_id : 0, truth[i].file);
			if (r)
				assert_int_equal(i - r->start + r->offset, truth[i].offset);
		}
		for (uint32_t i = 0; i < p->ranges_n; i++) {
			assert_true(p->ranges[i].start < p->ranges[i].end);
			assert_true(i == 0 || p->ranges[i - 1].end <= p->ranges[i].start);
			total++;
		}
		assert_int_equal(all.ranges, total);
	}
	processes_close(&all);
}

static void test_identity(void **state)
{
	struct message_process_info info = {.pid = 1, .start_lo_ns = 100, .start_hi_ns = 110};
	struct record_exit end = {{sizeof(end), RECORD_EXIT, 0}, 1, 0, 500};
	struct process *p;

	(void)state;
	assert_int_equal(processes_open(&all, 16, 10000), 0);
	tell(1, 100, 110, 0, PROCESS_PENDING);
	strcpy(info.executable, "/bin/a");
	processes_info(&all, &info);
	p = processes_get(&all, 1, 105);
	assert_true(p->info_known && p->introduced);
	assert_string_equal(p->executable, "/bin/a");
	assert_false(process_ranges_hold(p, 7));
	/* The snapshot that was pending: the same process, not another program. */
	tell(1, 100, 110, 7, 0);
	map(1, 0x1000, 0x2000, 0, 3);
	p = processes_get(&all, 1, 105);
	assert_true(p->info_known);
	assert_true(process_ranges_hold(p, 7));
	assert_false(process_ranges_hold(p, 8));
	/* exec */
	tell(1, 100, 110, 8, 0);
	p = processes_get(&all, 1, 105);
	assert_false(p->info_known);
	assert_int_equal(p->ranges_n, 0);
	/* An exit of an earlier process of that pid is not this one's. */
	end.time_ns = 50;
	assert_true(processes_record(&all, &end.header));
	assert_false(processes_get(&all, 1, 105)->exited);
	end.time_ns = 500;
	assert_true(processes_record(&all, &end.header));
	assert_true(processes_get(&all, 1, 105)->exited);
	/* The pid again, for another process. */
	p = processes_get(&all, 1, 600);
	assert_false(p->introduced || p->info_known || p->exited);
	processes_close(&all);
}

/* Who has ended is kept until the last sample is done that it may have left, and no longer. */
static void test_end(void **state)
{
	struct record_exit end = {{sizeof(end), RECORD_EXIT, 0}, 0, 0, 500};

	(void)state;
	assert_int_equal(processes_open(&all, 16, 10000), 0);
	for (uint32_t pid = 1; pid <= 4; pid++) {
		tell(pid, 100, 110, 7, 0);
		map(pid, 0x1000, 0x2000, 0, 3);
	}
	all.head = 1000;
	for (end.pid = 2; end.pid <= 4; end.pid++)
		assert_true(processes_record(&all, &end.header));
	processes_sweep(&all, 999);
	assert_int_equal(all.table.count, 4);
	/* a sample that it left behind; and a process that goes on after all */
	assert_int_equal(processes_get(&all, 3, 105)->ranges_n, 1);
	tell(4, 100, 110, 7, 0);
	processes_sweep(&all, 1000);
	assert_int_equal(all.table.count, 2);
	assert_false(processes_get(&all, 4, 105)->exited);
	assert_int_equal(processes_get(&all, 1, 105)->ranges_n, 1);
	assert_int_equal(all.ranges, 1);
	/* One that has ended after it, with samples to come, holds up nobody. */
	all.head = 2000;
	end.pid = 1;
	assert_true(processes_record(&all, &end.header));
	all.head = 3000;
	end.pid = 4;
	assert_true(processes_record(&all, &end.header));
	processes_sweep(&all, 2000);
	assert_int_equal(all.table.count, 1);
	/* Many that end again and again: the first of the ring go. */
	for (uint32_t i = 0; i < 2 * PROCESSES_ENDED; i++) {
		tell(i % 16, 100, 110, 7, 0);
		end.pid = i % 16;
		assert_true(processes_record(&all, &end.header));
	}
	assert_true(all.ended_n <= PROCESSES_ENDED);
	processes_close(&all);
}

static void test_bounds(void **state)
{
	struct record_header bad = {8, RECORD_PROCESS, 0};

	(void)state;
	assert_int_equal(processes_open(&all, 16, 100), 0);
	for (uint32_t pid = 1; pid <= 1000; pid++) {
		tell(pid, pid, pid, 1, 0);
		for (uint32_t i = 0; i < 20; i++)
			map(pid, i * 10, i * 10 + 5, 0, 1);
		assert_true(all.table.count <= 16);
		assert_true(all.ranges <= 100);
		/* Room is made for the newest at the cost of the oldest. */
		assert_int_equal(processes_get(&all, pid, pid)->ranges_n, 20);
	}
	tell(2000, 1, 1, 1, 0);
	for (uint32_t i = 0; i < 1000; i++)
		map(2000, i * 10, i * 10 + 5, 0, 1);
	assert_true(all.ranges <= 100);
	assert_false(processes_record(&all, &bad));
	bad.kind = 99;
	assert_false(processes_record(&all, &bad));
	processes_close(&all);
}

static void test_name(void **state)
{
	struct process *p;

	(void)state;
	assert_int_equal(processes_open(&all, 16, 100), 0);
	p = processes_get(&all, 1, 1);
	process_name(p, "thread\0\0\0\0\0\0\0\0\0", false);
	process_name(p, "other\0\0\0\0\0\0\0\0\0\0", false);
	assert_string_equal(p->comm, "thread");
	process_name(p, "leader\0\0\0\0\0\0\0\0\0", true);
	process_name(p, "renamed\0\0\0\0\0\0\0\0", true);
	assert_string_equal(p->comm, "leader");
	processes_close(&all);
}

static void inform(uint32_t pid, uint64_t start, uint64_t exec_id, const char *executable)
{
	static struct message_process_info info;

	info = (struct message_process_info){
	    .pid = pid, .start_lo_ns = start, .start_hi_ns = start, .exec_id = exec_id};
	strcpy(info.executable, executable);
	processes_info(&all, &info);
}

/* The broker's word does not come in step with the samples: it may be of a later program. */
static void test_info(void **state)
{
	struct process *p;

	(void)state;
	assert_int_equal(processes_open(&all, 16, 100), 0);
	tell(1, 100, 100, 1, 0);
	p = processes_get(&all, 1, 100);
	assert_false(p->info_known);
	inform(1, 100, 1, "/bin/sh");
	assert_true(p->info_known);
	tell(1, 100, 100, 2, 0);
	assert_false(p->info_known);
	inform(1, 100, 3, "/bin/true");
	assert_true(p->info_known);
	tell(1, 100, 100, 3, 0);
	assert_true(p->info_known);

	/* Gone before the broker looked: nothing more will come, nothing is forgotten. */
	tell(1, 100, 100, 4, 0);
	assert_false(p->info_known);
	inform(1, 100, 4, "");
	assert_true(p->info_known);
	assert_string_equal(p->executable, "/bin/true");

	/* Late, of one that had the pid before. */
	inform(1, 50, 9, "/bin/old");
	assert_ptr_equal(processes_get(&all, 1, 100), p);
	assert_string_equal(p->executable, "/bin/true");
	processes_close(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ranges),
	    cmocka_unit_test(test_identity),
	    cmocka_unit_test(test_end), cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_name),
	    cmocka_unit_test(test_info),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
