/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/lang/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lang/fold.h"

#define CHECK_READY_MS	   20000
#define CHECK_SHOWN	   3
#define CHECK_FRAME_FIELDS 6

/* --- Workloads. --- */

static uint64_t check_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A line of the workload. True: it is ready. */
static bool check_line(struct check_chain *chain, char *line)
{
	char *fields[CHECK_FRAME_FIELDS] = {0}, *rest = line;
	struct check_frame *frame = &chain->frames[chain->n];
	int n = 0;

	while (n < CHECK_FRAME_FIELDS && rest)
		fields[n++] = strsep(&rest, "\t");
	if (strcmp(fields[0], "frame") != 0 || n < CHECK_FRAME_FIELDS)
		return strcmp(fields[0], "ready") == 0;
	if (chain->n == CHECK_FRAMES_MAX)
		abort();
	snprintf(frame->name, sizeof(frame->name), "%s", fields[1]);
	snprintf(frame->file, sizeof(frame->file), "%s", fields[2]);
	frame->line = (uint32_t)atoi(fields[3]);
	frame->first = (uint32_t)atoi(fields[4]);
	frame->last = (uint32_t)atoi(fields[5]);
	chain->n++;
	return false;
}

/* What it writes until it is ready. */
static bool check_wait(struct check_workload *workload)
{
	uint64_t end = check_now_ms() + CHECK_READY_MS, now;
	char line[1024];
	size_t n = 0;

	while ((now = check_now_ms()) < end) {
		struct pollfd fd = {workload->output, POLLIN, 0};

		if (poll(&fd, 1, (int)(end - now)) <= 0)
			continue;
		if (read(workload->output, line + n, 1) != 1)
			return false;
		if (line[n] != '\n') {
			n += n < sizeof(line) - 1;
			continue;
		}
		line[n] = 0;
		n = 0;
		if (check_line(&workload->chain, line))
			return true;
	}
	return false;
}

bool check_start(struct check_workload *workload, char *const argv[])
{
	int fds[2];

	memset(workload, 0, sizeof(*workload));
	if (pipe2(fds, O_CLOEXEC))
		return false;
	workload->pid = fork();
	if (workload->pid == 0) {
		dup2(fds[1], 1);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever becomes of the test */
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	workload->output = fds[0];
	if (workload->pid > 0 && check_wait(workload))
		return true;
	fprintf(stderr, "%s %s: does not get ready\n", argv[0], argv[1] ? argv[1] : "");
	check_stop(workload);
	return false;
}

void check_stop(struct check_workload *workload)
{
	if (workload->pid > 0) {
		kill(workload->pid, SIGKILL);
		waitpid(workload->pid, NULL, __WALL);
	}
	if (workload->output >= 0)
		close(workload->output);
	workload->pid = 0;
	workload->output = -1;
}

bool check_program(const char *name)
{
	const char *path = getenv("PATH");
	char *copy = strdup(path ? path : "/usr/bin:/bin"), *rest = copy, *folder, file[4096];
	bool found = strchr(name, '/') && access(name, X_OK) == 0;

	while (!found && (folder = strsep(&rest, ":"))) {
		snprintf(file, sizeof(file), "%s/%s", folder, name);
		found = access(file, X_OK) == 0;
	}
	free(copy);
	return found;
}

/* --- Stacks. --- */

static bool check_ends(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	if (!m || !n)
		return m == n;
	return n >= m && !strcmp(text + n - m, end) &&
	       (n == m || end[0] == '/' || text[n - m - 1] == '/');
}

static bool check_same(const struct check_frame *want, const struct live_frame *have, bool leaf)
{
	if (have->kind != LIVE_SCRIPT || strcmp(want->name, have->name) != 0 ||
	    !check_ends(have->file, want->file))
		return false;
	if (!leaf && want->line)
		return have->line == want->line;
	return !want->last || (have->line >= want->first && have->line <= want->last);
}

enum check_verdict check_stack(const struct check_chain *chain, const struct live_stack *stack)
{
	uint32_t left = 0, i = 0;

	for (uint32_t k = 0; k < stack->frames_n; k++)
		left += stack->frames[k].kind != LIVE_NATIVE;
	if (left > chain->n)
		return CHECK_WRONG;
	for (uint32_t k = stack->frames_n; k-- > 0;) {
		if (stack->frames[k].kind == LIVE_NATIVE)
			continue;
		if (!check_same(&chain->frames[i++], &stack->frames[k], --left == 0))
			return CHECK_WRONG;
	}
	return i == chain->n ? CHECK_FULL : CHECK_PREFIX;
}

static void check_show(const struct check_chain *chain, const struct live_stack *stack)
{
	const struct fold_options options = {0};
	char *text = fold_text(stack, &options);

	fprintf(stderr, "    wrong: %s\n    right: ", text);
	for (uint32_t i = 0; i < chain->n; i++)
		fprintf(stderr, "%s%s (%s:%u)", i ? ";" : "", chain->frames[i].name,
			chain->frames[i].file, chain->frames[i].line);
	fprintf(stderr, "\n");
	free(text);
}

static void check_print(const char *label, const struct check_result *r)
{
	double n = r->samples ? r->samples : 1;

	fprintf(stderr,
		"%-28s %5u samples, full %5.1f %%, prefix %4.1f %%, wrong %u, reads %.1f to walk, "
		"%.1f for names\n",
		label, r->samples, 100 * r->count[CHECK_FULL] / n, 100 * r->count[CHECK_PREFIX] / n,
		r->count[CHECK_WRONG], (double)r->walk_reads / n, (double)r->name_reads / n);
}

struct check_result check_run(pid_t pid, const struct check_chain *chain,
			      struct check_options options)
{
	uint32_t samples = options.samples ? options.samples : 60, shown = 0;
	struct check_result result = {0};
	struct live *live = live_open(pid);
	uint64_t seed = 0x2545f4914f6cdd1dull;

	if (live)
		live->late = options.late;
	for (uint32_t i = 0; live && i < samples; i++) {
		const struct live_stack *stack;
		enum check_verdict verdict;

		live_pause(&seed, options.wait_us ? options.wait_us : 4000);
		stack = live_sample(live, options.tid ? options.tid : pid);
		if (!stack)
			break;
		verdict = check_stack(chain, stack);
		result.count[verdict]++;
		result.samples++;
		result.walk_reads += stack->walk_reads;
		result.name_reads += stack->name_reads;
		if (verdict == CHECK_WRONG && shown++ < CHECK_SHOWN)
			check_show(chain, stack);
	}
	if (live)
		live_close(live);
	if (options.label)
		check_print(options.label, &result);
	return result;
}

bool check_passes(const struct check_result *r)
{
	uint32_t n = r->samples;

	return n && !r->count[CHECK_WRONG] && r->count[CHECK_PREFIX] <= 1 + n / 100;
}
