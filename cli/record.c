/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is opened before anything starts, so that a bad path is known at once, and removed when
 * nothing came to be written. Recording ends with the first of: time, Ctrl-C, the end of the program
 * or of all targets.
 */
#define _GNU_SOURCE
#include "cli/record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/facts.h"
#include "cli/family.h"
#include "cli/lacks.h"
#include "cli/program.h"
#include "cli/session.h"
#include "supervisor/log.h"

#define WAKE_MS 1000

struct record {
	struct options *options;
	struct session session;
	struct program program;
	struct pollfd targets[CONFIG_TARGETS_MAX + 1]; /* pidfds; the program's is the last */
	size_t targets_n;			       /* without the program's */
	int output;
	uint64_t began_ms;
	bool terminal;
};

static int record_fail(const char *what, const char *why)
{
	fprintf(stderr, "sconce: %s: %s\n", what, why);
	return -1;
}

/* Every target has to be there now; its descriptor tells when it ends. */
static int record_targets(struct record *record)
{
	struct config *config = &record->options->config;

	for (uint32_t i = 0; i < config->targets_n; i++) {
		int fd = (int)syscall(SYS_pidfd_open, config->targets[i], 0);
		char what[32];

		snprintf(what, sizeof(what), "process %d", config->targets[i]);
		if (fd < 0)
			return record_fail(what, errno == ESRCH ? "there is no such process"
						 : errno == EINVAL || errno == ENOENT
							 ? "this is a thread; give the id of its process"
							 : strerror(errno));
		record->targets[record->targets_n++] = (struct pollfd){fd, POLLIN, 0};
	}
	/* They need no descriptor: recording ends with those that were named. */
	if (config->follow && config->targets_n)
		config->targets_n =
			family_add(config->targets, config->targets_n, CONFIG_TARGETS_MAX);
	return 0;
}

static int record_output(struct record *record)
{
	const char *path = record->options->output;
	struct stat st;
	uid_t uid;
	gid_t gid;

	umask(022);
	record->output = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (record->output < 0)
		return record_fail(path, strerror(errno));
	if (program_caller(&uid, &gid) && fstat(record->output, &st) == 0 && S_ISREG(st.st_mode) &&
	    fchown(record->output, uid, gid))
		record_fail(path, "it will belong to root, not to the caller of sudo");
	return 0;
}

static void record_remove(const struct record *record)
{
	struct stat st;

	if (record->output >= 0 && fstat(record->output, &st) == 0 && S_ISREG(st.st_mode))
		unlink(record->options->output);
}

static int record_program(struct record *record)
{
	struct config *config = &record->options->config;
	int err;

	if (!record->options->program)
		return 0;
	err = program_fork(&record->program, record->options->program);
	if (err)
		return record_fail("cannot fork", strerror(-err));
	if (config->targets_n == CONFIG_TARGETS_MAX)
		return record_fail("-p", "too many processes");
	config->targets[config->targets_n++] = record->program.pid;
	record->targets[record->targets_n] = (struct pollfd){record->program.pidfd, POLLIN, 0};
	return 0;
}

static void record_progress(const struct record *record)
{
	const struct snapshot *s = &record->session.snapshot;

	if (record->terminal && s->status.processes_n)
		fprintf(stderr, "\r\033[K%llu s  %llu samples",
			(unsigned long long)(session_now_ms() - record->began_ms) / 1000,
			(unsigned long long)s->counter[C_taken]);
}

/* The targets that have ended are not looked at any more. True when none is left. */
static bool record_targets_ended(struct record *record)
{
	size_t left = 0;

	for (size_t i = 0; i < record->targets_n; i++) {
		if (record->targets[i].fd >= 0 && record->targets[i].revents) {
			close(record->targets[i].fd);
			record->targets[i].fd = -1;
		}
		left += record->targets[i].fd >= 0;
	}
	return record->targets_n && !left;
}

static bool record_over(struct record *record)
{
	uint64_t limit = record->options->duration_ms;

	if (record->session.signal || program_ended(&record->program))
		return true;
	if (record_targets_ended(record) && !record->program.pid && !record->options->config.all)
		return true;
	return limit && session_now_ms() - record->began_ms >= limit;
}

static int record_timeout(const struct record *record)
{
	uint64_t limit = record->options->duration_ms;
	uint64_t passed = session_now_ms() - record->began_ms;

	if (limit && limit > passed && limit - passed < WAKE_MS)
		return (int)(limit - passed);
	return WAKE_MS;
}

static void record_wait(struct record *record, int timeout_ms)
{
	size_t n = record->targets_n + (record->program.pid ? 1 : 0);

	if (record->program.ended)
		record->targets[record->targets_n].fd = -1;
	session_wait(&record->session, record->targets, n, timeout_ms);
}

static void record_loop(struct record *record)
{
	struct session *session = &record->session;

	while (!session->ended) {
		/* Always, not only for the eyes: the last ledgers are read after the end. */
		if (!session->finishing)
			session_ask(session, WAKE_MS - 50);
		record_wait(record, session->finishing ? WAKE_MS : record_timeout(record));
		if (!session->finishing) {
			record_progress(record);
			if (record_over(record))
				session_finish(session);
		}
	}
	/* A terminal has told the program itself; nobody else has. */
	if (session->signal && record->program.pid && !program_ended(&record->program))
		kill(record->program.pid, session->signal);
	for (int signals = 0; record->program.pid && !program_ended(&record->program);) {
		session->signal = 0;
		record_wait(record, WAKE_MS);
		if (session->signal)
			kill(record->program.pid, signals++ ? SIGKILL : session->signal);
	}
}

/* Is there a file? If not, it says why. */
static bool record_written(const struct record *record)
{
	const struct snapshot *s = &record->session.snapshot;
	const char *path = record->options->output;
	int error = (int)s->counter[C_file_error];
	struct stat st = {0};

	fstat(record->output, &st);
	if (!error && !record->session.failed && !(S_ISREG(st.st_mode) && st.st_size == 0))
		return true;
	if (error)
		fprintf(stderr, "sconce: %s: cannot be written: %s; %llu samples are lost\n", path,
			strerror(error), (unsigned long long)s->counter[C_file_lost_rejected]);
	else
		fprintf(stderr, "sconce: nothing recorded: %s\n",
			record->session.failed	   ? "the supervisor ended early"
			: s->counter[C_taken] == 0 ? "the target used no CPU time"
						   : "no sample came to its end in time");
	return false;
}

static int record_report(struct record *record)
{
	struct snapshot *s = &record->session.snapshot;
	const char *path = record->options->output;
	uint64_t written;

	snapshot_read(s);
	written = s->counter[C_file_acked];
	if (record->terminal)
		fputs("\r\033[K", stderr);
	if (!record_written(record)) {
		record_remove(record);
		return -1;
	}
	if (record->terminal || record->options->verbose)
		fprintf(stderr, "sconce: %llu samples in %s\n", (unsigned long long)written, path);
	if (snapshot_lost(s) || s->counter[C_taken] > written)
		fprintf(stderr, "sconce: warning: %llu of %llu samples are missing in %s\n",
			(unsigned long long)(s->counter[C_taken] - written),
			(unsigned long long)s->counter[C_taken], path);
	return 0;
}

static int record_start(struct record *record)
{
	struct session_fds fds = {-1, -1, -1, -1};

	if (session_signals(&record->session) || record_targets(record) || record_output(record))
		return -1;
	fds.output = record->output;
	if (record_program(record))
		return -1;
	if (session_start(&record->session, &record->options->config, &fds))
		return record_fail("cannot record", record->session.started.text);
	session_say_ceilings(&record->session, &record->options->config);
	return 0;
}

int record_main(struct options *options)
{
	static struct record record;
	bool idle;
	int err;

	record.options = options;
	record.output = -1;
	record.terminal = isatty(STDERR_FILENO);
	log_init(ROLE_CLI, options->verbose ? LOG_INFO : LOG_WARN);
	if (!lacks_check(options))
		return 1;
	facts_find(&options->config);
	if (record_start(&record)) {
		record_remove(&record);
		return 1;
	}
	record.began_ms = session_now_ms();
	program_go(&record.program);
	record_loop(&record);
	err = record_report(&record);
	idle = !record.session.failed && record.session.snapshot.counter[C_taken] == 0;
	snapshot_free(&record.session.snapshot);
	/* The program's own code goes first; one that used no CPU time has done nothing wrong. */
	if (record.program.pid && (record.program.exit_code || idle))
		return record.program.exit_code;
	return err ? 1 : 0;
}
