/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "viewer/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "viewer/admit.h"

#define CONNECTION_BYTES (32u << 10) /* headers, and the buffers of one connection */
#define BODY_FIRST_BYTES (16u << 10)

struct http {
	struct MHD_Daemon *daemon;
	const struct http_options *options;
	size_t bodies_bytes; /* capacity of all bodies on their way in */
};

/* A request on its way in. */
struct http_upload {
	struct http *http;
	const struct http_route *route; /* NULL: the reply is already there */
	struct http_request request;
	struct http_reply reply;
	uint8_t *body;
	size_t len, capacity;
	uint64_t discarded;
	time_t begun_s;
};

static const char *const security_headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
     "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

static time_t http_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

const char *http_header(const struct http_request *request, const char *name)
{
	return MHD_lookup_connection_value((struct MHD_Connection *)request->connection,
					   MHD_HEADER_KIND, name);
}

bool http_query(const struct http_request *request, const char *name, char *value,
		size_t value_bytes)
{
	const char *raw = MHD_lookup_connection_value((struct MHD_Connection *)request->connection,
						      MHD_GET_ARGUMENT_KIND, name);

	return raw && text_url_decode(raw, strlen(raw), value, value_bytes);
}

void http_error(struct http_reply *reply, unsigned status, const char *message)
{
	reply->status = status;
	reply->type = "text/plain; charset=utf-8";
	reply->body.len = 0;
	reply->body.failed = false;
	reply->fixed = NULL;
	text_str(&reply->body, message);
	text_str(&reply->body, "\n");
}

/* ---- routes ------------------------------------------------------------------------------- */

/*
 * Does the path, still percent-encoded, fit the pattern? The key's bounds are set. A '/' of a key
 * is written %2F, which is why libmicrohttpd is kept from decoding.
 */
static bool http_path_fits(const char *pattern, const char *path, const char **key, size_t *key_len)
{
	for (; *pattern; pattern++) {
		if (*pattern == '{') {
			*key = path;
			*key_len = strcspn(path, "/");
			path += *key_len;
			pattern = strchr(pattern, '}');
		} else if (*pattern != *path++) {
			return false;
		}
	}
	return !*path;
}

/* NULL with the reply set to 400, 404 or 405. */
static const struct http_route *http_find_route(struct http_upload *upload, const char *method,
						const char *path)
{
	const char *wanted = strcmp(method, "HEAD") ? method : "GET";
	bool known = false;

	for (const struct http_route *route = upload->http->options->routes; route->method;
	     route++) {
		const char *key = "";
		size_t key_len = 0;

		if (!http_path_fits(route->path, path, &key, &key_len))
			continue;
		known = true;
		if (strcmp(route->method, wanted))
			continue;
		if (text_url_decode(key, key_len, upload->request.key, sizeof(upload->request.key)))
			return route;
		http_error(&upload->reply, 400, "bad key in the path");
		return NULL;
	}
	http_error(&upload->reply, known ? 405 : 404, known ? "method not allowed" : "not found");
	return NULL;
}

static uint64_t http_content_length(const struct http_request *request)
{
	const char *header = http_header(request, "Content-Length");

	return header ? strtoull(header, NULL, 10) : 0;
}

/* Sets the route, or the reply that refuses. */
static void http_admit(struct http_upload *upload, const char *path)
{
	const struct http_options *options = upload->http->options;
	const struct http_request *request = &upload->request;
	struct http_reply *reply = &upload->reply;
	const struct http_route *route;

	if (!admit_host(options, http_header(request, "Host"))) {
		http_error(reply, 403, "this name is not mine: see --viewer-listen");
		return;
	}
	if (!admit_token(options, request)) {
		http_error(reply, 401, "token missing or wrong");
		return;
	}
	route = http_find_route(upload, request->method, path);
	if (!route)
		return;
	if ((route->flags & HTTP_CHANGES && admit_foreign_page(request)) ||
	    (route->flags & HTTP_OPENS && admit_foreign_page(request) &&
	     !admit_followed_link(request)))
		http_error(reply, 403, "refused: asked for by a page of another origin");
	else if (http_content_length(request) > HTTP_BODY_BYTES)
		http_error(reply, 413, "body too large");
	else
		upload->route = route;
}

/* ---- bodies ------------------------------------------------------------------------------- */

static void http_refuse_body(struct http_upload *upload, unsigned status, const char *message)
{
	upload->route = NULL;
	upload->http->bodies_bytes -= upload->capacity;
	free(upload->body);
	upload->body = NULL;
	upload->len = upload->capacity = 0;
	upload->reply.retry_after = status == 503 ? "1" : NULL;
	http_error(&upload->reply, status, message);
}

static void http_body_add(struct http_upload *upload, const char *data, size_t len)
{
	struct http *http = upload->http;
	size_t capacity = upload->capacity ? upload->capacity : BODY_FIRST_BYTES;
	uint8_t *body;

	if (len > HTTP_BODY_BYTES - upload->len) {
		http_refuse_body(upload, 413, "body too large");
		return;
	}
	while (capacity < upload->len + len)
		capacity *= 2;
	if (capacity > upload->capacity) {
		body = http->bodies_bytes - upload->capacity + capacity <= HTTP_BODIES_BYTES
			   ? realloc(upload->body, capacity)
			   : NULL;
		if (!body) {
			http_refuse_body(upload, 503, "too much at once, try again");
			return;
		}
		http->bodies_bytes += capacity - upload->capacity;
		upload->body = body;
		upload->capacity = capacity;
	}
	memcpy(upload->body + upload->len, data, len);
	upload->len += len;
}

/* False: the client is not worth listening to any more. */
static bool http_receive(struct http_upload *upload, const char *data, size_t len)
{
	if (http_now_s() - upload->begun_s > HTTP_REQUEST_S)
		return false;
	if (upload->route)
		http_body_add(upload, data, len);
	else
		upload->discarded += len;
	return upload->discarded <= HTTP_BODY_BYTES;
}

/* ---- replies ------------------------------------------------------------------------------ */

static struct MHD_Response *http_make_response(struct http_reply *reply)
{
	struct text *body = &reply->body;
	struct MHD_Response *response;

	if (reply->fixed)
		return MHD_create_response_from_buffer(reply->fixed_len, (void *)reply->fixed,
						       MHD_RESPMEM_PERSISTENT);
	response = MHD_create_response_from_buffer(body->len, body->data, MHD_RESPMEM_MUST_FREE);
	if (response)
		body->data = NULL; /* the response frees it */
	return response;
}

static enum MHD_Result http_send(struct MHD_Connection *connection, struct http_upload *upload,
				 const char *path)
{
	const struct http_options *options = upload->http->options;
	struct http_reply *reply = &upload->reply;
	const char *known = http_header(&upload->request, "If-None-Match");
	struct MHD_Response *response;
	enum MHD_Result result;

	if (reply->body.failed)
		http_error(reply, 500, "the answer is too large");
	if (reply->etag && known && !strcmp(known, reply->etag)) {
		reply->status = 304;
		reply->fixed_len = 0;
	}
	response = http_make_response(reply);
	if (!response)
		return MHD_NO;
	for (size_t i = 0; i < sizeof(security_headers) / sizeof(security_headers[0]); i++)
		MHD_add_response_header(response, security_headers[i][0], security_headers[i][1]);
	MHD_add_response_header(response, "Content-Type", reply->type);
	MHD_add_response_header(response, "Cache-Control", reply->etag ? "no-cache" : "no-store");
	if (reply->etag)
		MHD_add_response_header(response, "ETag", reply->etag);
	if (reply->retry_after)
		MHD_add_response_header(response, "Retry-After", reply->retry_after);
	if (reply->status == 401)
		MHD_add_response_header(response, "WWW-Authenticate", "Basic realm=\"sconce\"");
	result = MHD_queue_response(connection, reply->status, response);
	options->answered(options->context, path, reply->status);
	MHD_destroy_response(response);
	return result;
}

/* ---- libmicrohttpd ------------------------------------------------------------------------ */

static struct http_upload *http_upload_new(struct http *http, struct MHD_Connection *connection,
					   const char *method)
{
	struct http_upload *upload = calloc(1, sizeof(*upload));

	if (!upload)
		return NULL;
	upload->http = http;
	upload->request.method = method;
	upload->request.connection = connection;
	upload->reply.status = 200;
	text_init(&upload->reply.body, HTTP_REPLY_BYTES);
	upload->begun_s = http_now_s();
	return upload;
}

static bool http_has_body(const struct http_request *request)
{
	return http_header(request, "Transfer-Encoding") || http_content_length(request) > 0;
}

/* Called once with the headers, then for each piece of the body, then for the answer. */
static enum MHD_Result http_access(void *cls, struct MHD_Connection *connection, const char *url,
				   const char *method, const char *version, const char *data,
				   size_t *data_len, void **state)
{
	struct http_upload *upload = *state;
	bool refused;

	(void)version;
	if (!upload) {
		upload = *state = http_upload_new(cls, connection, method);
		if (!upload)
			return MHD_NO;
		http_admit(upload, url);
		refused = !upload->route && http_has_body(&upload->request);
		/* An answer now spares the client its body; the connection ends with it. */
		return refused ? http_send(connection, upload, url) : MHD_YES;
	}
	if (*data_len) {
		refused = !http_receive(upload, data, *data_len);
		*data_len = 0;
		return refused ? MHD_NO : MHD_YES;
	}
	if (upload->route) {
		upload->request.body = upload->body;
		upload->request.body_len = upload->len;
		upload->route->handler(upload->http->options->context, &upload->request,
				       &upload->reply);
	}
	return http_send(connection, upload, url);
}

static void http_completed(void *cls, struct MHD_Connection *connection, void **state,
			   enum MHD_RequestTerminationCode why)
{
	struct http_upload *upload = *state;

	(void)cls;
	(void)connection;
	(void)why;
	if (!upload)
		return;
	upload->http->bodies_bytes -= upload->capacity;
	text_fini(&upload->reply.body);
	free(upload->body);
	free(upload);
	*state = NULL;
}

/* Nothing is decoded by the library: http_path_fits() and http_query() do that. */
static size_t http_unescape(void *cls, struct MHD_Connection *connection, char *string)
{
	(void)cls;
	(void)connection;
	return strlen(string);
}

struct http *http_open(int listen_fd, const struct http_options *options)
{
	struct http *http = calloc(1, sizeof(*http));

	if (!http)
		return NULL;
	http->options = options;
	http->daemon = MHD_start_daemon(
	    MHD_USE_EPOLL, 0, NULL, NULL, http_access, http, MHD_OPTION_LISTEN_SOCKET, listen_fd,
	    MHD_OPTION_NOTIFY_COMPLETED, http_completed, NULL, MHD_OPTION_UNESCAPE_CALLBACK,
	    http_unescape, NULL, MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS_MAX,
	    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_TIMEOUT_S,
	    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
	    MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	if (!http->daemon) {
		free(http);
		errno = EINVAL;
		return NULL;
	}
	return http;
}

void http_close(struct http *http)
{
	MHD_stop_daemon(http->daemon);
	free(http);
}

int http_fd(const struct http *http)
{
	return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

int http_timeout_ms(struct http *http, int limit_ms)
{
	MHD_UNSIGNED_LONG_LONG timeout_ms;

	if (MHD_get_timeout(http->daemon, &timeout_ms) == MHD_NO || timeout_ms > (unsigned)limit_ms)
		return limit_ms;
	return (int)timeout_ms;
}

void http_turn(struct http *http)
{
	MHD_run(http->daemon);
}
