/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/viewer/harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/fds.h"
#include "shm/unread.h"

#define REPLY_BYTES_MAX (16u << 20)
#define WAIT_MS		20000
#define HIGH_FD		200 /* above every number of proto/fds.h that we fill */

static void die(const char *what)
{
	perror(what);
	abort();
}

/* build/tests/viewer/viewer_test -> build/sconce-viewer, of the same mode */
static void program_path(char *path, size_t size)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n < 0)
		die("readlink");
	self[n] = '\0';
	for (int i = 0; i < 3; i++) {
		slash = strrchr(self, '/');
		if (!slash)
			abort();
		*slash = '\0';
	}
	if ((size_t)snprintf(path, size, "%s/sconce-viewer", self) >= size)
		abort();
}

static int listen_tcp(int *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 128) ||
	    getsockname(fd, (struct sockaddr *)&address, &len))
		die("listen on TCP");
	*port = ntohs(address.sin_port);
	return fd;
}

static int listen_unix(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path, path, strlen(path));
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 128))
		die("listen on a unix socket");
	return fd;
}

static int config_fd(const struct config *config)
{
	struct segment segment;
	void *map;

	if (segment_create(&segment, "config", sizeof(*config)))
		die("config");
	map = segment_map(segment.rw, sizeof(*config), 1);
	memcpy(map, config, sizeof(*config));
	munmap(map, sizeof(*config));
	close(segment.rw);
	return segment.ro;
}

/* In the child, between fork and exec: from[i] becomes to[i]. */
static void place_fds(const int (*fds)[2], size_t n)
{
	int high[64];

	for (size_t i = 0; i < n; i++) {
		high[i] = fcntl(fds[i][0], F_DUPFD_CLOEXEC, HIGH_FD);
		if (high[i] < 0)
			_exit(120);
	}
	for (size_t i = 0; i < n; i++)
		if (dup2(high[i], fds[i][1]) < 0)
			_exit(121);
}

static void run_program(const int (*fds)[2], size_t n)
{
	char path[4096], slot[16];

	program_path(path, sizeof(path));
	snprintf(slot, sizeof(slot), "%d", ROLE_VIEWER);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	place_fds(fds, n);
	/* Confined, it cannot be stopped to be searched for leaks. */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	execl(path, "sconce-viewer", slot, (char *)NULL);
	_exit(122);
}

static void wait_ready(struct harness *harness)
{
	struct pollfd p = {.fd = harness->channel.fd, .events = POLLIN};
	struct message message;

	if (poll(&p, 1, WAIT_MS) != 1 || channel_recv(&harness->channel, &message, NULL, NULL) ||
	    message.type != MESSAGE_READY)
		die("the viewer is not ready");
}

static void spawn(struct harness *harness)
{
	harness->pid = fork();
	if (harness->pid == 0)
		run_program(harness->fds, harness->fds_n);
	if (harness->pid < 0)
		die("fork");
	wait_ready(harness);
}

static void place(struct harness *harness, int from, int to)
{
	harness->fds[harness->fds_n][0] = from;
	harness->fds[harness->fds_n++][1] = to;
}

void harness_start(struct harness *harness, const struct config *config)
{
	int pair[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);

	snprintf(harness->unix_path, sizeof(harness->unix_path), "%s/viewer-%d.sock",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", getpid());
	if (null < 0 || channel_pair(pair))
		die("start");
	harness->fds_n = 0;
	place(harness, null, STDOUT_FILENO);
	place(harness, pair[1], FD_SUPERVISOR);
	place(harness, config_fd(config), FD_CONFIG);
	place(harness, listen_tcp(&harness->port), FD_VIEWER_HTTP);
	place(harness, listen_unix(harness->unix_path), FD_VIEWER_INTAKE);
	for (int slot = 0; slot < SLOT_COUNT; slot++) {
		bool absent = slot == ROLE_CLI || slot == ROLE_LOADER || slot > SLOT_WORKER(1);

		harness->ledgers[slot] = (struct segment){-1, -1};
		if (!absent && ledger_create(&harness->ledgers[slot], "ledger"))
			die("ledger");
		place(harness, absent ? null : harness->ledgers[slot].ro, FD_VIEWER_LEDGERS + slot);
	}
	place(harness, harness->ledgers[ROLE_VIEWER].rw, FD_LEDGER);
	channel_init(&harness->channel, pair[0], ROLE_SUPERVISOR, ROLE_VIEWER, false);
	spawn(harness);
}

/* -1 when it does not end in time. */
static int end_program(struct harness *harness, int signo)
{
	struct timespec tick = {0, 10000000};
	int status = -1;

	kill(harness->pid, signo);
	for (int i = 0; i < WAIT_MS / 10 && waitpid(harness->pid, &status, WNOHANG) == 0; i++)
		nanosleep(&tick, NULL);
	if (status == -1)
		kill(harness->pid, SIGKILL);
	return status;
}

void harness_restart(struct harness *harness, int signo)
{
	if (end_program(harness, signo) == -1)
		abort();
	channel_init(&harness->channel, harness->channel.fd, ROLE_SUPERVISOR, ROLE_VIEWER, false);
	spawn(harness);
}

void harness_stop(struct harness *harness)
{
	int status = end_program(harness, SIGTERM);

	if (status != 0) {
		fprintf(stderr, "the viewer ended with status %#x\n", (unsigned)status);
		abort();
	}
	close(harness->channel.fd);
	unlink(harness->unix_path);
	for (size_t i = 0; i < 5; i++)
		close(harness->fds[i][0]);
	for (int slot = 0; slot < SLOT_COUNT; slot++)
		if (harness->ledgers[slot].ro >= 0)
			segment_close(&harness->ledgers[slot]);
}

/* What is counted is committed at the end of the turn, a moment after the answer. */
uint64_t harness_counter(const struct harness *harness, enum counter counter)
{
	const struct ledger *ledger = ledger_map(harness->ledgers[ROLE_VIEWER].ro);
	struct timespec moment = {0, 50000000};
	struct ledger_entry entry;

	nanosleep(&moment, NULL);
	if (!ledger || ledger_read(ledger, &entry))
		die("read the ledger");
	munmap((void *)(uintptr_t)ledger, LEDGER_BYTES);
	return entry.counter[counter];
}

void harness_count(struct harness *harness, int slot, enum counter counter, uint64_t value)
{
	struct ledger_writer ledger;

	if (ledger_open(&ledger, harness->ledgers[slot].rw))
		die("open a ledger");
	ledger_set(&ledger, counter, value);
	ledger_commit(&ledger);
	munmap(ledger.shared, LEDGER_BYTES);
}

void harness_blame(struct harness *harness, int slot, const char *name)
{
	struct ledger_writer ledger;
	struct blame_file *file;

	if (ledger_open(&ledger, harness->ledgers[slot].rw))
		die("open a ledger");
	file = &ledger.shared->blame.files[3];
	memset(file, 0, sizeof(*file));
	if (name) {
		*file = (struct blame_file){.device = 0x801, .inode = 17, .points = BLAME_FILE};
		memcpy(file->name, name, strnlen(name, sizeof(file->name)));
	}
	munmap(ledger.shared, LEDGER_BYTES);
}

void harness_unread(struct harness *harness, int slot, const char *version)
{
	struct ledger_writer ledger;

	if (ledger_open(&ledger, harness->ledgers[slot].rw))
		die("open a ledger");
	unread_clear(ledger.shared);
	if (version)
		unread_add(ledger.shared, "python", version, "/opt/<i>python");
	munmap(ledger.shared, LEDGER_BYTES);
}

/* ---- client ------------------------------------------------------------------------------- */

int harness_connect(const struct harness *harness, enum door door)
{
	struct sockaddr_in tcp = {.sin_family = AF_INET,
				  .sin_port = htons((uint16_t)harness->port),
				  .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	struct timeval limit = {WAIT_MS / 1000, 0};
	int fd = socket(door == DOOR_TCP ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	memcpy(local.sun_path, harness->unix_path, strlen(harness->unix_path));
	err = door == DOOR_TCP ? connect(fd, (struct sockaddr *)&tcp, sizeof(tcp))
			       : connect(fd, (struct sockaddr *)&local, sizeof(local));
	if (fd < 0 || err)
		die("connect");
	return fd;
}

/* The peer may answer and close before it has read everything: that is no error here. */
static void send_all(int fd, const void *data, size_t len)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		data = (const char *)data + n;
		len -= (size_t)n;
	}
}

static struct reply receive(int fd)
{
	struct reply reply = {0};
	size_t len = 0, capacity = 4096;
	ssize_t n;

	reply.text = malloc(capacity);
	while (reply.text && (n = recv(fd, reply.text + len, capacity - len - 1, 0)) > 0) {
		len += (size_t)n;
		if (capacity - len > 1)
			continue;
		capacity *= 2;
		if (capacity > REPLY_BYTES_MAX)
			break;
		reply.text = realloc(reply.text, capacity);
	}
	if (!reply.text)
		die("receive");
	reply.text[len] = '\0';
	sscanf(reply.text, "HTTP/1.1 %d", &reply.status);
	reply.body = strstr(reply.text, "\r\n\r\n");
	reply.body = reply.body ? reply.body + 4 : reply.text + len;
	reply.body_len = len - (size_t)(reply.body - reply.text);
	return reply;
}

struct reply harness_ask(const struct harness *harness, enum door door, const char *method,
			 const char *path, const char *headers, const void *body, size_t len)
{
	int fd = harness_connect(harness, door);
	struct reply reply;
	char head[4096];
	int n = snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nConnection: close\r\n%s%s", method,
			 path, strstr(headers, "Host:") ? "" : "Host: localhost\r\n", headers);

	if (body && !strstr(headers, "Content-Length") && !strstr(headers, "Transfer-Encoding"))
		n += snprintf(head + n, sizeof(head) - (size_t)n, "Content-Length: %zu\r\n", len);
	n += snprintf(head + n, sizeof(head) - (size_t)n, "\r\n");
	send_all(fd, head, (size_t)n);
	send_all(fd, body, len);
	reply = receive(fd);
	close(fd);
	return reply;
}

void reply_free(struct reply *reply)
{
	free(reply->text);
	reply->text = NULL;
}
