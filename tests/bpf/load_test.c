/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF object in the kernel: what its maps are, what a sample holds, and the known call chain of
 * a busy child, once copied out for a walk outside and once walked in BPF.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <cmocka.h>

#include "tests/bpf/busy.h"
#include "tests/bpf/chain.h"
#include "tests/bpf/rig.h"

/* What the verifier may have to walk. More costs start-up time and room on older kernels. */
#define INSNS_BUDGET 25000
#define RING_BYTES (1u << 22)
#define TICK_NS 10000000ull

static struct rig rig;

static void skip_unless_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("skipped: loading BPF needs root\n");
	skip();
}

static void assert_header(const struct record_sample *s, pid_t pid, uint64_t start_ticks)
{
	assert_int_equal(s->pid, pid);
	assert_int_equal(s->tid, pid);
	assert_int_equal(s->start_ns / TICK_NS, start_ticks);
	assert_true(s->time_ns > s->start_ns);
	assert_true(s->cgroup_id != 0);
	assert_string_equal(s->comm, "load_test");
}

static void assert_books(void)
{
	assert_false(rig.malformed);
	for (size_t i = 0; i < rig.samples_n; i++) {
		const struct record_sample *s = rig.samples[i];

		assert_int_equal(s->seq, ++rig.last_seq[s->cpu]);
	}
}

/* Start the work, sample it as an unknown process for so long. */
static pid_t sample_unknown(void (*work)(void), struct rig_process *process, int ms)
{
	pid_t pid = busy_start(work);

	rig_open(&rig, pid, RING_BYTES);
	/* Out of fork and into the work. */
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	rig_read_process(process, pid);
	rig_sample(&rig, ms, true);
	return pid;
}

static void sample_end(pid_t pid)
{
	busy_end(pid);
	rig_close(&rig);
}

static void assert_map(int fd, const char *name, uint32_t type, uint32_t key, uint32_t value,
		       uint32_t entries, uint32_t flags)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	assert_string_equal(info.name, name);
	assert_int_equal(info.type, type);
	assert_int_equal(info.key_size, key);
	assert_int_equal(info.value_size, value);
	assert_int_equal(info.max_entries, entries);
	assert_int_equal(info.map_flags, flags);
}

static void test_maps_and_insns(void **state)
{
	pid_t self = getpid();
	uint32_t one = 0;

	(void)state;
	skip_unless_root();
	rig_open(&rig, self, RING_BYTES);
	assert_map(rig.bpf.map[BPF_PROCS], "procs", BPF_MAP_TYPE_HASH, 4, sizeof(struct bpf_process),
		   rig.config.processes_max, 0);
	assert_map(rig.bpf.map[BPF_RANGES], "ranges", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct record_range),
		   rig.config.ranges_max, BPF_F_MMAPABLE);
	assert_map(rig.bpf.map[BPF_CPUS], "cpus", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct bpf_cpu),
		   rig.config.runtime.cpus, BPF_F_MMAPABLE);
	assert_map(rig.bpf.map[BPF_FILES], "files", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct bpf_file),
		   TABLES_FILES_MAX + 1, BPF_F_MMAPABLE);
	assert_map(rig.bpf.map[BPF_CHUNKS], "chunks", BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4,
		   (uint32_t)(rig.config.unwind_bytes / TABLES_CHUNK_BYTES), 0);
	assert_map(rig.bpf.map[BPF_CHUNK], "chunk", BPF_MAP_TYPE_ARRAY, 4, TABLES_CHUNK_BYTES, 1,
		   BPF_F_MMAPABLE);
	assert_map(rig.bpf.map[BPF_TARGETS], "targets", BPF_MAP_TYPE_HASH, 4, 4, TABLES_TARGETS_MAX, 0);
	assert_map(rig.bpf.map[BPF_EVENTS], "events", BPF_MAP_TYPE_RINGBUF, 0, 0, RING_BYTES, 0);
	assert_int_equal(bpf_map_lookup_elem(rig.bpf.map[BPF_TARGETS], &self, &one), 0);
	assert_int_equal(one, 1);
	print_message("verified instructions: %u (budget %u)\n", rig.bpf.program_insns,
		      INSNS_BUDGET);
	assert_in_range(rig.bpf.program_insns, 100, INSNS_BUDGET);
	rig_close(&rig);
}

static void test_unknown_process_is_deferred(void **state)
{
	static struct chain chain;
	struct rig_process process;
	size_t nests = 0;
	pid_t pid;

	(void)state;
	skip_unless_root();
	pid = sample_unknown(busy_nest, &process, 1000);
	assert_books();
	assert_in_range(rig.samples_n, 20, 120);
	assert_int_equal(rig_taken(&rig), rig.samples_n);
	assert_int_equal(rig_ring_full(&rig), 0);
	for (size_t i = 0; i < rig.samples_n; i++) {
		const struct record_sample *s = rig.samples[i];

		assert_header(s, pid, process.start_ticks);
		assert_int_equal(s->stop, STOP_DEFERRED);
		assert_int_equal(s->user_slots, 0);
		assert_true(s->header.flags & RECORD_HAS_STACK);
		assert_true(busy_nest_holds(BUSY_NEST, rig_regs(s)->pc));
		assert_true(s->stack_bytes > 256 && s->stack_bytes <= RECORD_STACK_BYTES_MAX);
		/* The nest calls at its leaf: the page below was written to. */
		assert_true(rig_regs(s)->flags & RECORD_REGS_BELOW);
		chain_walk(&chain, s, &process);
		nests += chain_is_nest(chain.frames, chain.n, &process);
	}
	assert_int_equal(nests, rig.samples_n);
	sample_end(pid);
}

static void test_known_process_is_walked(void **state)
{
	struct rig_process process;
	uint64_t exec_id;
	pid_t pid;

	(void)state;
	skip_unless_root();
	pid = sample_unknown(busy_nest, &process, 150);
	assert_books();
	assert_true(rig.samples_n > 0);
	exec_id = rig.samples[0]->exec_id;
	rig_forget(&rig);
	rig_install(&rig, pid, &process, exec_id, 1000, BPF_PROCESS_EXEC_KNOWN);
	rig_sample(&rig, 1000, true);
	assert_books();
	assert_in_range(rig.samples_n, 20, 120);
	for (size_t i = 0; i < rig.samples_n; i++) {
		const struct record_sample *s = rig.samples[i];

		assert_header(s, pid, process.start_ticks);
		assert_int_equal(s->exec_id, exec_id);
		assert_false(s->header.flags & RECORD_HAS_STACK);
		assert_true(chain_is_nest(s->frames + s->kernel_frames, s->user_slots, &process));
	}
	sample_end(pid);
}

/* An entry that is of another process or program in any respect must not be used. */
static void test_wrong_identity_is_deferred(void **state)
{
	struct rig_process process, other;
	uint64_t exec_id;
	pid_t pid;

	(void)state;
	skip_unless_root();
	pid = sample_unknown(busy_nest, &process, 150);
	assert_true(rig.samples_n > 0);
	exec_id = rig.samples[0]->exec_id;
	for (int wrong = 0; wrong < 6; wrong++) {
		other = process;
		other.start_ticks += wrong == 1 ? 1 : wrong == 2 ? -1 : 0;
		rig_forget(&rig);
		/* That there are no ranges to come (4) is not said of another program (5). */
		rig_install(&rig, pid, &other, exec_id + (wrong == 3 || wrong == 5), 0,
			    wrong == 0	 ? 0
			    : wrong >= 4 ? BPF_PROCESS_NO_STACK
					 : BPF_PROCESS_EXEC_KNOWN);
		rig_sample(&rig, 150, true);
		assert_true(rig.samples_n > 0);
		for (size_t i = 0; i < rig.samples_n; i++) {
			const struct record_sample *s = rig.samples[i];

			assert_int_equal(s->stop, STOP_DEFERRED);
			assert_true(s->header.flags & RECORD_HAS_STACK);
			assert_int_equal(s->stack_bytes == 0, wrong == 4);
			assert_true(busy_nest_holds(BUSY_NEST, rig_regs(s)->pc));
		}
	}
	assert_false(rig.malformed);
	sample_end(pid);
}

/* Slices that reach out of the array, or hold nonsense: no frame but the leaf's own pc. */
static void test_hostile_slices(void **state)
{
	struct rig_process process, hostile;
	uint64_t exec_id;
	pid_t pid;

	(void)state;
	skip_unless_root();
	pid = sample_unknown(busy_nest, &process, 150);
	assert_true(rig.samples_n > 0);
	exec_id = rig.samples[0]->exec_id;
	hostile = process;
	for (uint32_t i = 0; i < hostile.ranges_n; i++)
		hostile.ranges[i].end = hostile.ranges[i].start;
	for (int round = 0; round < 3; round++) {
		struct bpf_process entry;

		rig_forget(&rig);
		rig_install(&rig, pid, &hostile, exec_id, 0,
			    BPF_PROCESS_EXEC_KNOWN | BPF_PROCESS_NO_STACK);
		assert_int_equal(bpf_map_lookup_elem(rig.bpf.map[BPF_PROCS], &pid, &entry), 0);
		entry.first = round == 1 ? UINT32_MAX : 0;
		entry.count = round == 0 ? entry.count : UINT32_MAX;
		assert_int_equal(bpf_map_update_elem(rig.bpf.map[BPF_PROCS], &pid, &entry, BPF_ANY), 0);
		rig_sample(&rig, 150, true);
		assert_true(rig.samples_n > 0);
		for (size_t i = 0; i < rig.samples_n; i++) {
			const struct record_sample *s = rig.samples[i];

			assert_int_equal(s->stop, STOP_NO_MAPPING);
			assert_int_equal(s->user_slots, 1);
			assert_int_equal(s->frames[s->kernel_frames].kind, FRAME_PC);
		}
	}
	sample_end(pid);
}

/* Code that was mapped a moment ago: at the leaf, or below it. Somebody else has to walk. */
static void test_missing_range_is_deferred(void **state)
{
	struct rig_process process, known;
	uint64_t exec_id;
	pid_t pid;

	(void)state;
	skip_unless_root();
	pid = sample_unknown(busy_nest, &process, 150);
	assert_true(rig.samples_n > 0);
	exec_id = rig.samples[0]->exec_id;
	/* first all but this program, then nothing but it: its caller is the C library */
	for (int round = 0; round < 2; round++) {
		known = process;
		for (uint32_t i = 0; i < known.ranges_n; i++)
			if ((known.ranges[i].file_id == process.ranges[0].file_id) == (round == 0))
				known.ranges[i].end = known.ranges[i].start;
		rig_forget(&rig);
		rig_install(&rig, pid, &known, exec_id, 0, BPF_PROCESS_EXEC_KNOWN);
		rig_sample(&rig, 300, true);
		assert_false(rig.malformed);
		assert_true(rig.samples_n > 0);
		for (size_t i = 0; i < rig.samples_n; i++) {
			assert_int_equal(rig.samples[i]->stop, STOP_DEFERRED);
			assert_true(rig.samples[i]->stack_bytes > 0);
			assert_int_equal(rig.samples[i]->user_slots, 0);
		}
	}
	sample_end(pid);
}

static void test_syscall(void **state)
{
	struct rig_process process;
	size_t in_kernel = 0, behind_syscall = 0;
	pid_t pid;

	(void)state;
	skip_unless_root();
	pid = sample_unknown(busy_syscall, &process, 2000);
	assert_books();
	for (size_t i = 0; i < rig.samples_n; i++) {
		const struct record_sample *s = rig.samples[i];

		assert_header(s, pid, process.start_ticks);
		if (!(s->header.flags & RECORD_IN_KERNEL))
			continue;
		in_kernel++;
		behind_syscall +=
		    (rig_regs(s)->flags & RECORD_REGS_SYSCALL) && s->kernel_frames > 2;
	}
	assert_true(in_kernel > 10);
	assert_true(behind_syscall * 10 >= in_kernel * 9);
	sample_end(pid);
}

static void test_compat32(void **state)
{
	pid_t pid;

	(void)state;
	skip_unless_root();
	pid = busy_start(busy_compat32);
	rig_open(&rig, pid, RING_BYTES);
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	if (waitpid(pid, NULL, WNOHANG) == pid) {
		rig_close(&rig);
		print_message("skipped: this kernel runs no 32-bit code\n");
		skip();
	}
	rig_sample(&rig, 200, true);
	assert_books();
	assert_true(rig.samples_n > 0);
	for (size_t i = 0; i < rig.samples_n; i++) {
		assert_int_equal(rig.samples[i]->stop, STOP_COMPAT32);
		assert_int_equal(rig.samples[i]->user_slots, 0);
	}
	sample_end(pid);
}

/* The word that sp points to: argc, where a program begins. */
static uint64_t at_sp(const struct record_sample *s)
{
	const uint64_t *stack = (const void *)(rig_regs(s) + 1);

	return stack[rig_regs(s)->flags & RECORD_REGS_BELOW ? RECORD_STACK_BELOW / sizeof(*stack) : 0];
}

/*
 * In the middle of execve the registers are those of a program whose memory is gone. In any other
 * system call there is something that sp points to.
 */
static void test_between_two_programs(void **state)
{
	size_t between = 0, walkable = 0;
	struct rig_process process;
	pid_t pid;

	(void)state;
	skip_unless_root();
	pid = sample_unknown(busy_execve, &process, 1000);
	/* It may not be alone. */
	for (int more = 0; more < 12 && rig.samples_n < 160; more++)
		rig_sample(&rig, 1000, true);
	assert_books();
	for (size_t i = 0; i < rig.samples_n; i++) {
		const struct record_sample *s = rig.samples[i];

		if (s->stop == STOP_EXECVE) {
			assert_true(s->header.flags & RECORD_IN_KERNEL);
			assert_int_equal(s->user_slots + s->stack_bytes, 0);
			between++;
		} else if (s->stop == STOP_DEFERRED) {
			/* A fault may be why there is nothing yet. */
			assert_true(s->stack_bytes || !(rig_regs(s)->flags & RECORD_REGS_SYSCALL));
			/* Where a program begins pc is not behind a syscall. */
			if (s->stack_bytes && at_sp(s) == BUSY_EXECVE_ARGC)
				assert_false(rig_regs(s)->flags & RECORD_REGS_SYSCALL);
			walkable++;
		} else {
			assert_int_equal(s->stop, STOP_NO_USER);
		}
	}
	print_message("%zu between two programs, %zu in one\n", between, walkable);
	assert_true(between > 5 && walkable > 5);
	sample_end(pid);
}

static void test_filter_turns_others_away(void **state)
{
	struct rig_process process;
	pid_t other = 0, pid;
	uint64_t filtered = 0;

	(void)state;
	skip_unless_root();
	other = busy_start(busy_nest);
	pid = sample_unknown(busy_nest, &process, 300);
	assert_true(rig.samples_n > 0);
	for (size_t i = 0; i < rig.samples_n; i++)
		assert_int_equal(rig.samples[i]->pid, pid);
	for (uint32_t cpu = 0; cpu < rig.config.runtime.cpus; cpu++)
		filtered += rig.cpus[cpu].filtered;
	assert_true(filtered > 0);
	busy_end(other);
	sample_end(pid);
}

/* Everything that runs, kernel threads included, obeys the layout. */
static void test_all_processes(void **state)
{
	pid_t pid;

	(void)state;
	skip_unless_root();
	rig_open(&rig, 0, RING_BYTES);
	pid = busy_start(busy_nest);
	rig_sample(&rig, 300, true);
	assert_books();
	assert_true(rig.samples_n > 0);
	assert_int_equal(rig_taken(&rig), rig.samples_n + rig_ring_full(&rig));
	sample_end(pid);
}

static bool is_target(uint32_t pid)
{
	uint32_t one;

	return bpf_map_lookup_elem(rig.bpf.map[BPF_TARGETS], &pid, &one) == 0;
}

static void test_children_are_followed(void **state)
{
	int gate[2];
	char go = 0;
	uint32_t child = 0;
	pid_t pid;

	(void)state;
	skip_unless_root();
	assert_int_equal(pipe(gate), 0);
	pid = fork();
	if (pid == 0) {
		/* The filter has to know the parent before it forks. */
		if (read(gate[0], &go, 1) == 1)
			busy_fork();
		_exit(1);
	}
	rig_open(&rig, pid, RING_BYTES);
	assert_int_equal(write(gate[1], &go, 1), 1);
	close(gate[0]);
	close(gate[1]);
	rig_sample(&rig, 300, true);
	for (size_t i = 0; i < rig.samples_n; i++)
		if (rig.samples[i]->pid != (uint32_t)pid)
			child = rig.samples[i]->pid;
	assert_int_not_equal(child, 0);
	assert_true(is_target(child));
	/* It is forgotten after its end: once it is reaped and the kernel has freed the task. */
	kill((pid_t)child, SIGKILL);
	for (int i = 0; i < 100 && is_target(child); i++)
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	assert_false(is_target(child));
	assert_true(is_target((uint32_t)pid));
	sample_end(pid);
}

/* Nobody reads: what finds no room is counted, and what was there before arrives whole. */
static void test_full_ring(void **state)
{
	pid_t pid;

	(void)state;
	skip_unless_root();
	pid = busy_start(busy_nest);
	rig_open(&rig, pid, 16384);
	rig_sample(&rig, 500, false);
	rig_collect(&rig);
	assert_false(rig.malformed);
	assert_true(rig.samples_n > 0);
	assert_true(rig_ring_full(&rig) > 0);
	assert_int_equal(rig_taken(&rig), rig.samples_n + rig_ring_full(&rig));
	sample_end(pid);
}

static void busy_33_frames(void)
{
	/* With those that called it: busy_33_frames, busy_start and the test. */
	busy_deep(30);
}

static void read_info(struct bpf_prog_info *info)
{
	uint32_t size = sizeof(*info);

	memset(info, 0, sizeof(*info));
	assert_int_equal(bpf_obj_get_info_by_fd(rig.bpf.program, info, &size), 0);
}

/* What one sample costs, for a known stack and for one that is copied out. */
static void test_cost(void **state)
{
	struct bpf_prog_info before, after;
	struct rig_process process;
	pid_t pid;
	int stats;

	(void)state;
	skip_unless_root();
	pid = sample_unknown(busy_33_frames, &process, 100);
	assert_true(rig.samples_n > 0);
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	assert_true(stats >= 0);
	for (int known = 0; known < 2; known++) {
		uint64_t exec_id = rig.samples[0]->exec_id, taken = rig_taken(&rig), ns;

		if (known)
			rig_install(&rig, pid, &process, exec_id, 0, BPF_PROCESS_EXEC_KNOWN);
		rig_forget(&rig);
		read_info(&before);
		rig_sample(&rig, 2000, true);
		read_info(&after);
		assert_true(rig.samples_n > 0);
		/* Runs that the filter turned away are paid by those that it let through. */
		ns = (after.run_time_ns - before.run_time_ns) / (rig_taken(&rig) - taken);
		print_message("%s: %llu ns per sample, %u user frames, %u bytes (%zu samples)\n",
			      known ? "walked" : "copied", (unsigned long long)ns,
			      rig.samples[0]->user_slots, rig.samples[0]->header.len_bytes,
			      rig.samples_n);
		assert_true(ns > 0);
	}
	close(stats);
	sample_end(pid);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_maps_and_insns),
		cmocka_unit_test(test_unknown_process_is_deferred),
		cmocka_unit_test(test_known_process_is_walked),
		cmocka_unit_test(test_wrong_identity_is_deferred),
		cmocka_unit_test(test_hostile_slices),
		cmocka_unit_test(test_missing_range_is_deferred),
		cmocka_unit_test(test_syscall),
		cmocka_unit_test(test_compat32),
		cmocka_unit_test(test_between_two_programs),
		cmocka_unit_test(test_filter_turns_others_away),
		cmocka_unit_test(test_all_processes),
		cmocka_unit_test(test_children_are_followed),
		cmocka_unit_test(test_full_ring),
		cmocka_unit_test(test_cost),
	};

	if (argc > 1 && strcmp(argv[1], BUSY_EXECVE) == 0)
		busy_execve();
	/* A rig that hangs ends, and its children with it. */
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
