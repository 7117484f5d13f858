/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small OTLP receiver for the tests: a thread that serves one connection at a time, decodes what
 * comes, counts each profile_id once, and answers as it is told.
 */
#ifndef SCONCE_TESTS_EXPORTER_SERVER_H
#define SCONCE_TESTS_EXPORTER_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum server_mode {
	SERVER_OK,
	SERVER_BUSY,	/* 503 with Retry-After: 1; takes nothing */
	SERVER_REFUSE,	/* 400; takes nothing */
	SERVER_PARTIAL, /* 200, one profile refused (taken all the same: the test knows) */
	SERVER_HANG,	/* takes it and never answers */
	SERVER_CLOSE,	/* takes it and hangs up without an answer */
	SERVER_LONG,	/* takes it and answers with more than anyone should read */
};

#define SERVER_IDS_MAX 65536

struct server {
	int listener;
	int port; /* of a TCP server */
	pthread_t thread;
	_Atomic int mode;
	_Atomic bool stop;
	_Atomic uint64_t requests, samples, duplicates, undecodable;
	char headers[4096]; /* of the last request */
	uint8_t (*ids)[16];
	uint32_t ids_n;
};

/* path: of a unix socket, or NULL for TCP on a free port of the loopback. */
void server_start(struct server *server, const char *path);
void server_stop(struct server *server);

#endif
