/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sconce-loader: loads BPF, opens the perf events, hands every fd to the supervisor and exits. It
 * is the only process with CAP_BPF and CAP_PERFMON, for a moment; it has no ledger, because it has
 * no samples. It is run again for each further chunk of table memory. What it could not do it says in LOADED, and it exits 0 whenever that could be said.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/channel.h"
#include "proto/config.h"
#include "proto/fds.h"
#include "shm/segment.h"
#include "supervisor/loader_bpf.h"
#include "supervisor/loader_perf.h"
#include "supervisor/log.h"
#include "supervisor/sandbox.h"

/* How long a supervisor that does not read is waited for, per message. */
#define SEND_TIMEOUT_MS 5000

static const struct config *loader_map_config(void)
{
	const struct config *config;

	if (segment_size(FD_CONFIG) < (long)sizeof(*config))
		fatal("this program is started by sconce, not by hand (no configuration at fd %d)",
		      FD_CONFIG);
	config = segment_map(FD_CONFIG, sizeof(*config), 0);
	if (!config)
		fatal("cannot map the configuration: %m");
	if (config->version != CONFIG_VERSION || config->size_bytes != sizeof(*config))
		fatal("configuration of another version: all binaries must be of one build");
	return config;
}

/* The socket holds fewer messages than there are cpus on a large machine. */
static void loader_send(struct channel *channel, enum message_type type, const void *payload,
			const int *fd)
{
	struct pollfd writable = {.fd = channel->fd, .events = POLLOUT};
	int err;

	while ((err = channel_send(channel, type, payload, fd, fd ? 1 : 0)) == -EAGAIN)
		if (poll(&writable, 1, SEND_TIMEOUT_MS) == 0)
			break;
	if (err)
		fatal("cannot hand over to the supervisor: %s", strerror(-err));
}

static void loader_send_fd(struct channel *channel, enum bpf_object object, uint32_t cpu, int fd)
{
	struct message_bpf_fd message = {.object = object, .cpu = cpu};

	loader_send(channel, MESSAGE_BPF_FD, &message, &fd);
}

static void loader_send_bpf(struct channel *channel, const struct loader_bpf *bpf)
{
	loader_send_fd(channel, BPF_EVENTS, 0, bpf->fd.events);
	loader_send_fd(channel, BPF_PROCS, 0, bpf->fd.procs);
	loader_send_fd(channel, BPF_RANGES, 0, bpf->fd.ranges);
	loader_send_fd(channel, BPF_CPUS, 0, bpf->fd.cpus);
	loader_send_fd(channel, BPF_TARGETS, 0, bpf->fd.targets);
	loader_send_fd(channel, BPF_FILES, 0, bpf->fd.files);
	loader_send_fd(channel, BPF_CHUNKS, 0, bpf->fd.chunks);
	loader_send_fd(channel, BPF_CHUNK, 0, bpf->fd.chunk);
	for (size_t i = 0; i < bpf->links_n; i++)
		loader_send_fd(channel, BPF_LINK, 0, bpf->fd.links[i]);
}

static int loader_fail_perf(char *text, size_t size, int err)
{
	snprintf(text, size, "cannot open a perf event: %s", strerror(-err));
	return err;
}

/* Both events of every online cpu. 0, or -errno with text set. */
static int loader_send_events(struct channel *channel, const struct config *config, int program_fd,
			      char *text, size_t size)
{
	for (uint32_t cpu = 0; cpu < config->runtime.cpus; cpu++) {
		int fd = loader_sideband_open(cpu, config->sideband_pages);

		if (fd == -ENODEV)
			continue;
		if (fd < 0)
			return loader_fail_perf(text, size, fd);
		loader_send_fd(channel, BPF_SIDEBAND, cpu, fd);
		close(fd);
		fd = loader_sampling_open(cpu, config->rate_hz, program_fd);
		if (fd == -ENODEV)
			continue;
		if (fd < 0)
			return loader_fail_perf(text, size, fd);
		loader_send_fd(channel, BPF_SAMPLING, cpu, fd);
		close(fd);
	}
	return 0;
}

static int loader_work(struct channel *channel, const struct config *config,
		       struct message_loaded *loaded)
{
	struct loader_bpf bpf;
	int err = loader_bpf_open(&bpf, config);

	if (err) {
		snprintf(loaded->text, sizeof(loaded->text), "%s", bpf.text);
	} else {
		loaded->program_insns = bpf.program_insns;
		loader_send_bpf(channel, &bpf);
		err = loader_send_events(channel, config, bpf.fd.program, loaded->text,
					 sizeof(loaded->text));
	}
	loader_bpf_close(&bpf);
	return err;
}

/* Started again, by a supervisor that has chunks of table memory and wants one more. */
static int loader_add_chunk(struct channel *channel, const struct config *config,
			    struct message_loaded *loaded)
{
	int fd = loader_bpf_chunk(FD_LOADER_CHUNKS, config->runtime.chunks);

	if (fd < 0)
		snprintf(loaded->text, sizeof(loaded->text), "no more memory for unwind tables: %s",
			 strerror(-fd));
	else
		loader_send_fd(channel, BPF_CHUNK, 0, fd);
	return fd < 0 ? fd : 0;
}

int main(void)
{
	struct message_loaded loaded = {0};
	const struct config *config;
	struct channel supervisor;

	log_init(ROLE_LOADER, LOG_INFO);
	signal(SIGPIPE, SIG_IGN);
	config = loader_map_config();
	channel_init(&supervisor, FD_SUPERVISOR, ROLE_LOADER, ROLE_SUPERVISOR, true);
	/* This takes no right away that loading needs. */
	sandbox_enter(ROLE_LOADER, NULL);
	loaded.error = -(config->runtime.chunks ? loader_add_chunk : loader_work)(&supervisor, config,
										&loaded);
	loader_send(&supervisor, MESSAGE_LOADED, &loaded, NULL);
	return 0;
}
