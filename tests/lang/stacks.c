/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of a process, folded, by its script frames' walkers as an ordinary program.
 *
 *   live-stacks PID [-n SAMPLES] [-t all|TID] [-s] [-q] [-l] [-v] [-w MICROSECONDS] [-o FILE]
 *     -t  another thread than the first; all: by turns
 *     -s  frames of scripts only        -q  names without files and lines
 *     -l  names are read when the process goes on already, as a worker does
 *     -v  which runtimes there are, and what was read
 *     -w  at most so long between samples (5000)
 *     -o  write the last sample to a file, for tests/lang/replay
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lang/live.h"
#include "tests/lang/livefile.h"
#include "tests/lang/fold.h"

#define THREADS_MAX 256u

static struct {
	struct fold_options fold;
	uint32_t samples, wait_us;
	bool late, verbose;
	const char *thread, *output;
} options = {.samples = 100, .wait_us = 5000};

static void usage(void)
{
	fprintf(stderr, "usage: live-stacks PID [-n SAMPLES] [-t all|TID] [-s] [-q] [-l] [-v] "
			"[-w MICROSECONDS] [-o FILE]\n");
	exit(2);
}

static pid_t parse(int argc, char **argv)
{
	for (int c; (c = getopt(argc, argv, "n:t:sqlvw:o:")) != -1;)
		switch (c) {
		case 'n':
			options.samples = (uint32_t)atoi(optarg);
			break;
		case 't':
			options.thread = optarg;
			break;
		case 's':
			options.fold.scripts_only = true;
			break;
		case 'q':
			options.fold.names_only = true;
			break;
		case 'l':
			options.late = true;
			break;
		case 'v':
			options.verbose = true;
			break;
		case 'w':
			options.wait_us = (uint32_t)atoi(optarg) + 1;
			break;
		case 'o':
			options.output = optarg;
			break;
		default:
			usage();
		}
	if (optind + 1 != argc || atoi(argv[optind]) <= 0)
		usage();
	return atoi(argv[optind]);
}

static void show_files(const struct snapshot *snapshot)
{
	for (uint32_t id = 1; id <= snapshot->head.files_n; id++) {
		const struct livefile *file = livefile_get(id);
		const struct table_runtime *r = &file->runtime.walk;

		if (file->recognized && !file->runtime.version[0])
			continue;
		fprintf(stderr, "%s: %s %s%s\n", file->path, langs[r->language]->name,
			file->runtime.version, file->recognized ? ": not known" : "");
		for (int i = 0; i < TABLE_LOOPS && r->loops[i].end; i++)
			fprintf(stderr, "  loop %#x to %#x\n", r->loops[i].start, r->loops[i].end);
		fprintf(stderr, "  thread %u at %#lx, bias %#lx\n", r->thread,
			(unsigned long)r->thread_at, (unsigned long)r->bias);
	}
}

static void take(struct live *live, pid_t pid, struct folds *folds)
{
	uint64_t seed = (uint64_t)time(NULL) | 1, walk_reads = 0, name_reads = 0;
	pid_t tids[THREADS_MAX] = {pid};
	uint32_t threads = 1, taken = 0;

	for (uint32_t i = 0; i < options.samples; i++) {
		const struct live_stack *stack;

		if (options.thread && strcmp(options.thread, "all") != 0)
			tids[0] = atoi(options.thread);
		else if (options.thread)
			threads = live_threads(pid, tids, THREADS_MAX);
		live_pause(&seed, options.wait_us);
		stack = live_sample(live, tids[i % (threads ? threads : 1)]);
		if (!stack)
			continue;
		taken++;
		walk_reads += stack->walk_reads;
		name_reads += stack->name_reads;
		fold_add(folds, stack, &options.fold);
	}
	if (options.verbose && taken)
		fprintf(stderr, "%u samples, %.1f reads each to walk, %.1f for names\n", taken,
			(double)walk_reads / taken, (double)name_reads / taken);
}

int main(int argc, char **argv)
{
	pid_t pid = parse(argc, argv);
	struct live *live = live_open(pid);
	struct folds folds = {0};

	if (!live) {
		perror("live-stacks");
		return 1;
	}
	live->late = options.late;
	take(live, pid, &folds);
	if (options.verbose)
		show_files(&live->snapshot);
	fold_print(&folds);
	if (options.output && !snapshot_save(&live->snapshot, options.output))
		perror(options.output);
	fold_free(&folds);
	live_close(live);
	livefile_forget();
	return 0;
}
