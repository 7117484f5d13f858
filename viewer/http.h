/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One listening socket and its connections: HTTP/1.1 by libmicrohttpd, no threads. Nothing of the
 * library is visible outside of http.c.
 *
 * A request reaches its handler whole and checked: the Host is one of ours (against DNS rebinding),
 * the token was shown, the method fits, a change does not come from a foreign page, the body is
 * within its limit. What fails is answered here.
 */
#ifndef SCONCE_VIEWER_HTTP_H
#define SCONCE_VIEWER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "viewer/text.h"

#define HTTP_CONNECTIONS_MAX 32
#define HTTP_TIMEOUT_S	     10		 /* idle */
#define HTTP_REQUEST_S	     30		 /* from the first byte of a body to its last */
#define HTTP_BODY_BYTES	     (8u << 20)	 /* of one request */
#define HTTP_BODIES_BYTES    (32u << 20) /* of all requests of a socket that are on their way in */
#define HTTP_REPLY_BYTES     (4u << 20)
#define HTTP_KEY_BYTES	     384

struct http;

struct http_request {
	const char *method;
	char key[HTTP_KEY_BYTES]; /* what stood for {key} in the path, decoded; else "" */
	const void *body;
	size_t body_len;
	const void *connection; /* for http_header() and http_query() */
};

/* status is 200 and the body empty when the handler is called. */
struct http_reply {
	unsigned status;
	const char *type;
	struct text body;
	const void *fixed; /* instead of body: lives for ever */
	size_t fixed_len;
	const char *etag; /* may be kept by the browser under this name */
	const char *retry_after;
};

typedef void http_handler(void *context, const struct http_request *request,
			  struct http_reply *reply);

enum http_route_flag {
	HTTP_CHANGES = 1, /* refused when a foreign page asks for it */
	HTTP_OPENS =
	    2, /* a page that changes something when it is visited: likewise, but for links */
};

/* A row of the routing table, which ends with method NULL. "{key}" is one segment of the path. */
struct http_route {
	const char *method, *path;
	http_handler *handler;
	unsigned flags;
};

struct http_options {
	const struct http_route *routes;
	void *context;
	const char *listen;    /* address:port of the configuration; NULL = unix socket, any Host */
	const char *host_name; /* also allowed when listen is a wildcard address */
	const char *token;     /* "" = none asked */
	/* Every answer, those given here included; for counting. */
	void (*answered)(void *context, const char *path, unsigned status);
};

/* The options are borrowed, the listening socket is taken. NULL with errno. */
struct http *http_open(int listen_fd, const struct http_options *options);
void http_close(struct http *http);

/* Becomes readable when http_turn() has something to do; so it has after http_timeout_ms(). */
int http_fd(const struct http *http);
int http_timeout_ms(struct http *http, int limit_ms);
void http_turn(struct http *http);

/* A header of the request, or NULL. */
const char *http_header(const struct http_request *request, const char *name);
/* Decode ?name=... False when absent, broken or too long. */
bool http_query(const struct http_request *request, const char *name, char *value,
		size_t value_bytes);

/* Answer with a status and a line of text. */
void http_error(struct http_reply *reply, unsigned status, const char *message);

#endif
