/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads with a known chain of script frames, and whether samples of them have it.
 *
 * A workload writes to stdout, one line each, fields divided by tabs: what it is going to do, as it
 * knows of itself, root first, and then "ready":
 *
 *   frame	NAME	FILE	LINE	FIRST	LAST
 *   ready
 *
 * LINE is where it calls the next one, FIRST and LAST are the lines of the function, FILE ends the
 * path. Then it stays in the last of them until it is killed. A chain may as well be written down
 * in the test.
 */
#ifndef SCONCE_TESTS_LANG_CHECK_H
#define SCONCE_TESTS_LANG_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/lang/live.h"

#define CHECK_FRAMES_MAX 256u

struct check_frame {
	char name[256];
	char file[256];	      /* how the path ends; "" = functions without a file */
	uint32_t line;	      /* of the call; 0: any in the function */
	uint32_t first, last; /* of the function; 0, 0: any */
};

struct check_chain {
	struct check_frame frames[CHECK_FRAMES_MAX]; /* root first */
	uint32_t n;
};

enum check_verdict {
	CHECK_FULL,   /* the whole chain, each line of a call, the leaf's within its function */
	CHECK_PREFIX, /* a shorter one, right as far as it goes: caught between calls */
	CHECK_WRONG,
	CHECK_VERDICTS,
};

struct check_result {
	uint32_t count[CHECK_VERDICTS], samples;
	uint64_t walk_reads, name_reads;
};

struct check_workload {
	pid_t pid;
	int output;
	struct check_chain chain; /* that it wrote */
};

struct check_options {
	uint32_t samples;  /* 60 */
	uint32_t wait_us;  /* at most so long between two; 4000 */
	pid_t tid;	   /* 0: its first thread */
	bool late;	   /* see live.h */
	const char *label; /* of the line that is printed; NULL: none is */
};

/* False: it did not say "ready" within 20 s (reason on stderr). argv[0] is looked for in PATH. */
bool check_start(struct check_workload *workload, char *const argv[]);
void check_stop(struct check_workload *workload);
/* Is there such a program? */
bool check_program(const char *name);

enum check_verdict check_stack(const struct check_chain *chain, const struct live_stack *stack);
/* Take samples, compare each with the chain; shows the first few that are wrong. */
struct check_result check_run(pid_t pid, const struct check_chain *chain,
			      struct check_options options);
/* What the tests require: nothing wrong, and of a hundred 99 full or all but one. */
bool check_passes(const struct check_result *result);

#endif
