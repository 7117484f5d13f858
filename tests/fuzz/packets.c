/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/fuzz/packets.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define FDS_MAX 15

static const size_t sizes[MESSAGE_COUNT] = {
#define MESSAGE(NAME, from, to, payload, fds, when, rate)                                          \
	[MESSAGE_##NAME] = sizeof(struct message_##payload),
    MESSAGES(MESSAGE)
#undef MESSAGE
};

static int packets_memory(const uint8_t *bytes, size_t n)
{
	int fd = memfd_create("packet", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		__builtin_trap();
	return fd;
}

static bool packets_out(int to, const void *bytes, size_t n, const int *fds, size_t fds_n)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control = {0};
	struct iovec part = {(void *)(uintptr_t)bytes, n};
	struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};

	if (fds_n) {
		packet.msg_control = &control;
		packet.msg_controllen = CMSG_SPACE(sizeof(int) * fds_n);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int) * fds_n);
		memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * fds_n);
	}
	return sendmsg(to, &packet, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

bool packets_send(struct packets *p, int to)
{
	static struct message message;
	size_t n, size, fds_n;
	const uint8_t *bytes;
	int fds[FDS_MAX];
	bool sent;

	if (p->end - p->at < 4)
		return false;
	message.type = p->at[0];
	fds_n = p->at[1] & 15;
	n = p->at[2] | (size_t)p->at[3] << 8;
	bytes = p->at + 4;
	if (n > (size_t)(p->end - bytes))
		n = (size_t)(p->end - bytes);
	size = message.type < MESSAGE_COUNT ? sizes[message.type] : n;
	if (size > n)
		size = n;
	for (size_t i = 0; i < fds_n; i++)
		fds[i] = packets_memory(bytes + size, n - size);
	memset(&message.empty, 0, sizeof(message) - offsetof(struct message, empty));
	if (size)
		memcpy(&message.empty, bytes, size);
	message.len_bytes = (uint32_t)(message.type < MESSAGE_COUNT ? sizes[message.type] : size);
	sent = p->at[1] & PACKETS_RAW
		   ? packets_out(to, bytes, n, fds, fds_n)
		   : packets_out(to, &message, offsetof(struct message, empty) + message.len_bytes,
				 fds, fds_n);
	while (fds_n)
		close(fds[--fds_n]);
	p->at = bytes + n;
	return sent;
}

size_t packets_add(uint8_t *data, size_t at, enum message_type type, const void *payload,
		   size_t bytes, unsigned fds)
{
	data[at++] = (uint8_t)type;
	data[at++] = (uint8_t)fds;
	data[at++] = (uint8_t)bytes;
	data[at++] = (uint8_t)(bytes >> 8);
	memcpy(data + at, payload, bytes);
	return at + bytes;
}

void packets_discard(int fd)
{
	static struct message message;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int) * 64)];
	} control;
	struct iovec part = {&message, sizeof(message)};
	int came;

	for (;;) {
		struct msghdr packet = {.msg_iov = &part,
					.msg_iovlen = 1,
					.msg_control = &control,
					.msg_controllen = sizeof(control)};

		if (recvmsg(fd, &packet, MSG_DONTWAIT) < 0)
			return;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&packet); c; c = CMSG_NXTHDR(&packet, c))
			for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
				memcpy(&came, CMSG_DATA(c) + i * sizeof(int), sizeof(came));
				close(came);
			}
	}
}
