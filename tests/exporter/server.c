/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/exporter/server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zlib.h>

#include "profile/otlp.h"

#define SERVER_BODY_MAX (8u << 20)

static bool server_seen(void *arg, const uint8_t id[16])
{
	struct server *server = arg;

	for (uint32_t i = 0; i < server->ids_n; i++)
		if (!memcmp(server->ids[i], id, 16))
			return true;
	assert(server->ids_n < SERVER_IDS_MAX);
	memcpy(server->ids[server->ids_n++], id, 16);
	return false;
}

static size_t server_gunzip(const uint8_t *bytes, size_t len, uint8_t *out)
{
	z_stream stream = {.next_in = (Bytef *)bytes,
			   .avail_in = (uInt)len,
			   .next_out = out,
			   .avail_out = SERVER_BODY_MAX};
	int status;

	inflateInit2(&stream, 31);
	status = inflate(&stream, Z_FINISH);
	inflateEnd(&stream);
	return status == Z_STREAM_END ? stream.total_out : 0;
}

static void server_take(struct server *server, const uint8_t *body, size_t len)
{
	struct otlp_sink sink = {.arg = server, .seen = server_seen};
	struct otlp_result result;
	uint8_t *plain = NULL;

	if (strcasestr(server->headers, "\r\nContent-Encoding: gzip")) {
		plain = malloc(SERVER_BODY_MAX);
		len = server_gunzip(body, len, plain);
		body = plain;
	}
	if (!len || otlp_decode(body, len, &sink, &result))
		atomic_fetch_add(&server->undecodable, 1);
	else {
		atomic_fetch_add(&server->samples, result.samples);
		atomic_fetch_add(&server->duplicates, result.samples_duplicate);
	}
	free(plain);
}

/* Bytes, 0 when the peer hung up or the test ends. */
static ssize_t server_read(struct server *server, int fd, void *buf, size_t size)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n;

	while (!server->stop) {
		if (poll(&p, 1, 20) <= 0)
			continue;
		n = read(fd, buf, size);
		return n > 0 ? n : 0;
	}
	return 0;
}

static void server_say(int fd, const char *status, const char *more, const void *body, size_t len)
{
	char head[256];
	int n = snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n%s\r\n", status,
			 len, more);

	if (send(fd, head, (size_t)n, MSG_NOSIGNAL) == n && len)
		for (size_t at = 0; at < len;) {
			ssize_t sent = send(fd, (const char *)body + at, len - at, MSG_NOSIGNAL);

			if (sent <= 0)
				return;
			at += (size_t)sent;
		}
}

/* True when the connection may go on. */
static bool server_answer(struct server *server, int fd, const uint8_t *body, size_t len)
{
	uint8_t partial[64], *longer;
	int mode = server->mode;
	char byte;

	atomic_fetch_add(&server->requests, 1);
	switch (mode) {
	case SERVER_BUSY:
		server_say(fd, "503 Service Unavailable", "Retry-After: 1\r\n", "later", 5);
		return true;
	case SERVER_REFUSE:
		server_say(fd, "400 Bad Request", "", "no", 2);
		return true;
	}
	server_take(server, body, len);
	switch (mode) {
	case SERVER_OK:
		server_say(fd, "200 OK", "", "\x0a\x00", 2);
		return true;
	case SERVER_PARTIAL:
		len = otlp_encode_response(1, "one too many", partial, sizeof(partial));
		server_say(fd, "200 OK", "", partial, len);
		return true;
	case SERVER_HANG:
		server_read(server, fd, &byte, 1);
		return false;
	case SERVER_LONG:
		longer = calloc(1, SERVER_BODY_MAX);
		server_say(fd, "200 OK", "", longer, SERVER_BODY_MAX);
		free(longer);
		return false;
	}
	return false;
}

static bool server_request(struct server *server, int fd)
{
	size_t used = 0, want = 0;
	uint8_t *body;
	char *end;
	bool go_on = false;

	do {
		ssize_t n = server_read(server, fd, server->headers + used, 1);

		if (!n || used + 2 >= sizeof(server->headers))
			return false;
		server->headers[++used] = '\0';
	} while (used < 4 || memcmp(server->headers + used - 4, "\r\n\r\n", 4) != 0);
	end = strcasestr(server->headers, "\r\nContent-Length:");
	if (end)
		want = strtoul(end + strlen("\r\nContent-Length:"), NULL, 10);
	if (!want || want > SERVER_BODY_MAX)
		return false;
	body = malloc(want);
	for (used = 0; used < want;) {
		ssize_t n = server_read(server, fd, body + used, want - used);

		if (!n)
			break;
		used += (size_t)n;
	}
	if (used == want)
		go_on = server_answer(server, fd, body, want);
	free(body);
	return go_on;
}

static void *server_main(void *arg)
{
	struct server *server = arg;
	struct pollfd p = {.fd = server->listener, .events = POLLIN};
	int fd;

	while (!server->stop) {
		if (poll(&p, 1, 20) <= 0 || (fd = accept(server->listener, NULL, NULL)) < 0)
			continue;
		while (server_request(server, fd))
			;
		close(fd);
	}
	return NULL;
}

void server_start(struct server *server, const char *path)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons((uint16_t)server->port)};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(in);
	int on = 1;

	server->stop = false;
	if (!server->ids)
		server->ids = calloc(SERVER_IDS_MAX, sizeof(*server->ids));
	server->listener =
	    socket(path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert(server->ids && server->listener >= 0);
	if (path) {
		unlink(path);
		snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
		assert(!bind(server->listener, (struct sockaddr *)&un, sizeof(un)));
	} else {
		setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		assert(!bind(server->listener, (struct sockaddr *)&in, sizeof(in)));
		assert(!getsockname(server->listener, (struct sockaddr *)&in, &len));
		server->port = ntohs(in.sin_port);
	}
	assert(!listen(server->listener, 8));
	assert(!pthread_create(&server->thread, NULL, server_main, server));
}

void server_stop(struct server *server)
{
	server->stop = true;
	pthread_join(server->thread, NULL);
	close(server->listener);
}
