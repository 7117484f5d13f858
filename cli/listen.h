/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listening sockets of `sconce run`: made here, because whoever makes them reads addresses and
 * paths; kept by the supervisor, served by it (control) and by the viewer.
 */
#ifndef SCONCE_CLI_LISTEN_H
#define SCONCE_CLI_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Who may connect to a unix socket. */
struct listen_owner {
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

/*
 * Listen on run_dir/name, in place of a stale socket of that name; run_dir is made if it is missing.
 * The fd, or -errno: -EALREADY when somebody answers there, *pid is set then.
 */
int listen_unix(const char *run_dir, const char *name, int type, const struct listen_owner *owner,
		pid_t *pid);

/* A numeric "address:port"? */
bool listen_valid(const char *text);

/* Listen there. The fd, or -errno; text becomes what was bound (port 0 becomes a real one). */
int listen_tcp(char *text, size_t size);

#endif
