/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/doctor.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/checks.h"

#define TEXT_COLUMN 31
#define WIDTH	    100

static const char *const states[] = {
    [CHECK_OK] = "ok", [CHECK_LACKS] = "less", [CHECK_FATAL] = "FATAL"};

/* Words, within the width of the table; what does not fit stands below the column. */
static void doctor_text(const char *text)
{
	size_t column = TEXT_COLUMN;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column + 1 + n > WIDTH) {
			printf("\n%*s", TEXT_COLUMN, "");
			column = TEXT_COLUMN;
		}
		printf("%s%.*s", column == TEXT_COLUMN ? "" : " ", (int)n, text);
		column += n + (column == TEXT_COLUMN ? 0 : 1);
		text += n + strspn(text + n, " ");
	}
	putchar('\n');
}

static void doctor_print(const char *name, const struct check_result *result)
{
	char text[2 * CHECK_TEXT_BYTES + 2];

	snprintf(text, sizeof(text), "%s%s%s", result->found, result->lost[0] ? ": " : "",
		 result->lost);
	printf("%-5s  %-22s  ", states[result->state], name);
	doctor_text(text);
}

/* It has been read: a wrong one has ended us before. */
static void doctor_configuration(const struct options *options, struct check_result *result)
{
	const char *file = options->config_file[0] ? options->config_file : getenv("SCONCE_CONFIG");

	memset(result, 0, sizeof(*result));
	snprintf(result->found, sizeof(result->found), "%.190s",
		 file && file[0] ? file : "no file");
}

/* Only trying it tells of everything: of helpers of the kernel, of seccomp profiles around us. */
static void doctor_record(const char *output, const char *time, int errors)
{
	char *argv[] = {"sconce", "record", "-a", "-d", strdup(time), "-o", strdup(output), NULL};

	dup2(errors, STDOUT_FILENO);
	dup2(errors, STDERR_FILENO);
	execv("/proc/self/exe", argv);
	_exit(127);
}

/* What a failed trial died of: the line of the cli that is no warning, or else the first one. */
static void doctor_reason(int fd, char *line, size_t size)
{
	static char text[8192];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	const char *start = text, *at = text;

	text[n > 0 ? n : 0] = 0;
	for (; at && *at; at = strchr(at, '\n'), at += at != NULL)
		if (strncmp(at, "sconce: ", 8) == 0 && strncmp(at, "sconce: warning", 15) != 0)
			start = at;
	snprintf(line, size, "%.*s", (int)strcspn(start, "\n"), start);
}

/* A new directory for the trial, where there is a place to write. */
static bool doctor_directory(char *path, size_t size)
{
	static const char *const places[] = {"/tmp", "/run", "/dev/shm"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, size, "%s/sconce-XXXXXX", places[i]);
		if (mkdtemp(path))
			return true;
	}
	return false;
}

/* 0 when it worked; what it said is in `errors`. */
static int doctor_try(const char *directory, const char *time, int errors)
{
	char output[64];
	int status = -1;
	pid_t pid, ended = 0;

	snprintf(output, sizeof(output), "%s/trial.folded", directory);
	pid = fork();
	if (pid == 0)
		doctor_record(output, time, errors);
	/* Without a pause: on an idle machine there would be nothing to record. But behind all
	 * others. */
	setpriority(PRIO_PROCESS, 0, PRIO_MAX - 1);
	while (pid > 0 && ended == 0)
		ended = waitpid(pid, &status, WNOHANG);
	unlink(output);
	return ended == pid ? status : -1;
}

/* A slow machine has just started everything when the shorter one is over. */
static void doctor_trial(struct check_result *result)
{
	static const char *const times[] = {"300ms", "5s"};
	char directory[32];
	bool works = false;

	memset(result, 0, sizeof(*result));
	if (!doctor_directory(directory, sizeof(directory))) {
		snprintf(result->found, sizeof(result->found), "not tried");
		snprintf(result->lost, sizeof(result->lost), "no place to write to in /tmp, /run");
		result->state = CHECK_LACKS;
		return;
	}
	for (int i = 0; i < 2 && !works; i++) {
		int errors = memfd_create("errors", MFD_CLOEXEC);

		works = doctor_try(directory, times[i], errors) == 0;
		snprintf(result->found, sizeof(result->found), "%s of the whole machine", times[i]);
		doctor_reason(errors, result->lost, sizeof(result->lost));
		close(errors);
	}
	rmdir(directory);
	if (works) {
		result->lost[0] = 0;
		return;
	}
	snprintf(result->found, sizeof(result->found), "does not work");
	result->state = CHECK_FATAL;
}

static void doctor_row(const char *name, const struct check_result *result,
		       unsigned count[CHECK_FATAL + 1])
{
	doctor_print(name, result);
	count[result->state]++;
}

int doctor_main(struct options *options)
{
	struct check_result result;
	struct checks_world world;
	unsigned count[CHECK_FATAL + 1] = {0};

	checks_here(&world, &options->config);
	for (size_t i = 0; i < checks_count(); i++) {
		checks_run(i, &world, &result);
		doctor_row(checks_name(i), &result, count);
	}
	doctor_configuration(options, &result);
	doctor_row("configuration", &result, count);
	if (count[CHECK_FATAL] == 0) {
		fflush(stdout);
		doctor_trial(&result);
		doctor_row("trial", &result, count);
	}
	if (count[CHECK_FATAL])
		printf("Profiling is not possible here.\n");
	else if (count[CHECK_LACKS])
		printf("Profiling is possible, with less than there could be.\n");
	else
		printf("Everything is there.\n");
	return count[CHECK_FATAL] ? 1 : 0;
}
