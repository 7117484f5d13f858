// SPDX-License-Identifier: Apache-2.0
/*
 * One measurement for bench/unwind-cost: what a sample of one stack costs in BPF.
 *
 *     unwind_cost rows|file|fp|script|go FRAMES HERTZ SECONDS [PROGRAM OF GO]
 *
 * rows: functions without frame pointers, walked by tables; fp: functions with them and no tables;
 * go: by Go's own table; script: frames of scripts, a loop's that was called by some functions of C;
 * file: rows, in a file that has a runtime which does not run. Prints samples, user frames of a sample, ns of a sample and bytes of a
 * record. Samples of other processes are filtered and cost a little; that is measured while the
 * process is stopped, and taken off.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "tests/bpf/busy.h"
#include "tests/bpf/frameless.h"
#include "tests/bpf/rig.h"
#include "tests/bpf/scripts.h"
#include "tests/bpf/tables.h"

#define RING_BYTES	(1u << 22)
#define CALLERS		6 /* of the deep function: work, busy_start, main and three of the C library's */
#define GO_CALLERS	6 /* and the leaf */
#define SCRIPT_CALLERS	11 /* and the leaf, all of them C */
#define FILTERED_MS	200
#define PREPARE_TURNS	50
#define FOREVER_SECONDS "100"

struct cost {
	uint64_t ns, runs, taken, filtered;
	uint64_t samples, user, bytes; /* of the samples that were kept */
};

static struct rig rig;
static struct store store;
static struct rig_process process;
static int frames;
static const char *go_program;
static struct table_runtime runtime;

static void work_rows(void)
{
	frameless_deep(frames - CALLERS);
}

static void work_fp(void)
{
	busy_deep(frames - CALLERS + 3); /* the C library's are not walked */
}

static void work_go(void)
{
	char depth[16];

	snprintf(depth, sizeof(depth), "%d", frames - GO_CALLERS - 1);
	execl(go_program, go_program, "--depth", depth, "--seconds", FOREVER_SECONDS, (char *)NULL);
}

static void make_scripts(void)
{
	static int functions[SCRIPTS_MAX];
	int n = 0;

	while (n < frames - SCRIPT_CALLERS && n < SCRIPTS_MAX - 1) {
		functions[n] = n + 1;
		n++;
	}
	functions[n] = -1;
	scripts_make(functions);
	/* What our child will have mapped we have, too. */
	rig_read_process(&process, getpid());
	scripts_runtime(&runtime, &process.ranges[0]);
}

static uint32_t frames_of(const struct record_sample *sample)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < sample->user_slots; i++)
		n += sample->frames[sample->kernel_frames + i].kind != FRAME_COOKIE;
	return n;
}

static struct cost cost_now(void)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	struct cost cost = {0};

	if (bpf_obj_get_info_by_fd(rig.bpf.program, &info, &size))
		exit(2);
	cost.ns = info.run_time_ns;
	cost.runs = info.run_cnt;
	for (uint32_t cpu = 0; cpu < rig.config.runtime.cpus; cpu++) {
		cost.taken += rig.cpus[cpu].taken;
		cost.filtered += rig.cpus[cpu].filtered;
	}
	return cost;
}

static struct cost cost_of(int ms)
{
	struct cost before = cost_now(), cost;

	rig_forget(&rig);
	rig_sample(&rig, ms, true);
	cost = cost_now();
	cost.ns -= before.ns;
	cost.runs -= before.runs;
	cost.taken -= before.taken;
	cost.filtered -= before.filtered;
	cost.samples = rig.samples_n;
	for (size_t i = 0; i < rig.samples_n; i++) {
		cost.user += frames_of(rig.samples[i]);
		cost.bytes += rig.samples[i]->header.len_bytes;
	}
	return cost;
}

static void prepare(pid_t pid, bool tables, bool tells)
{
	rig_open(&rig, pid, RING_BYTES);
	if (store_open(&store, rig.bpf.map[BPF_FILES], rig.bpf.map[BPF_CHUNK], TABLES_CHUNK_BYTES))
		exit(2);
	nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
	rig_read_process(&process, pid);
	/* Where others work too it may not run for a while. */
	for (int i = 0; i < PREPARE_TURNS && !rig.samples_n; i++)
		rig_sample(&rig, 100, true);
	if (!rig.samples_n)
		exit(2);
	rig_install(&rig, pid, &process, rig.samples[0]->exec_id, 0, BPF_PROCESS_EXEC_KNOWN);
	if (tables)
		free(tables_install(&store, &process, pid, tells ? &runtime : NULL));
	for (uint32_t i = 0; !tables && i < process.ranges_n; i++)
		if (process.ranges[i].file_id)
			store_install_none(&store, process.ranges[i].file_id, 0, false, 0);
}

static void print(const struct cost *cost, const struct cost *idle)
{
	double filtered_ns = idle->runs ? (double)idle->ns / (double)idle->runs : 0;

	if (!cost->taken || !cost->samples)
		exit(2);
	printf("%llu %llu %.0f %llu\n", (unsigned long long)cost->taken,
	       (unsigned long long)((cost->user + cost->samples / 2) / cost->samples),
	       ((double)cost->ns - filtered_ns * (double)cost->filtered) / (double)cost->taken,
	       (unsigned long long)(cost->bytes / cost->samples));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*work)(void);
		bool tells;
	} kinds[] = {{"rows", work_rows, false},
		     {"file", work_rows, true},
		     {"fp", work_fp, false},
		     {"script", scripts_work, true},
		     {"go", work_go, false}};
	struct cost cost, idle;
	void (*work)(void) = NULL;
	bool tells = false;
	int stats;
	pid_t pid;

	for (size_t i = 0; argc > 4 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(argv[1], kinds[i].name) == 0) {
			work = kinds[i].work;
			tells = kinds[i].tells;
		}
	if (!work || (work == work_go && argc < 6))
		return 2;
	frames = atoi(argv[2]);
	rig_rate_hz = (uint32_t)atoi(argv[3]);
	go_program = argc > 5 ? argv[5] : NULL;
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (stats < 0)
		return 2;
	make_scripts();
	pid = busy_start(work);
	prepare(pid, work != work_fp, tells);
	cost = cost_of((int)(1000 * atof(argv[4])));
	kill(pid, SIGSTOP);
	idle = cost_of(FILTERED_MS);
	print(&cost, &idle);
	busy_end(pid);
	rig_close(&rig);
	close(stats);
	return 0;
}
