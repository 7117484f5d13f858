/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/facts.h"
#include "cli/lacks.h"
#include "cli/listen.h"
#include "cli/session.h"
#include "supervisor/log.h"

#define REFRESH_MS 1000

static int run_fail_unix(const char *dir, const char *name, int fd)
{
	fprintf(stderr,
		"sconce: cannot make %s/%s: %s (choose another directory with --run-dir or "
		"SCONCE_RUN_DIR)\n",
		dir, name, strerror(-fd));
	return -1;
}

/* 0, or -1 when it has said what is wrong. The control socket first: it tells who runs already. */
static int run_sockets(struct config *config, struct session_fds *fds)
{
	/* In containers the processes ask for what they run on; who they are the supervisor looks at. */
	const struct listen_owner own = {0, 0, 0600}, roles = {0, config->uid_base, 0660};
	const struct listen_owner viewer = {config->uid_base + ROLE_VIEWER,
					    config->uid_base + ROLE_EXPORTER, 0660};
	pid_t pid = 0;

	umask(077);
	fds->control = listen_unix(config->run_dir, RUN_CONTROL_SOCKET, SOCK_SEQPACKET,
				  config->containers ? &roles : &own, &pid);
	if (fds->control == -EALREADY) {
		fprintf(stderr, "sconce: already running, pid %d (another one needs its own "
				"--run-dir and --listen)\n",
			pid);
		return -1;
	}
	if (fds->control < 0)
		return run_fail_unix(config->run_dir, RUN_CONTROL_SOCKET, fds->control);
	if (!config->viewer.enabled)
		return 0;
	fds->http = listen_tcp(config->viewer.listen, sizeof(config->viewer.listen));
	if (fds->http < 0) {
		fprintf(stderr, "sconce: the viewer cannot listen on %s: %s (choose another address "
				"with --listen or SCONCE_LISTEN, or --no-viewer)\n",
			config->viewer.listen, strerror(-fds->http));
		return -1;
	}
	fds->intake = listen_unix(config->run_dir, RUN_VIEWER_SOCKET, SOCK_STREAM, &viewer, &pid);
	if (fds->intake == -EPERM) {
		log_warn("no viewer: its socket cannot be made its own (CAP_CHOWN)");
		close(fds->http);
		fds->http = fds->intake = -1;
		config->viewer.enabled = false;
	} else if (fds->intake < 0) {
		return run_fail_unix(config->run_dir, RUN_VIEWER_SOCKET, fds->intake);
	}
	return 0;
}

/* What was made for a supervisor that is not there to remove it. */
static void run_undo(const struct config *config, const struct session_fds *fds)
{
	const char *names[] = {RUN_CONTROL_SOCKET, RUN_VIEWER_SOCKET};
	const int made[] = {fds->control, fds->intake};
	char path[CONFIG_PATH_BYTES + 32];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", config->run_dir, names[i]);
		if (made[i] >= 0)
			unlink(path);
	}
}

static void run_close(const struct session_fds *fds)
{
	const int all[] = {fds->control, fds->http, fds->intake};

	for (int i = 0; i < 3; i++)
		if (all[i] >= 0)
			close(all[i]);
}

static void run_show(const struct session *session)
{
	const struct snapshot *s = &session->snapshot;

	fprintf(stderr, "\r\033[K%u Hz  %llu samples  %llu lost  %llu processes  %s%s",
		s->config->rate_hz, (unsigned long long)s->counter[C_taken],
		(unsigned long long)snapshot_lost(s),
		(unsigned long long)s->counter[C_processes],
		s->config->viewer.enabled ? "http://" : "",
		s->config->viewer.enabled ? s->config->viewer.listen : "");
}

static int run_loop(struct session *session, const struct config *config,
		    const struct session_fds *fds)
{
	bool terminal = isatty(STDERR_FILENO);

	if (!terminal)
		log_info("sampling at %u Hz, pid %u%s%s", config->rate_hz, session->started.pid,
			 config->viewer.enabled ? ", viewer at http://" : "",
			 config->viewer.enabled ? config->viewer.listen : "");
	while (!session->ended) {
		if (terminal && !session->finishing)
			session_ask(session, REFRESH_MS - 50);
		session_wait(session, NULL, 0, REFRESH_MS);
		if (terminal && !session->finishing && session->snapshot.status.processes_n)
			run_show(session);
		if (session->signal && !session->finishing) {
			if (terminal)
				fputs("\nstopping: what was sampled is shipped first\n", stderr);
			session_finish(session);
		}
	}
	snapshot_free(&session->snapshot);
	if (session->failed && session->signal == 0)
		fprintf(stderr, "sconce: the supervisor ended unexpectedly\n");
	if (session->failed)
		run_undo(config, fds);
	return session->failed ? 1 : 0;
}

int run_main(struct options *options)
{
	struct config *config = &options->config;
	struct session_fds fds = {-1, -1, -1, -1};
	struct session session = {0};

	log_init(ROLE_CLI, LOG_INFO);
	if (!lacks_check(options))
		return 1;
	facts_find(config);
	if (session_signals(&session) || run_sockets(config, &fds)) {
		run_undo(config, &fds);
		return 1;
	}
	if (session_start(&session, config, &fds)) {
		fprintf(stderr, "sconce: %s\n", session.started.text);
		run_undo(config, &fds);
		return 1;
	}
	run_close(&fds);
	session_say_ceilings(&session, config);
	return run_loop(&session, config, &fds);
}
