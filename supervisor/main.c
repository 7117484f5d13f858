/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sconce-supervisor: makes what the processes share, starts them, watches them, ends them. It is
 * root, and it parses nothing but fixed structs: the configuration comes checked from the cli, the
 * processes send messages of known length.
 *
 * Sampling does not wait for anyone: the loader and the other processes start side by side, and the
 * sampler follows as soon as there are maps to read.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf/tables.h"
#include "proto/config.h"
#include "proto/fds.h"
#include "shm/segment.h"
#include "supervisor/control.h"
#include "supervisor/drain.h"
#include "supervisor/init.h"
#include "supervisor/kernel.h"
#include "supervisor/log.h"
#include "supervisor/watch.h"
#include "supervisor/wiring.h"

#define EVENTS_MAX 32
#define DRAIN_TICK_MS 10
#define LOADER_TRIES 3

static struct config *config;

static void clean_up(void)
{
	static const char *const sockets[] = {RUN_CONTROL_SOCKET, RUN_VIEWER_SOCKET};
	char path[CONFIG_PATH_BYTES + 32];

	for (int i = 0; i < 2 && config->mode == MODE_RUN; i++) {
		snprintf(path, sizeof(path), "%s/%s", config->run_dir, sockets[i]);
		unlink(path);
	}
}

/* Starting failed: one clear line for the user. What runs already dies with us. */
__attribute__((format(printf, 2, 3))) static noreturn void give_up(int err, const char *format, ...)
{
	struct message_started started = {.error = err < 0 ? -err : EIO};
	va_list args;

	va_start(args, format);
	vsnprintf(started.text, sizeof(started.text), format, args);
	va_end(args);
	control_started(&started);
	clean_up();
	exit(1);
}

static void take_config(void)
{
	const struct config *given = config_map(FD_CONFIG);
	struct segment segment;

	if (!given)
		fatal("no configuration of this version at fd %d: this program is started by "
		      "sconce, and all binaries must be of one build",
		      FD_CONFIG);
	/* A copy of our own: the loader adds to it, and the children read it. */
	if (segment_create(&segment, "config", sizeof(*config)))
		fatal("cannot make the configuration: %m");
	config = segment_map(segment.rw, sizeof(*config), 1);
	if (!config)
		fatal("cannot map the configuration: %m");
	memcpy(config, given, sizeof(*config));
	/* What lets somebody in elsewhere is for those who have to say it. */
	memset(config->remote.headers, 0, sizeof(config->remote.headers));
	memset(config->viewer.token, 0, sizeof(config->viewer.token));
	wiring_give(OBJECT_SECRETS, 0, SIDE_RO, FD_CONFIG);
	wiring_give(OBJECT_CONFIG, 0, SIDE_RO, segment.ro);
	/* Nothing but trouble is said in a recording. */
	log_init(ROLE_SUPERVISOR, config->verbose || config->mode == MODE_RUN ? LOG_INFO : LOG_WARN);
}

static void on_drained(int slot, const struct message *message)
{
	(void)message;
	watch_slot(slot)->drained = true;
}

/*
 * The sampler and the broker parse nothing of strangers and may accuse anyone, the exporter a worker.
 * Whoever accuses beyond that is ended itself.
 */
static void on_violation(int slot, const struct message *message)
{
	uint32_t accused = message->violation.slot;
	bool worker = accused >= ROLE_SYMBOLIZER && accused < SLOT_COUNT;

	if (slot == ROLE_SAMPLER || slot == ROLE_BROKER || (slot == ROLE_EXPORTER && worker))
		worker |= accused >= ROLE_SAMPLER && accused < SLOT_COUNT;
	else
		worker = false;
	log_warn("slot %d says that slot %u broke the protocol: %s", slot, accused,
		 strerror((int)message->violation.error));
	watch_kill(worker ? (int)accused : slot, "reported");
	/* All ends of a socket are held here, so somebody has shut it down, and it stays so. */
	if (worker && slot != ROLE_EXPORTER && message->violation.error == EPIPE)
		watch_replace_all();
}

/* The loader has run once more, for a chunk. Without it, the sampler makes do with what it has. */
static void give_chunk(const struct message_loaded *loaded)
{
	struct message_chunk chunk = {.number = config->runtime.chunks - 1};
	int fd = wiring_fd(OBJECT_CHUNK, chunk.number, SIDE_A);

	if (loaded->error)
		log_warn("%.*s", (int)sizeof(loaded->text) - 1, loaded->text);
	else
		channel_send(&watch_slot(ROLE_SAMPLER)->channel, MESSAGE_CHUNK, &chunk, &fd, 1);
}

static void on_want_chunk(int slot, const struct message *message)
{
	(void)slot, (void)message;
	if (watch_slot(ROLE_LOADER)->state == SLOT_OFF && !drain_begun() &&
	    config->runtime.chunks < config->unwind_bytes / TABLES_CHUNK_BYTES)
		watch_start(ROLE_LOADER);
}

static void on_loaded(int slot, const struct message *message)
{
	struct message_started started = {.pid = (uint32_t)getpid()};
	const struct message_loaded *loaded = &message->loaded;
	int err;

	(void)slot;
	if (watch_slot(ROLE_SAMPLER)->state != SLOT_OFF) {
		give_chunk(loaded);
		return;
	}
	if (loaded->error == EINTR || loaded->error == EAGAIN)
		return; /* check_loader() tries again */
	if (loaded->error)
		give_up(-loaded->error, "%.*s", (int)sizeof(loaded->text) - 1, loaded->text);
	watch_start(ROLE_SAMPLER);
	err = kernel_start(config);
	if (err)
		give_up(err, "cannot start sampling: %s", strerror(-err));
	control_started(&started);
	log_info("sampling at %u Hz on %u cpus; %u verified instructions", config->rate_hz,
		 config->runtime.sideband, loaded->program_insns);
}

static const struct {
	enum message_type type;
	void (*handle)(int slot, const struct message *message);
} handlers[] = {
	{MESSAGE_DRAINED, on_drained},
	{MESSAGE_VIOLATION, on_violation},
	{MESSAGE_LOADED, on_loaded},
	{MESSAGE_WANT_CHUNK, on_want_chunk},
};

static void on_message(int slot, const struct message *message, const int *fds, size_t fds_n)
{
	if (message->type == MESSAGE_BPF_FD) {
		int err = kernel_take(&message->bpf_fd, fds[0], &config->runtime);

		if (err)
			give_up(err, "the loader sent something unknown: reinstall");
		return;
	}
	for (size_t i = 0; i < fds_n; i++)
		close(fds[i]);
	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++)
		if (handlers[i].type == (enum message_type)message->type)
			handlers[i].handle(slot, message);
}

/* A loader that ended without a word, or was interrupted, gets another chance. */
static void check_loader(void)
{
	struct slot *loader = watch_slot(ROLE_LOADER);

	if (loader->state != SLOT_OFF || watch_slot(ROLE_SAMPLER)->state != SLOT_OFF ||
	    drain_begun())
		return;
	if (loader->restarts + 1 >= LOADER_TRIES)
		give_up(-EIO, "the BPF loader ended without success; its messages are above");
	kernel_forget(&config->runtime);
	watch_start(ROLE_LOADER);
}

static void start_all(void)
{
	int err = wiring_create(config);

	if (err)
		give_up(err, "cannot make shared memory: %s", strerror(-err));
	watch_start(ROLE_LOADER);
	watch_start(ROLE_BROKER);
	for (int k = 0; k < (int)config->workers; k++)
		watch_start(SLOT_WORKER(k));
	watch_start(ROLE_EXPORTER);
	if (config->viewer.enabled)
		watch_start(ROLE_VIEWER);
}

static void on_signal(uint32_t signals, uint32_t generation)
{
	struct signalfd_siginfo info;

	(void)generation;
	if (read((int)signals, &info, sizeof(info)) > 0)
		drain_begin();
}

static void (*const on_event[])(uint32_t index, uint32_t generation) = {
	[EVENT_SIGNAL] = on_signal,	 [EVENT_CONTROL] = control_accept,
	[EVENT_CLIENT] = control_event,	 [EVENT_PROCESS] = watch_on_process,
	[EVENT_CHANNEL] = watch_on_channel,
};

/* What the cli made for us. Numbers that it left empty become /dev/null, and so nobody else's. */
static void take_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd < FD_SUPERVISOR_BINARIES);
	if (fd > FD_SUPERVISOR_BINARIES)
		close(fd);
	wiring_give(OBJECT_FILE, 0, SIDE_A, FD_SUPERVISOR_OUTPUT);
	wiring_give(OBJECT_HTTP, 0, SIDE_A, FD_SUPERVISOR_HTTP);
	wiring_give(OBJECT_INTAKE, 0, SIDE_A, FD_SUPERVISOR_INTAKE);
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN); /* a terminal that goes takes the cli with it, and that we see */
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv)
{
	struct epoll_event events[EVENTS_MAX];
	int epoll, signals, next_ms = 0;

	if (argc > 1)
		return init_main(argc, argv);
	umask(077);
	log_init(ROLE_SUPERVISOR, LOG_INFO);
	take_descriptors();
	take_config();
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_SET_NAME, "sconce-supervisor", 0, 0, 0);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	signals = open_signals();
	watch_init(epoll, config, on_message);
	watch_add(signals, EVENT_SIGNAL, (uint32_t)signals, 0);
	control_init(config);
	start_all();
	do {
		int n = epoll_wait(epoll, events, EVENTS_MAX, next_ms);

		for (int i = 0; i < n; i++)
			on_event[events[i].data.u64 >> 16 & 0xffff](
				events[i].data.u64 & 0xffff, (uint32_t)(events[i].data.u64 >> 32));
		next_ms = watch_tick();
		check_loader();
		if (drain_begun())
			next_ms = DRAIN_TICK_MS;
	} while (!drain_begun() || !drain_tick());
	clean_up();
	return 0;
}
