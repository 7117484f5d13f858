/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/ceilings.h"
#include "proto/fds.h"
#include "shm/segment.h"
#include "supervisor/log.h"

#define START_MS 60000 /* a slow machine verifies BPF slowly */
#define OTHERS_MAX 80
#define FD_BASE 32 /* above everything in enum fd_supervisor */
#define SESSION_FDS (FD_SUPERVISOR_BINARIES - FD_SUPERVISOR + 1)
#define SESSION_ENVIRONMENT 10

static const int session_signal_list[] = {SIGINT, SIGTERM, SIGHUP};

int session_signals(struct session *session)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < 3; i++)
		sigaddset(&set, session_signal_list[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	session->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return session->signals < 0 ? -errno : 0;
}

void session_unblock(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int session_binaries(void)
{
	static const char *const places[] = {".", "../libexec/sconce"};
	char path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
	char *name;

	if (n < 0)
		return -1;
	path[n] = 0;
	name = strrchr(path, '/') + 1;
	for (int i = 0; i < 2; i++) {
		int fd;

		strcpy(name, places[i]);
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && faccessat(fd, "sconce-supervisor", X_OK, 0) == 0)
			return fd;
		if (fd >= 0)
			close(fd);
	}
	errno = ENOENT;
	return -1;
}

static int session_config(const struct config *config)
{
	struct segment segment;
	struct config *mapped;

	if (segment_create(&segment, "config", sizeof(*config)))
		return -1;
	mapped = segment_map(segment.rw, sizeof(*config), 1);
	if (!mapped)
		return -1;
	*mapped = *config;
	munmap(mapped, sizeof(*config));
	close(segment.rw);
	return segment.ro;
}

/* All that the supervisor, and through it the exporter, gets to know of our environment. */
static void session_environment(char **out)
{
	static const char *const kept[SESSION_ENVIRONMENT] = {
		"TZ",	       "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "HTTPS_PROXY",
		"https_proxy", "NO_PROXY",	"no_proxy",	"ALL_PROXY",  "all_proxy"};
	size_t n = 0;

	out[n++] = (char *)"LANG=C.UTF-8";
	for (size_t i = 0; i < SESSION_ENVIRONMENT; i++) {
		char *value = getenv(kept[i]);

		/* getenv() points into "NAME=value" */
		if (value)
			out[n++] = value - strlen(kept[i]) - 1;
	}
	out[n] = NULL;
}

/*
 * Two descriptors per cpu are the supervisor's, and shared memory is files, whose size somebody may
 * have limited for another purpose. Hard limits stay: its children may have more.
 */
static void session_limits(const struct config *config)
{
	struct rlimit files, size, data;

	getrlimit(RLIMIT_FSIZE, &size);
	size.rlim_cur = size.rlim_max;
	setrlimit(RLIMIT_FSIZE, &size);
	getrlimit(RLIMIT_DATA, &data);
	data.rlim_cur = config->runtime.limits[ROLE_SUPERVISOR][CEILINGS_DATA].most;
	if (data.rlim_cur < data.rlim_max)
		setrlimit(RLIMIT_DATA, &data);

	getrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_max < SESSION_FILES_WANTED) {
		struct rlimit more = {SESSION_FILES_WANTED, SESSION_FILES_WANTED};

		if (setrlimit(RLIMIT_NOFILE, &more) == 0)
			return;
	}
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

/* A terminal is open for reading as well: no process of ours shall see what is typed there. */
static void session_stderr(void)
{
	int fd = isatty(STDERR_FILENO) ? open("/proc/self/fd/2", O_WRONLY | O_NOCTTY | O_CLOEXEC) : -1;

	if (fd >= 0)
		dup2(fd, STDERR_FILENO);
}

/* fds[i] becomes number FD_SUPERVISOR + i; whatever else is open goes. */
static void session_exec(const struct config *config, const int *fds)
{
	char *argv[] = {(char *)"sconce-supervisor", NULL};
	char *env[SESSION_ENVIRONMENT + 2];
	int moved[SESSION_FDS], binary;

	session_unblock();
	session_stderr();
	session_limits(config);
	session_environment(env);
	for (int i = 0; i < SESSION_FDS; i++)
		moved[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, FD_BASE);
	close_range(FD_SUPERVISOR, FD_BASE - 1, 0);
	for (int i = 0; i < SESSION_FDS; i++)
		if (moved[i] >= 0)
			dup2(moved[i], FD_SUPERVISOR + i);
	close_range(FD_BASE, ~0u, CLOSE_RANGE_CLOEXEC);
	binary = openat(FD_SUPERVISOR_BINARIES, "sconce-supervisor", O_PATH | O_CLOEXEC);
	execveat(binary, "", argv, env, AT_EMPTY_PATH);
	fprintf(stderr, "sconce: cannot execute sconce-supervisor: %s\n", strerror(errno));
	_exit(127);
}

static int session_fork(struct session *session, const struct config *config,
			const struct session_fds *given)
{
	int pair[2], binaries = session_binaries(), config_fd;

	if (binaries < 0)
		return -1;
	config_fd = session_config(config);
	if (config_fd < 0 || channel_pair(pair))
		return -1;
	cgroup_make(&session->cgroup, config->runtime.memory.all_bytes);
	session->pid = fork();
	if (session->pid == 0) {
		const int fds[SESSION_FDS] = {
			[FD_SUPERVISOR - FD_SUPERVISOR] = pair[1],
			[FD_CONFIG - FD_SUPERVISOR] = config_fd,
			[FD_SUPERVISOR_OUTPUT - FD_SUPERVISOR] = given->output,
			[FD_SUPERVISOR_CONTROL - FD_SUPERVISOR] = given->control,
			[FD_SUPERVISOR_HTTP - FD_SUPERVISOR] = given->http,
			[FD_SUPERVISOR_INTAKE - FD_SUPERVISOR] = given->intake,
			[FD_SUPERVISOR_BINARIES - FD_SUPERVISOR] = binaries};

		cgroup_enter(&session->cgroup);
		session_exec(config, fds);
	}
	close(pair[1]);
	close(config_fd);
	close(binaries);
	channel_init(&session->channel, pair[0], ROLE_CLI, ROLE_SUPERVISOR, true);
	session->pidfd = (int)syscall(SYS_pidfd_open, session->pid, 0);
	return session->pid < 0 || session->pidfd < 0 ? -1 : 0;
}

int session_start(struct session *session, const struct config *config,
		  const struct session_fds *fds)
{
	struct message_started *started = &session->started;

	started->error = -1;
	if (session_fork(session, config, fds)) {
		snprintf(started->text, sizeof(started->text), "cannot start sconce-supervisor: %s",
			 strerror(errno));
		return -1;
	}
	for (int ms = 0; ms < START_MS && started->error < 0 && !session->ended; ms += 100)
		session_wait(session, NULL, 0, 100);
	if (started->error < 0 && !started->text[0])
		snprintf(started->text, sizeof(started->text), "%s",
			 session->signal  ? "interrupted before sampling began"
			 : session->ended ? "the supervisor ended before sampling began"
					  : "sampling did not begin within a minute");
	if (started->error && !session->ended) {
		kill(session->pid, SIGKILL);
		session_wait(session, NULL, 0, 2000);
	}
	return started->error ? -1 : 0;
}

static void session_receive(struct session *session)
{
	struct message message;
	int fds[MESSAGE_FDS_MAX];
	size_t fds_n;

	while (channel_recv(&session->channel, &message, fds, &fds_n) == 0) {
		if (message.type == MESSAGE_STARTED) {
			session->started = message.started;
			session->started.text[sizeof(message.started.text) - 1] = 0;
		} else if (message.type == MESSAGE_STATUS_REPLY) {
			snapshot_take(&session->snapshot, &message.status, fds, fds_n);
		}
	}
}

static void session_signal(struct session *session)
{
	struct signalfd_siginfo info;

	if (read(session->signals, &info, sizeof(info)) != sizeof(info))
		return;
	/* The second time we are asked, nothing is waited for. */
	if (session->signal && !session->ended)
		kill(session->pid, SIGKILL);
	session->signal = (int)info.ssi_signo;
}

static void session_reap(struct session *session)
{
	siginfo_t info = {0};

	if (waitid(P_PIDFD, (id_t)session->pidfd, &info, WEXITED | WNOHANG) || info.si_pid == 0)
		return;
	session->ended = true;
	session->failed = info.si_code != CLD_EXITED || info.si_status != 0;
	close(session->pidfd);
	session->pidfd = -1;
	cgroup_remove(&session->cgroup);
}

void session_say_ceilings(const struct session *session, const struct config *config)
{
	char text[512];

	ceilings_text(config, text, sizeof(text));
	log_info("memory at most %s; held by the limits of each process and %s%s", text,
		 session->cgroup.path[0] ? "by " : "by no cgroup: ",
		 session->cgroup.path[0] ? session->cgroup.path : session->cgroup.why);
}

void session_wait(struct session *session, struct pollfd *others, size_t others_n, int timeout_ms)
{
	struct pollfd fds[3 + OTHERS_MAX] = {{.fd = session->signals, .events = POLLIN},
					     {.fd = session->pidfd, .events = POLLIN},
					     {.fd = session->channel.fd, .events = POLLIN}};

	if (others_n > OTHERS_MAX)
		others_n = OTHERS_MAX;
	if (others_n)
		memcpy(fds + 3, others, others_n * sizeof(*others));
	if (session->ended)
		fds[1].fd = fds[2].fd = -1;
	if (poll(fds, 3 + others_n, timeout_ms) <= 0)
		return;
	if (others_n)
		memcpy(others, fds + 3, others_n * sizeof(*others));
	if (fds[0].revents)
		session_signal(session);
	/* Before the reaping: its last words. */
	if (fds[2].revents)
		session_receive(session);
	if (fds[1].revents)
		session_reap(session);
}

static void session_send(struct session *session, enum message_type type)
{
	struct message_empty none = {0};

	if (!session->ended)
		channel_send(&session->channel, type, &none, NULL, 0);
}

uint64_t session_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void session_ask(struct session *session, int every_ms)
{
	uint64_t now = session_now_ms();

	if (now - session->asked_ms < (uint64_t)every_ms)
		return;
	session->asked_ms = now;
	session_send(session, MESSAGE_STATUS);
}

void session_finish(struct session *session)
{
	if (!session->finishing)
		session_send(session, MESSAGE_FINISH);
	session->finishing = true;
}
