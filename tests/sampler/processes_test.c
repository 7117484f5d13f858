/* SPDX-License-Identifier: Apache-2.0 */
/* The process table: fork, exec, exit, pid reuse, late answers, full tables. */
#include "sampler/processes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sampler/tables_fake.h"

#define S      1000000000ull
#define RANGES 256u

static struct processes t;
static struct record_range array[RANGES];
static struct bpf_file files[TABLES_FILES_MAX];
static int forgotten;

static void on_forget(void *arg, const struct process *p)
{
	(void)arg;
	(void)p;
	forgotten++;
}

static int setup(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	memset(files, 0, sizeof(files));
	processes_init(&t, 16, array, RANGES, files);
	t.on_forget = on_forget;
	forgotten = 0;
	tables_clear();
	processes_sweep(&t, 100 * S);
	return 0;
}

static struct record_range range(uint64_t start, uint32_t file)
{
	return (struct record_range){.start = start, .end = start + 0x1000, .file_id = file};
}

static struct process *map(uint32_t pid, uint64_t start, uint32_t file, uint64_t time)
{
	struct record_range r = range(start, file);

	return processes_map(&t, pid, &r, time);
}

static struct process *sample(uint32_t pid, uint32_t tid, uint64_t start, uint64_t exec,
			      uint64_t time)
{
	struct record_sample s = {
	    .pid = pid, .tid = tid, .start_ns = start, .exec_id = exec, .time_ns = time};

	return processes_sample(&t, &s);
}

/* Sweep the whole table once. */
static void sweep(uint64_t now)
{
	for (int i = 0; i < 17; i++)
		processes_sweep(&t, now);
}

/* A process that exec'd at time and has two ranges. */
static struct process *begin(uint32_t pid, uint64_t time)
{
	processes_fork(&t, pid, 1, time);
	processes_exec(&t, pid, time + 1);
	map(pid, 0x1000, 1, time + 2);
	return map(pid, 0x5000, 2, time + 3);
}

static void test_exec_tells_all_ranges(void **state)
{
	struct process *p = begin(10, 50 * S);

	(void)state;
	assert_true(p->ranges_known && !p->exec_known && !processes_stale(&t, p));
	assert_int_equal(p->n, 2);
	assert_int_equal(t.slices.used, 1);
	assert_int_equal(p->start_lo_ns, 49 * S);
	assert_int_equal(p->start_hi_ns, 50 * S);
	assert_int_equal(processes_ranges(&t, p)[1].file_id, 2);
	assert_null(map(10, 0x5000, 2, 51 * S)); /* the same again is no change */
	processes_exec(&t, 10, 52 * S);
	assert_int_equal(p->n, 0);
	assert_null(map(10, 0x9000, 2, 51 * S)); /* of the old image */
	assert_int_equal(p->n, 0);
}

static void test_fork_inherits(void **state)
{
	struct process *p = begin(10, 50 * S), *child;

	(void)state;
	assert_ptr_equal(sample(10, 10, 50 * S, 7, 51 * S), p);
	processes_fork(&t, 10, 10, 51 * S); /* a thread */
	assert_int_equal(p->start_hi_ns, 50 * S);
	processes_fork(&t, 11, 10, 52 * S);
	child = processes_find(&t, 11);
	assert_true(child->exec_known && child->exec_id == 7 && child->ranges_known);
	assert_int_equal(child->parent_pid, 10);
	assert_int_equal(child->n, 2);
	/* what one maps is not the other's */
	map(11, 0x9000, 3, 53 * S);
	map(10, 0x7000, 4, 53 * S);
	assert_int_equal(child->n, 3);
	assert_int_equal(processes_ranges(&t, child)[2].file_id, 3);
	assert_int_equal(p->n, 3);
	assert_int_equal(processes_ranges(&t, p)[2].file_id, 4);
	processes_exec(&t, 11, 54 * S);
	assert_int_equal(child->exec_id, 8);
	assert_int_equal(p->n, 3);
}

/* What a sample says about an entry that began at 50 s, exec'd at 60 s and has exec id 7. */
static void test_whose_sample(void **state)
{
	static const struct {
		const char *name;
		uint64_t start, exec, time;
		enum { SAME, OTHER, NOBODY } whose;
	} cases[] = {
	    {"its own", 50 * S, 7, 61 * S, SAME},
	    {"of the image before", 50 * S, 6, 61 * S, NOBODY},
	    {"taken before the exec", 50 * S, 6, 59 * S, NOBODY},
	    {"of an exec that was not reported", 50 * S, 8, 61 * S, OTHER},
	    {"of a pid used again, fork not reported", 60 * S, 3, 61 * S, OTHER},
	    {"of the owner before", 20 * S, 3, 40 * S, NOBODY},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct process *p, *found;

		print_message("%s\n", cases[i].name);
		setup(state);
		begin(10, 50 * S);
		sample(10, 10, 50 * S, 6, 55 * S);
		processes_exec(&t, 10, 60 * S);
		p = processes_find(&t, 10);
		map(10, 0x1000, 1, 60 * S);
		found = sample(10, 10, cases[i].start, cases[i].exec, cases[i].time);
		if (cases[i].whose == NOBODY) {
			assert_null(found);
			assert_int_equal(p->exec_id, 7);
			continue;
		}
		assert_non_null(found);
		assert_int_equal(found->ranges_known, cases[i].whose == SAME);
		assert_int_equal(found->n, cases[i].whose == SAME ? 1 : 0);
		assert_int_equal(found->exec_id, cases[i].exec);
		assert_int_equal(found->start_lo_ns, cases[i].start);
		assert_int_equal(t.n, 1);
	}
}

static void test_fork_reported_after_exec(void **state)
{
	struct process *p;

	(void)state;
	processes_exec(&t, 10, 50 * S + 5);
	map(10, 0x1000, 1, 50 * S + 6);
	processes_fork(&t, 10, 9, 50 * S); /* from the ring of another cpu */
	p = processes_find(&t, 10);
	assert_true(p->ranges_known);
	assert_int_equal(p->n, 1);
	assert_int_equal(p->parent_pid, 9);
}

static void test_pid_used_again(void **state)
{
	struct process *p = begin(10, 50 * S);

	(void)state;
	sample(10, 10, 50 * S, 7, 51 * S);
	processes_publish(&t, p);
	assert_non_null(tables_fake_find(10));
	processes_exit(&t, 10, 10, 52 * S);
	processes_fork(&t, 10, 1, 52 * S + 100);
	p = processes_find(&t, 10);
	assert_int_equal(p->start_lo_ns, 52 * S); /* not before the end of the other one */
	assert_int_equal(p->n, 0);
	assert_false(p->ranges_known || p->exec_known);
	assert_null(tables_fake_find(10));
	sweep(200 * S);
	assert_ptr_equal(processes_find(&t, 10), p); /* the exit was not its own */
	assert_int_equal(forgotten, 0);
}

static void test_exit(void **state)
{
	struct process *p = begin(10, 50 * S);

	(void)state;
	sample(10, 10, 50 * S, 7, 51 * S);
	processes_publish(&t, p);
	processes_exit(&t, 10, 99, 99 * S); /* a thread */
	assert_int_equal(p->exited_ns, 0);
	processes_exit(&t, 10, 10, 100 * S);
	sample(10, 10, 50 * S, 7, 100 * S + 1); /* on its way out */
	sweep(100 * S + TABLES_GRACE_NS - 1);
	assert_ptr_equal(processes_find(&t, 10), p);
	assert_non_null(tables_fake_find(10));
	sweep(100 * S + TABLES_GRACE_NS);
	assert_null(processes_find(&t, 10));
	assert_null(tables_fake_find(10));
	assert_int_equal(forgotten, 1);
	assert_int_equal(t.n, 0);
	assert_int_equal(t.slices.used, 0);
}

/* The leader was gone, and forgotten, before a thread was sampled that goes on. */
static void test_end_of_a_thread_met_alone(void **state)
{
	struct record_sample last = {.pid = 10, .tid = 12, .start_ns = 50 * S, .exec_id = 7,
				     .time_ns = 110 * S + 2, .stop = STOP_NO_USER};
	struct process *p = sample(10, 12, 50 * S, 7, 100 * S);

	(void)state;
	processes_exit(&t, 10, 12, 110 * S + 1);
	assert_int_equal(p->exited_ns, 110 * S + 1);
	/* on its way out, behind the report of its end */
	assert_ptr_equal(processes_sample(&t, &last), p);
	assert_int_equal(p->exited_ns, 110 * S + 1);
	/* of a leader that is sampled the end of another thread is no end */
	p = sample(20, 20, 50 * S, 7, 100 * S);
	processes_exit(&t, 20, 21, 110 * S);
	assert_int_equal(p->exited_ns, 0);
}

static void test_threads_outlive_the_leader(void **state)
{
	(void)state;
	begin(10, 50 * S);
	sample(10, 10, 50 * S, 7, 51 * S);
	processes_exit(&t, 10, 10, 100 * S);
	assert_non_null(sample(10, 12, 50 * S, 7, 101 * S));
	sweep(150 * S);
	assert_non_null(processes_find(&t, 10));
	processes_exit(&t, 10, 12, 160 * S); /* the last one */
	sweep(170 * S);
	assert_null(processes_find(&t, 10));
}

static void test_answer(void **state)
{
	struct record_range told[] = {range(0x1000, 1), range(0x3000, 2), range(0x8000, 3)};
	struct process *p = sample(10, 10, 50 * S, 7, 51 * S);

	(void)state;
	assert_true(processes_stale(&t, p));
	assert_null(map(10, 0x1000, 9, 52 * S)); /* not asked yet: the answer will hold it */
	assert_int_equal(p->n, 0);
	p->asked = true;
	assert_null(map(10, 0x3000, 4, 53 * S));
	assert_true(processes_answer(&t, p, told, 3, 52 * S));
	assert_false(processes_stale(&t, p));
	assert_int_equal(p->n, 3);
	assert_int_equal(processes_ranges(&t, p)[0].file_id, 1);
	assert_int_equal(processes_ranges(&t, p)[1].file_id, 4); /* newer than the answer */
	assert_false(processes_answer(&t, p, told, 3, 54 * S));	 /* nobody asked */
}

static void test_answer_that_comes_too_late(void **state)
{
	struct record_range told[] = {range(0x1000, 1)};
	struct process *p = sample(10, 10, 50 * S, 7, 51 * S);

	(void)state;
	p->asked = true;
	processes_exec(&t, 10, 52 * S);
	assert_false(processes_answer(&t, p, told, 1, 51 * S));
	assert_int_equal(p->n, 0);
	assert_true(p->ranges_known);
	/* a repair that was read before the newest mapping */
	map(10, 0x2000, 2, 60 * S);
	t.lost_epoch++;
	assert_true(processes_stale(&t, p));
	p->asked = true;
	assert_false(processes_answer(&t, p, told, 1, 59 * S));
	assert_true(processes_stale(&t, p));
	p->asked = true;
	assert_true(processes_answer(&t, p, told, 1, 61 * S));
	assert_false(processes_stale(&t, p));
	assert_int_equal(p->n, 1); /* what was unmapped unnoticed is gone */
}

static void test_publish(void **state)
{
	struct process *p = begin(10, 50 * S);
	const struct bpf_process *b;

	(void)state;
	processes_publish(&t, p); /* exec id not known */
	assert_null(tables_fake_find(10));
	sample(10, 10, 50 * S - 5, 7, 51 * S);
	processes_publish(&t, p);
	b = tables_fake_find(10);
	assert_int_equal(b->flags, BPF_PROCESS_EXEC_KNOWN);
	assert_int_equal(b->exec_id, 7);
	assert_int_equal(b->start_lo_ns, 50 * S - 5);
	assert_int_equal(b->start_hi_ns, 50 * S - 5);
	assert_int_equal(b->count, 2);
	assert_memory_equal(&array[b->first], processes_ranges(&t, p), 2 * sizeof(*array));
	map(10, 0x9000, 3, 52 * S);
	assert_int_equal(tables_fake_find(10)->count, 3);
	processes_exec(&t, 10, 53 * S);
	assert_null(tables_fake_find(10));
}

/* Whether anybody makes code is known when the process is published, or when the table comes. */
static void test_made_by(void **state)
{
	struct process *p = begin(10, 50 * S);

	(void)state;
	begin(20, 50 * S);
	/* What was here before is no file 0. */
	files[0].flags = BPF_FILE_TABLE | BPF_FILE_RUNTIME;
	map(10, 0x9000, 0, 51 * S);
	map(10, 0xa000, 6, 51 * S);
	sample(10, 10, 50 * S, 7, 51 * S);
	processes_publish(&t, p);
	assert_int_equal(tables_fake_find(10)->count, 4);
	assert_int_equal(tables_fake_find(10)->made_by, 0);
	files[6] = (struct bpf_file){.file_id = 6, .flags = BPF_FILE_TABLE};
	processes_tabled(&t, 6);
	assert_int_equal(tables_fake_find(10)->made_by, 0);
	files[6].flags |= BPF_FILE_RUNTIME;
	processes_tabled(&t, 5);
	assert_int_equal(tables_fake_find(10)->made_by, 0);
	processes_tabled(&t, 6);
	assert_int_equal(tables_fake_find(10)->made_by, 4);
	assert_null(tables_fake_find(20));
	/* The entry of another file by now, of that number modulo TABLES_FILES_MAX. */
	files[6].file_id += TABLES_FILES_MAX;
	processes_publish(&t, p);
	assert_int_equal(tables_fake_find(10)->made_by, 0);
	files[6].file_id = 6;
	/* It is counted in the slice as it is: another range comes before. */
	assert_ptr_equal(map(10, 0x8000, 3, 52 * S), p);
	assert_int_equal(tables_fake_find(10)->count, 5);
	assert_int_equal(tables_fake_find(10)->made_by, 5);
}

/* Code was replaced, and will be again: BPF is not told before it has been steady for a while. */
static void test_replaced_code(void **state)
{
	struct process *p = begin(10, 50 * S);

	(void)state;
	sample(10, 10, 50 * S - 5, 7, 51 * S);
	processes_publish(&t, p);
	map(10, 0x9000, 3, 52 * S);
	assert_non_null(tables_fake_find(10));
	assert_int_equal(p->steady_ns, 0);
	assert_ptr_equal(map(10, 0x9000, 4, 53 * S), p);
	assert_null(tables_fake_find(10));
	assert_true(p->steady_ns > 53 * S);
}

/* BPF may look at a slice for a while after it was told of another one. */
static void test_given_up_slices_keep_their_contents(void **state)
{
	struct process *p = begin(10, 50 * S);
	struct record_range before[2];
	uint32_t first = p->first;

	(void)state;
	memcpy(before, &array[first], sizeof(before));
	map(10, 0x3000, 3, 51 * S); /* between them: a new slice */
	assert_int_not_equal(p->first, first);
	for (uint32_t pid = 20; pid < 30; pid++)
		begin(pid, 52 * S);
	assert_memory_equal(before, &array[first], sizeof(before));
}

static void test_table_full(void **state)
{
	(void)state;
	for (uint32_t pid = 10; pid < 26; pid++)
		processes_exec(&t, pid, 50 * S);
	assert_int_equal(t.n, 16);
	processes_exec(&t, 99, 51 * S);
	assert_null(processes_find(&t, 99));
	assert_int_equal(t.refused, 1);
	sweep(101 * S);
	sample(12, 12, 49 * S, 7, 101 * S); /* somebody cares for 12 */
	sweep(102 * S);
	assert_int_equal(t.n, 13); /* one eighth is free again, and a little more */
	assert_non_null(processes_find(&t, 12));
	processes_exec(&t, 99, 103 * S);
	assert_non_null(processes_find(&t, 99));
}

static void test_array_full(void **state)
{
	struct process *p = begin(10, 50 * S);

	(void)state;
	sample(10, 10, 50 * S, 7, 51 * S);
	p->introduced = true;
	for (uint64_t i = 0; i < RANGES && p->ranges_known; i++)
		map(10, 0x10000 + i * 0x2000, 1, 52 * S);
	assert_true(t.ranges_refused > 0);
	assert_int_equal(p->n, 0); /* rather none than some */
	assert_int_equal(tables_fake_find(10)->flags,
			 BPF_PROCESS_EXEC_KNOWN | BPF_PROCESS_NO_STACK);
	assert_int_equal(tables_fake_find(10)->count, 0);
	assert_true(p->ask_after_ns > t.now_ns);
	assert_int_equal(t.slices.used, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_exec_tells_all_ranges),
	    TEST(test_fork_inherits),
	    TEST(test_whose_sample),
	    TEST(test_fork_reported_after_exec),
	    TEST(test_pid_used_again),
	    TEST(test_exit),
	    TEST(test_threads_outlive_the_leader),
	    TEST(test_end_of_a_thread_met_alone),
	    TEST(test_answer),
	    TEST(test_answer_that_comes_too_late),
	    TEST(test_publish),
	    TEST(test_made_by),
	    TEST(test_replaced_code),
	    TEST(test_given_up_slices_keep_their_contents),
	    TEST(test_table_full),
	    TEST(test_array_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
