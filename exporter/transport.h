/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP/HTTP to the viewer (over its unix socket) and to the remote endpoint. One request in flight
 * per destination, from the front of its spool. Never blocks: transport_step() waits for the
 * network and is the sleep of the main loop.
 *
 * What is sent again: 429, 502, 503, 504 and broken connections, after Retry-After or with
 * exponential back-off and jitter. Every other refusal is for good.
 */
#ifndef SCONCE_EXPORTER_TRANSPORT_H
#define SCONCE_EXPORTER_TRANSPORT_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "exporter/spool.h"
#include "proto/config.h"

#define TRANSPORT_RESPONSE_BYTES_MAX (4u << 20)
#define TRANSPORT_LINKS		     2 /* DESTINATION_VIEWER and DESTINATION_REMOTE */

struct transport_link {
	struct spool *spool; /* NULL = not in use */
	CURL *easy;
	struct curl_slist *headers;
	bool gzip;
	bool in_flight;
	uint64_t backoff_min_ms, backoff_max_ms;
	uint32_t failures;	/* in a row */
	uint64_t not_before_ns; /* CLOCK_BOOTTIME */
	uint64_t logged_ns;	/* last complaint */
	const uint8_t *body;	/* of the request in flight */
	uint8_t *compressed;	/* owned, or NULL */
	size_t body_bytes;
	uint8_t *response;
	size_t response_bytes, response_cap;
};

struct transport {
	CURLM *multi;
	uint32_t random;
	struct transport_link links[TRANSPORT_LINKS];
};

/* Set up a link for each of the two spools that is in use. 0 or -errno. */
int transport_open(struct transport *transport, const struct config *config,
		   struct spool spools[DESTINATION_COUNT]);
/* Requests in flight are broken off; whether they arrived is not known. */
void transport_close(struct transport *transport);

/* Start what can be started, move what is under way, wait at most timeout_ms for the network. */
void transport_step(struct transport *transport, int timeout_ms);

/* Nothing in flight and nothing in the spools. */
bool transport_idle(const struct transport *transport);

#endif
