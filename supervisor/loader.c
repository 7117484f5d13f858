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
#include <unistd.h>

#include "proto/channel.h"
#include "proto/config.h"
#include "proto/fds.h"
#include "supervisor/loader_bpf.h"
#include "supervisor/loader_perf.h"
#include "supervisor/log.h"
#include "supervisor/sandbox.h"

/* How long a supervisor that does not read is waited for, per message. */
#define SEND_TIMEOUT_MS 5000

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

static void loader_send_fd(struct channel *channel, enum kernel_object object, uint32_t cpu, int fd)
{
	struct message_bpf_fd message = {.object = object, .cpu = cpu};

	loader_send(channel, MESSAGE_BPF_FD, &message, &fd);
}

static void loader_send_bpf(struct channel *channel, const struct loader_bpf *bpf)
{
	for (enum kernel_object object = 0; object < BPF_OBJECT_COUNT; object++)
		if (bpf->map[object])
			loader_send_fd(channel, object, 0, bpf->map[object]);
	for (size_t i = 0; i < LOADER_LINKS_MAX; i++)
		if (bpf->links[i])
			loader_send_fd(channel, BPF_LINK, 0, bpf->links[i]);
}

/* fd: as opened, or an error; that the cpu is not online is none. */
static int loader_send_event(struct channel *channel, enum kernel_object object, uint32_t cpu, int fd)
{
	if (fd < 0)
		return fd == -ENODEV ? 0 : fd;
	loader_send_fd(channel, object, cpu, fd);
	close(fd);
	return 0;
}

/* Both events of every cpu. */
static int loader_send_events(struct channel *channel, const struct config *config, int program_fd)
{
	int err = 0;

	for (uint32_t cpu = 0; cpu < config->runtime.cpus && !err; cpu++) {
		err = loader_send_event(channel, BPF_SIDEBAND, cpu,
					loader_sideband_open(cpu, config->sideband_pages));
		if (!err)
			err = loader_send_event(channel, BPF_SAMPLING, cpu,
						loader_sampling_open(cpu, config->rate_hz, program_fd));
	}
	return err;
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
		err = loader_send_events(channel, config, bpf.program);
		if (err)
			snprintf(loaded->text, sizeof(loaded->text), "cannot open a perf event: %s",
				 strerror(-err));
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
	config = config_map(FD_CONFIG);
	if (!config)
		fatal("no configuration at fd %d: sconce starts this, and all binaries are of one build",
		      FD_CONFIG);
	channel_init(&supervisor, FD_SUPERVISOR, ROLE_LOADER, ROLE_SUPERVISOR, true);
	/* This takes no right away that loading needs. */
	sandbox_enter(ROLE_LOADER, NULL);
	loaded.error = -(config->runtime.chunks ? loader_add_chunk : loader_work)(&supervisor, config,
										&loaded);
	loader_send(&supervisor, MESSAGE_LOADED, &loaded, NULL);
	return 0;
}
