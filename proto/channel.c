/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "proto/channel.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEADER_BYTES offsetof(struct message, empty)
#define NS_PER_S     1000000000ull

enum when { WHEN_START = 1, WHEN_RUN = 2, WHEN_ANY = 3 };

static const struct {
	enum role from, to;
	size_t bytes;
	int fds; /* -1 = any number up to MESSAGE_FDS_MAX */
	enum when when;
	uint32_t per_second;
} messages[MESSAGE_COUNT] = {
#define MESSAGE(NAME, from, to, payload, fds, when, rate)                                          \
	[MESSAGE_##NAME] = {ROLE_##from, ROLE_##to,   sizeof(struct message_##payload),            \
			    fds,	 WHEN_##when, rate},
    MESSAGES(MESSAGE)
#undef MESSAGE
};

static const char *const role_names[] = {
#define ROLE(NAME, name, many) #name,
    ROLES(ROLE)
#undef ROLE
};

const char *role_name(enum role role)
{
	return role < ROLE_COUNT ? role_names[role] : "any";
}

static uint64_t channel_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

int channel_pair(int fds[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
		return -errno;
	return 0;
}

void channel_init(struct channel *channel, int fd, enum role self, enum role peer,
		  bool peer_running)
{
	memset(channel, 0, sizeof(*channel));
	channel->fd = fd;
	channel->self = self;
	channel->peer = peer;
	channel->peer_running = peer_running;
	for (int i = 0; i < MESSAGE_COUNT; i++)
		channel->bucket[i].tokens = 2 * messages[i].per_second;
}

int channel_send(struct channel *channel, enum message_type type, const void *payload,
		 const int *fds, size_t fds_n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX)];
	} control = {0};
	uint32_t header[2] = {type, (uint32_t)messages[type].bytes};
	struct iovec parts[2] = {{header, sizeof(header)},
				 {(void *)(uintptr_t)payload, messages[type].bytes}};
	struct msghdr packet = {.msg_iov = parts, .msg_iovlen = 2};

	if (fds_n) {
		struct cmsghdr *c = &control.align;

		packet.msg_control = &control;
		packet.msg_controllen = CMSG_SPACE(sizeof(int) * fds_n);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * fds_n);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * fds_n);
	}
	if (sendmsg(channel->fd, &packet, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	return 0;
}

/* Collect every fd of every control message; more than fit are closed. Returns how many came. */
static size_t channel_take_fds(struct msghdr *packet, int *fds)
{
	size_t total = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(packet); c; c = CMSG_NXTHDR(packet, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (total < MESSAGE_FDS_MAX)
				fds[total] = fd;
			else
				close(fd);
			total++;
		}
	}
	return total;
}

static bool channel_frequency_allowed(struct channel *channel, enum message_type type)
{
	uint32_t rate = messages[type].per_second;
	uint64_t now, earned;

	if (rate == 0)
		return true;
	now = channel_now_ns();
	earned = (now - channel->bucket[type].refilled_ns) * rate / NS_PER_S;
	if (channel->bucket[type].refilled_ns == 0 || earned >= 2 * rate) {
		channel->bucket[type].tokens = 2 * rate;
		channel->bucket[type].refilled_ns = now;
	} else if (earned > 0) {
		uint64_t tokens = channel->bucket[type].tokens + earned;

		channel->bucket[type].tokens = tokens > 2 * rate ? 2 * rate : (uint32_t)tokens;
		channel->bucket[type].refilled_ns = now;
	}
	if (channel->bucket[type].tokens == 0)
		return false;
	channel->bucket[type].tokens--;
	return true;
}

static bool channel_message_allowed(struct channel *channel, const struct message *message,
				    size_t bytes, size_t fds_n)
{
	enum message_type type = (enum message_type)message->type;
	enum when phase = channel->peer_running ? WHEN_RUN : WHEN_START;

	if (bytes < HEADER_BYTES || type <= MESSAGE_NONE || type >= MESSAGE_COUNT)
		return false;
	if (message->len_bytes != messages[type].bytes ||
	    bytes != HEADER_BYTES + messages[type].bytes)
		return false;
	if (messages[type].from != ROLE_ANY && messages[type].from != channel->peer)
		return false;
	if (messages[type].to != ROLE_ANY && messages[type].to != channel->self)
		return false;
	if (messages[type].fds >= 0 && fds_n != (size_t)messages[type].fds)
		return false;
	if (channel->self == ROLE_SUPERVISOR && !(messages[type].when & phase))
		return false;
	return channel_frequency_allowed(channel, type);
}

/* Nothing came: the peer closed its end, or it sent an empty packet, which no message is. */
static int channel_empty(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLRDHUP)) ? -EPIPE : -EPROTO;
}

int channel_recv(struct channel *channel, struct message *message, int *fds, size_t *fds_n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX)];
	} control;
	struct iovec part = {message, sizeof(*message)};
	struct msghdr packet = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = sizeof(control)};
	int taken[MESSAGE_FDS_MAX];
	size_t taken_n;
	ssize_t bytes = recvmsg(channel->fd, &packet, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (bytes < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	taken_n = channel_take_fds(&packet, taken);
	if (bytes == 0 && taken_n == 0)
		return channel_empty(channel->fd);
	if (taken_n > MESSAGE_FDS_MAX || (packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
	    (taken_n && !fds) ||
	    !channel_message_allowed(channel, message, (size_t)bytes, taken_n)) {
		for (size_t i = 0; i < taken_n && i < MESSAGE_FDS_MAX; i++)
			close(taken[i]);
		return -EPROTO;
	}
	if (fds) {
		memcpy(fds, taken, sizeof(int) * taken_n);
		*fds_n = taken_n;
	}
	if (message->type == MESSAGE_READY)
		channel->peer_running = true;
	return 0;
}
