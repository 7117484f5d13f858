/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a socket between two of our processes (proto/messages.h). Never blocks, never logs.
 */
#ifndef SCONCE_PROTO_CHANNEL_H
#define SCONCE_PROTO_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/messages.h"

struct channel {
	int fd;
	enum role self, peer;
	bool peer_running; /* the peer has sent READY: WHEN of the list */
	/* one bucket per type: what the peer may still send */
	struct {
		uint32_t tokens;
		uint64_t refilled_ns;
	} bucket[MESSAGE_COUNT];
};

/* A connected pair of sockets, non-blocking and close-on-exec. 0 or -errno. */
int channel_pair(int fds[2]);

/*
 * Take up an end. peer_running says that the peer's phase is not watched here: only the supervisor,
 * who receives READY, passes false.
 */
void channel_init(struct channel *channel, int fd, enum role self, enum role peer,
		  bool peer_running);

/*
 * Send one message; payload is the struct of its type. The fds stay the caller's. 0, -EAGAIN when the
 * peer does not read (nothing was sent), -EPIPE when it is gone, other -errno.
 */
int channel_send(struct channel *channel, enum message_type type, const void *payload,
		 const int *fds, size_t fds_n);

/*
 * Receive one message. fds: room for MESSAGE_FDS_MAX; what arrives is close-on-exec and the
 * caller's; *fds_n is set. 0, -EAGAIN when there is none, -EPIPE when the peer closed, -EPROTO when
 * the peer broke the rules (then every fd that came has been closed). Pass fds = NULL where no message
 * of this channel carries any.
 */
int channel_recv(struct channel *channel, struct message *message, int *fds, size_t *fds_n);

#endif
