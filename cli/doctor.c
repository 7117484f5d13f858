/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/doctor.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/checks.h"

#define TRIAL_TIME "300ms"

static const char *const states[] = {
    [CHECK_OK] = "ok", [CHECK_LACKS] = "less", [CHECK_FATAL] = "FATAL"};

static void doctor_print(const char *name, const struct check_result *result)
{
	printf("%-5s  %-22s  %s", states[result->state], name, result->found);
	printf(result->lost[0] ? ": %s\n" : "\n", result->lost);
}

/* Only trying it tells of everything: of helpers of the kernel, of seccomp profiles around us. */
static void doctor_record(const char *output, int errors)
{
	char *argv[] = {"sconce", "record", "-a", "-d", TRIAL_TIME, "-o", strdup(output), NULL};

	dup2(errors, STDOUT_FILENO);
	dup2(errors, STDERR_FILENO);
	execv("/proc/self/exe", argv);
	_exit(127);
}

/* The first line that a failed trial said. */
static void doctor_first_line(int fd, char *line, size_t size)
{
	ssize_t n = pread(fd, line, size - 1, 0);

	line[n > 0 ? n : 0] = 0;
	line[strcspn(line, "\n")] = 0;
}

/* 0 when it worked; what it said is in `errors`. */
static int doctor_try(int errors)
{
	char directory[] = "/tmp/sconce-XXXXXX", output[64];
	int status = -1;
	pid_t pid, ended = 0;

	if (!mkdtemp(directory))
		return -1;
	snprintf(output, sizeof(output), "%s/trial.folded", directory);
	pid = fork();
	if (pid == 0)
		doctor_record(output, errors);
	/* Without a pause: on an idle machine there would be nothing to record. */
	while (pid > 0 && ended == 0)
		ended = waitpid(pid, &status, WNOHANG);
	if (ended != pid)
		status = -1;
	unlink(output);
	rmdir(directory);
	return status;
}

static void doctor_trial(struct check_result *result)
{
	int errors = memfd_create("errors", MFD_CLOEXEC);

	memset(result, 0, sizeof(*result));
	if (errors >= 0 && doctor_try(errors) == 0) {
		snprintf(result->found, sizeof(result->found), "%s of the whole machine",
			 TRIAL_TIME);
	} else {
		snprintf(result->found, sizeof(result->found), "does not work");
		result->state = CHECK_FATAL;
		doctor_first_line(errors, result->lost, sizeof(result->lost));
	}
	if (errors >= 0)
		close(errors);
}

int doctor_main(struct options *options)
{
	struct check_result result;
	struct checks_world world;
	unsigned count[CHECK_FATAL + 1] = {0};

	(void)options;
	checks_here(&world);
	for (size_t i = 0; i < checks_count(); i++) {
		checks_run(i, &world, &result);
		doctor_print(checks_name(i), &result);
		count[result.state]++;
	}
	if (count[CHECK_FATAL] == 0) {
		fflush(stdout);
		doctor_trial(&result);
		doctor_print("trial", &result);
		count[result.state]++;
	}
	if (count[CHECK_FATAL])
		printf("Profiling is not possible here.\n");
	else if (count[CHECK_LACKS])
		printf("Profiling is possible, with less than there could be.\n");
	else
		printf("Everything is there.\n");
	return count[CHECK_FATAL] ? 1 : 0;
}
