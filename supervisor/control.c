/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "supervisor/control.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/fds.h"
#include "supervisor/drain.h"
#include "supervisor/log.h"
#include "supervisor/watch.h"
#include "supervisor/wiring.h"

#define CLIENTS 9
#define OWN_CLI 0

static const struct config *config;
/* fd 0 = free; behind those who ask there is one place for the container of each slot */
static struct channel clients[CLIENTS + SLOT_COUNT];

static void control_add(uint32_t i, int fd)
{
	channel_init(&clients[i], fd, ROLE_SUPERVISOR,
		     i < CLIENTS ? ROLE_CLI : slot_role((int)(i - CLIENTS)), i < CLIENTS);
	watch_add(fd, EVENT_CLIENT, i, 0);
}

void control_init(const struct config *from)
{
	struct stat st;

	config = from;
	if (fstat(FD_SUPERVISOR, &st) == 0 && S_ISSOCK(st.st_mode))
		control_add(OWN_CLI, FD_SUPERVISOR);
	if (fstat(FD_SUPERVISOR_CONTROL, &st) == 0 && S_ISSOCK(st.st_mode))
		watch_add(FD_SUPERVISOR_CONTROL, EVENT_CONTROL, 0, 0);
}

void control_started(const struct message_started *started)
{
	if (clients[OWN_CLI].fd > 0)
		channel_send(&clients[OWN_CLI], MESSAGE_STARTED, started, NULL, 0);
	else if (started->error)
		log_error("%s", started->text);
}

void control_accept(uint32_t index, uint32_t generation)
{
	int fd = accept4(FD_SUPERVISOR_CONTROL, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t size = sizeof(peer);
	uint32_t first = OWN_CLI + 1, end = CLIENTS, slot;

	(void)index, (void)generation;
	/* The uid says who it is; a pid would be one of another namespace. */
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	slot = peer.uid - config->uid_base;
	if (peer.uid != 0) {
		first = CLIENTS + slot;
		end = config->containers && slot < SLOT_COUNT ? first + 1 : 0;
	}
	for (uint32_t i = first; fd >= 0 && i < end; i++)
		if (clients[i].fd == 0) {
			control_add(i, fd);
			return;
		}
	if (fd >= 0)
		close(fd);
}

static void control_on_finish(struct channel *client)
{
	(void)client;
	drain_begin();
}

static void control_on_status(struct channel *client)
{
	struct message_status status = {0};
	int fds[1 + SLOT_COUNT] = {wiring_fd(OBJECT_CONFIG, 0, SIDE_RO)};
	size_t fds_n = 1;

	status.processes[status.processes_n++] = (struct message_status_process){
		.role = ROLE_SUPERVISOR, .slot = ROLE_SUPERVISOR, .pid = getpid()};
	for (int i = ROLE_LOADER; i < SLOT_COUNT; i++) {
		const struct slot *s = watch_slot(i);
		struct message_status_process *p = &status.processes[status.processes_n];

		if (s->state == SLOT_OFF && !s->generation)
			continue;
		status.processes_n++;
		p->role = slot_role(i);
		p->slot = (uint32_t)i;
		p->pid = s->pid;
		p->uid = config->uid_base + (uint32_t)i;
		p->restarts = s->restarts;
		p->abandoned = s->abandoned;
		p->ledger = (uint32_t)fds_n;
		fds[fds_n++] = wiring_fd(OBJECT_LEDGER, (uint32_t)i, SIDE_RO);
	}
	channel_send(client, MESSAGE_STATUS_REPLY, &status, fds, fds_n);
}

static const struct {
	enum message_type type;
	bool own_cli_only;
	void (*handle)(struct channel *client);
} requests[] = {
	{MESSAGE_STATUS, false, control_on_status},
	{MESSAGE_FINISH, true, control_on_finish},
};

static void control_close(uint32_t i)
{
	close(clients[i].fd);
	clients[i].fd = 0;
	if (i == OWN_CLI)
		drain_begin();
}

/* It is the slot's from here on, or it ends: a container says nothing else. */
static void control_on_offer(uint32_t i, const struct message *message, const int *fds)
{
	if (message->type != MESSAGE_OFFER) {
		control_close(i);
	} else if (watch_offer((int)(i - CLIENTS), clients[i].fd, fds[0], message->offer.pid)) {
		clients[i].fd = 0;
	} else {
		close(fds[0]);
		control_close(i);
	}
}

void control_event(uint32_t i, uint32_t generation)
{
	struct message message;
	int fds[MESSAGE_FDS_MAX], err;
	size_t fds_n = 0;

	(void)generation;
	if (clients[i].fd <= 0)
		return;
	err = channel_recv(&clients[i], &message, fds, &fds_n);
	if (!err && i >= CLIENTS) {
		control_on_offer(i, &message, fds);
		return;
	}
	for (size_t r = 0; !err && r < sizeof(requests) / sizeof(requests[0]); r++)
		if (requests[r].type == (enum message_type)message.type &&
		    (i == OWN_CLI || !requests[r].own_cli_only))
			requests[r].handle(&clients[i]);
	if (err && err != -EAGAIN)
		control_close(i);
}
