/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 64

static int listen_fail(int fd)
{
	int err = -errno;

	close(fd);
	return err;
}

/* Does somebody answer at this address? Its pid, or 0. */
static pid_t listen_peer(const struct sockaddr_un *address, int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);

	if (fd < 0)
		return 0;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	close(fd);
	return peer.pid;
}

int listen_unix(const char *run_dir, const char *name, int type, const struct listen_owner *owner,
		pid_t *pid)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", run_dir, name);
	int fd;

	if (n < 0 || (size_t)n >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	if (mkdir(run_dir, 0755) == 0 && chmod(run_dir, 0755))
		return -errno;
	*pid = listen_peer(&address, type);
	if (*pid)
		return -EALREADY;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	unlink(address.sun_path);
	/* Made under umask 077, and root's until its mode is right: nobody can connect before. */
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    chmod(address.sun_path, owner->mode) ||
	    chown(address.sun_path, owner->uid, owner->gid) || listen(fd, BACKLOG)) {
		int err = listen_fail(fd);

		unlink(address.sun_path);
		return err;
	}
	return fd;
}

/* "1.2.3.4:80" or "[::1]:80", numbers only: nothing is looked up. */
static int listen_resolve(const char *text, struct addrinfo **found)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
	char host[64];
	char *port;
	size_t len;

	snprintf(host, sizeof(host), "%s", text);
	port = strrchr(host, ':');
	if (!port)
		return -EINVAL;
	*port++ = 0;
	len = strlen(host);
	if (len == 0)
		return -EINVAL;
	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = 0;
		memmove(host, host + 1, len - 1);
	}
	return getaddrinfo(host, port, &hints, found) ? -EINVAL : 0;
}

bool listen_valid(const char *text)
{
	struct addrinfo *found;

	if (listen_resolve(text, &found))
		return false;
	freeaddrinfo(found);
	return true;
}

static void listen_show(int fd, char *address, size_t size)
{
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	char host[64], port[8];

	if (getsockname(fd, (struct sockaddr *)&bound, &len) == 0 &&
	    getnameinfo((struct sockaddr *)&bound, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(address, size, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

int listen_tcp(char *text, size_t size)
{
	struct addrinfo *found = NULL;
	int err = listen_resolve(text, &found), fd, on = 1;

	if (err)
		return err;
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		err = -errno;
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, BACKLOG))
			err = listen_fail(fd);
		else
			listen_show(fd, text, size);
	}
	freeaddrinfo(found);
	return err ? err : fd;
}
