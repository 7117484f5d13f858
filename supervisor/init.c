/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "supervisor/init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/log.h"
#include "supervisor/spawn.h"

#define PAUSE_MS 100   /* before the next try, when the supervisor is not there or wants none yet */
#define ORPHANS_MS 1000 /* a pid 1 buries what others have left; there should be none */
#define DEATH_MS 2000  /* one that does not die is not waited for longer */

int init_send(struct channel *channel, const struct wire *wires, size_t wires_n)
{
	struct message_start start = {0};
	int fds[MESSAGE_FDS_MAX], err = 0;
	size_t fds_n = 0;

	for (size_t i = 0; i < wires_n && !err; i++) {
		start.wire[start.n].number = wires[i].number;
		start.wire[start.n++].given = wires[i].fd > 0;
		if (wires[i].fd > 0)
			fds[fds_n++] = wires[i].fd;
		start.last = i + 1 == wires_n;
		if (start.n < MESSAGE_FDS_MAX && !start.last)
			continue;
		err = channel_send(channel, MESSAGE_START, &start, fds, fds_n);
		start.n = 0;
		fds_n = 0;
	}
	return err;
}

static size_t init_receive(struct channel *channel, struct wire *wires)
{
	struct pollfd wait = {.fd = channel->fd, .events = POLLIN};
	struct message message;
	const struct message_start *start = &message.start;
	int fds[MESSAGE_FDS_MAX];
	size_t fds_n, n = 0;

	do {
		size_t taken = 0;

		poll(&wait, 1, -1);
		/* The end of the connection among others: somebody else is started in its place. */
		if (channel_recv(channel, &message, fds, &fds_n) || message.type != MESSAGE_START ||
		    start->n > MESSAGE_FDS_MAX || n + start->n >= WIRES_MAX)
			_exit(0);
		for (uint32_t i = 0; i < start->n; i++)
			wires[n++] = (struct wire){start->wire[i].number,
						   start->wire[i].given && taken < fds_n
							   ? fds[taken++]
							   : 0};
	} while (!start->last);
	return n;
}

static noreturn void init_child(int slot, struct channel *channel, int binary, pid_t parent)
{
	static struct wire wires[WIRES_MAX + 1];
	size_t n;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	n = init_receive(channel, wires);
	wires[n++] = (struct wire){FD_SUPERVISOR, channel->fd};
	spawn_enter(slot, NULL, wires, n, binary, parent);
}

/* Bury who has ended. True when this one was among them. */
static bool init_reap(pid_t child, int *how)
{
	bool found = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == child) {
			found = true;
			*how = status;
		}
	return found;
}

/* Until the child has ended; it is killed when the supervisor does not want it any more. */
static void init_watch(int connection, pid_t child, int pidfd)
{
	struct pollfd wait[] = {{.fd = pidfd, .events = POLLIN},
				{.fd = connection, .events = POLLRDHUP}};
	int how;

	do
		poll(wait, 2, ORPHANS_MS);
	while (!wait[1].revents && !init_reap(child, &how));
	if (!wait[1].revents) {
		log_info("pid %d ended by %s %d", child, WIFSIGNALED(how) ? "signal" : "exit",
			 WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
		return;
	}
	kill(child, SIGKILL);
	poll(wait, 1, DEATH_MS);
	init_reap(child, &how);
	poll(NULL, 0, PAUSE_MS);
}

static void init_live(int slot, int connection)
{
	struct message_offer offer = {0};
	struct channel channel;
	pid_t self = getpid();
	int binary = spawn_binary(AT_FDCWD, slot), pidfd;

	channel_init(&channel, connection, slot_role(slot), ROLE_SUPERVISOR, true);
	offer.pid = binary < 0 ? -1 : fork();
	if (offer.pid == 0)
		init_child(slot, &channel, binary, self);
	pidfd = (int)syscall(SYS_pidfd_open, offer.pid, 0);
	if (offer.pid < 0 || pidfd < 0)
		fatal("cannot start sconce-%s: %m", role_name(slot_role(slot)));
	channel_send(&channel, MESSAGE_OFFER, &offer, &pidfd, 1);
	init_watch(connection, offer.pid, pidfd);
	close(pidfd);
	close(binary);
}

/* Which slot, and where the supervisor listens. -1: there is none of that name. */
static int init_arguments(int argc, char **argv, struct sockaddr_un *address)
{
	const char *run_dir = "/run/sconce", *name = "", *worker = "0";
	int slot = ROLE_LOADER;

	for (int i = 1; i + 1 < argc; i += 2)
		if (strcmp(argv[i], "--role") == 0)
			name = argv[i + 1];
		else if (strcmp(argv[i], "--worker") == 0)
			worker = argv[i + 1];
		else if (strcmp(argv[i], "--run-dir") == 0)
			run_dir = argv[i + 1];
	while (slot < ROLE_COUNT && strcmp(role_name((enum role)slot), name) != 0)
		slot++;
	if (slot == ROLE_COUNT)
		return -1;
	snprintf(address->sun_path, sizeof(address->sun_path), "%s/%s", run_dir,
		 RUN_CONTROL_SOCKET);
	slot += slot == ROLE_SYMBOLIZER ? atoi(worker) : 0;
	return slot >= ROLE_LOADER && slot < SLOT_COUNT ? slot : -1;
}

int init_main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int slot = init_arguments(argc, argv, &address);

	log_init(slot < 0 ? ROLE_SUPERVISOR : slot, LOG_INFO);
	if (slot < 0)
		fatal("usage: sconce-supervisor --role ROLE [--worker K] [--run-dir DIR]");
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	/* A pid 1 is not ended by a signal that it has no handler for. */
	signal(SIGTERM, _exit);
	signal(SIGINT, _exit);
	for (;;) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
			init_live(slot, fd);
		else
			poll(NULL, 0, PAUSE_MS);
		close(fd);
	}
}
