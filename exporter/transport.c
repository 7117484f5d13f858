/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/transport.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/gzip.h"
#include "profile/otlp.h"
#include "supervisor/child.h"

#define MS			     1000000ull
#define TRANSPORT_VIEWER_TIMEOUT_MS  5000
#define TRANSPORT_CONNECT_TIMEOUT_MS 5000
#define TRANSPORT_RETRY_AFTER_MAX_S  3600
#define TRANSPORT_LOG_NS	     (30000 * MS)

static const char *const link_names[TRANSPORT_LINKS] = {
    [DESTINATION_VIEWER] = "viewer",
    [DESTINATION_REMOTE] = "remote endpoint",
};

/* ---- set-up ---- */

static size_t transport_on_data(char *data, size_t size, size_t n, void *arg)
{
	struct transport_link *link = arg;
	size_t bytes = size * n, need = link->response_bytes + bytes;
	uint8_t *bigger;

	/* A short count ends the transfer: a longer answer is nobody's answer. */
	if (need > TRANSPORT_RESPONSE_BYTES_MAX)
		return 0;
	if (need > link->response_cap) {
		bigger = realloc(link->response, need * 2);
		if (!bigger)
			return 0;
		link->response = bigger;
		link->response_cap = need * 2;
	}
	memcpy(link->response + link->response_bytes, data, bytes);
	link->response_bytes = need;
	return bytes;
}

static int transport_header(struct transport_link *link, const char *line)
{
	struct curl_slist *headers = curl_slist_append(link->headers, line);

	if (!headers)
		return -ENOMEM;
	link->headers = headers;
	return 0;
}

/* k=v,k2=v2: values are percent-encoded there, as in W3C baggage. */
static int transport_user_headers(struct transport_link *link, const char *list)
{
	char line[CONFIG_TEXT_BYTES + 4], *value;
	int err = 0;

	while (*list && !err) {
		size_t len = strcspn(list, ","), name = strcspn(list, "=,");

		if (name && name < len) {
			value = curl_easy_unescape(link->easy, list + name + 1,
						   (int)(len - name - 1), NULL);
			if (!value)
				return -ENOMEM;
			/* A line break would smuggle in a header of its own. */
			value[strcspn(value, "\r\n")] = '\0';
			while (*list == ' ' && name)
				list++, len--, name--;
			snprintf(line, sizeof(line), "%.*s: %s", (int)name, list, value);
			curl_free(value);
			err = transport_header(link, line);
		}
		list += len + (list[len] == ',');
	}
	return err;
}

static int transport_open_link(struct transport_link *link, struct spool *spool, const char *url)
{
	int err;

	link->spool = spool;
	link->easy = curl_easy_init();
	if (!link->easy)
		return -ENOMEM;
	curl_easy_setopt(link->easy, CURLOPT_URL, url);
	curl_easy_setopt(link->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(link->easy, CURLOPT_POST, 1L);
	curl_easy_setopt(link->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(link->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(link->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)TRANSPORT_CONNECT_TIMEOUT_MS);
	curl_easy_setopt(link->easy, CURLOPT_USERAGENT,
			 "sconce/" SCONCE_VERSION " OTel-OTLP-Exporter-C/" SCONCE_VERSION);
	curl_easy_setopt(link->easy, CURLOPT_WRITEFUNCTION, transport_on_data);
	curl_easy_setopt(link->easy, CURLOPT_WRITEDATA, link);
	curl_easy_setopt(link->easy, CURLOPT_PRIVATE, link);
	err = transport_header(link, "Content-Type: application/x-protobuf");
	/* Without "100 Continue": it would cost a round trip. */
	return err ? err : transport_header(link, "Expect:");
}

static int transport_open_viewer(struct transport_link *link, const struct config *config,
				 struct spool *spool)
{
	char path[CONFIG_PATH_BYTES + 16];
	int err = transport_open_link(link, spool, "http://localhost" OTLP_PATH);

	if (err)
		return err;
	snprintf(path, sizeof(path), "%s/viewer.sock", config->run_dir);
	curl_easy_setopt(link->easy, CURLOPT_UNIX_SOCKET_PATH, path);
	curl_easy_setopt(link->easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(link->easy, CURLOPT_TIMEOUT_MS, (long)TRANSPORT_VIEWER_TIMEOUT_MS);
	link->backoff_min_ms = 100;
	link->backoff_max_ms = 2000;
	curl_easy_setopt(link->easy, CURLOPT_HTTPHEADER, link->headers);
	return 0;
}

static int transport_open_remote(struct transport_link *link, const struct config *config,
				 struct spool *spool)
{
	const struct config_remote *remote = &config->remote;
	int err = transport_open_link(link, spool, remote->url);

	if (!err)
		err = transport_user_headers(link, remote->headers);
	if (!err && remote->gzip)
		err = transport_header(link, "Content-Encoding: gzip");
	if (err)
		return err;
	link->gzip = remote->gzip;
	link->backoff_min_ms = 1000;
	link->backoff_max_ms = 30000;
	curl_easy_setopt(link->easy, CURLOPT_TIMEOUT_MS, (long)remote->timeout_ms);
	if (*remote->certificate)
		curl_easy_setopt(link->easy, CURLOPT_CAINFO, remote->certificate);
	if (*remote->client_certificate)
		curl_easy_setopt(link->easy, CURLOPT_SSLCERT, remote->client_certificate);
	if (*remote->client_key)
		curl_easy_setopt(link->easy, CURLOPT_SSLKEY, remote->client_key);
	curl_easy_setopt(link->easy, CURLOPT_HTTPHEADER, link->headers);
	return 0;
}

int transport_open(struct transport *transport, const struct config *config,
		   struct spool spools[DESTINATION_COUNT])
{
	int err = 0;

	memset(transport, 0, sizeof(*transport));
	/* Only jitter depends on it. */
	transport->random = (uint32_t)child_now_ns() | 1;
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return -ENOMEM;
	transport->multi = curl_multi_init();
	if (!transport->multi)
		return -ENOMEM;
	if (spools[DESTINATION_VIEWER].capacity)
		err = transport_open_viewer(&transport->links[DESTINATION_VIEWER], config,
					    &spools[DESTINATION_VIEWER]);
	if (!err && spools[DESTINATION_REMOTE].capacity)
		err = transport_open_remote(&transport->links[DESTINATION_REMOTE], config,
					    &spools[DESTINATION_REMOTE]);
	return err;
}

/* ---- a request ---- */

static void transport_release_body(struct transport_link *link)
{
	free(link->compressed);
	link->compressed = NULL;
	link->body = NULL;
	link->response_bytes = 0;
}

static void transport_begin(struct transport *transport, struct transport_link *link)
{
	const struct spool_entry *entry = spool_first(link->spool);

	link->body = entry->request;
	link->body_bytes = entry->len_bytes;
	if (link->gzip) {
		if (gzip_pack(entry->request, entry->len_bytes, &link->compressed,
			      &link->body_bytes)) {
			link->not_before_ns = child_now_ns() + link->backoff_max_ms * MS;
			return;
		}
		link->body = link->compressed;
	}
	curl_easy_setopt(link->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)link->body_bytes);
	curl_easy_setopt(link->easy, CURLOPT_POSTFIELDS, (const char *)link->body);
	spool_begin(link->spool);
	link->in_flight = true;
	curl_multi_add_handle(transport->multi, link->easy);
}

/* min, 2 min, 4 min ... max, and of that a random part between a half and all. */
static uint64_t transport_backoff_ms(struct transport *transport, const struct transport_link *link)
{
	uint32_t doublings = link->failures < 20 ? link->failures : 20;
	uint64_t ms = link->backoff_min_ms << (doublings ? doublings - 1 : 0);

	if (ms > link->backoff_max_ms)
		ms = link->backoff_max_ms;
	transport->random ^= transport->random << 13;
	transport->random ^= transport->random >> 17;
	transport->random ^= transport->random << 5;
	return ms / 2 + transport->random % (ms / 2 + 1);
}

/* One line per destination and half a minute: a dead receiver is not news every time. */
__attribute__((format(printf, 2, 3))) static void transport_complain(struct transport_link *link,
								     const char *format, ...)
{
	uint64_t now = child_now_ns();
	char text[320];
	va_list args;

	if (link->logged_ns && now - link->logged_ns < TRANSPORT_LOG_NS)
		return;
	link->logged_ns = now;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_warn("%s", text);
}

static void transport_retry_later(struct transport *transport, struct transport_link *link,
				  enum spool_end end, curl_off_t retry_after_s)
{
	uint64_t ms;

	link->failures++;
	ms = transport_backoff_ms(transport, link);
	if (retry_after_s > TRANSPORT_RETRY_AFTER_MAX_S)
		retry_after_s = TRANSPORT_RETRY_AFTER_MAX_S;
	if (retry_after_s > 0)
		ms = (uint64_t)retry_after_s * 1000;
	link->not_before_ns = child_now_ns() + ms * MS;
	spool_end(link->spool, end, 0);
}

/* Text of an error body as one printable line; what it really is, differs from server to server. */
static void transport_body_text(const struct transport_link *link, char *text, size_t size)
{
	size_t n = link->response_bytes < size - 1 ? link->response_bytes : size - 1;

	for (size_t i = 0; i < n; i++)
		text[i] = link->response[i] < ' ' || link->response[i] > '~'
			      ? ' '
			      : (char)link->response[i];
	text[n] = '\0';
}

static void transport_accepted(struct transport_link *link)
{
	int64_t rejected;
	char text[200];

	/* An empty body, and one that is no protobuf, say nothing against 200. */
	if (otlp_decode_response(link->response ? (const void *)link->response : "",
				 link->response_bytes, &rejected, text, sizeof(text)))
		rejected = 0;
	if (rejected > 0 || *text)
		transport_complain(link, "%s: %lld profiles refused: %s",
				   link_names[link->spool->destination], (long long)rejected, text);
	link->failures = 0;
	link->not_before_ns = 0;
	spool_end(link->spool, SPOOL_ACKED, rejected > 0 ? (uint64_t)rejected : 0);
}

static bool transport_retryable(long status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

static void transport_answered(struct transport *transport, struct transport_link *link)
{
	curl_off_t retry_after = 0;
	long status = 0;
	char text[200];

	curl_easy_getinfo(link->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200 && status < 300) {
		transport_accepted(link);
		return;
	}
	transport_body_text(link, text, sizeof(text));
	transport_complain(link, "%s answers %ld: %s", link_names[link->spool->destination], status,
			   text);
	if (transport_retryable(status)) {
		curl_easy_getinfo(link->easy, CURLINFO_RETRY_AFTER, &retry_after);
		transport_retry_later(transport, link, SPOOL_RETRY, retry_after);
		return;
	}
	link->failures = 0;
	spool_end(link->spool, SPOOL_REJECTED, 0);
}

/* No answer. Only a request that went out whole can have been taken. */
static void transport_broken(struct transport *transport, struct transport_link *link,
			     CURLcode code)
{
	curl_off_t sent = 0;

	curl_easy_getinfo(link->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
	transport_complain(link, "%s: %s; samples wait", link_names[link->spool->destination],
			   curl_easy_strerror(code));
	if (code == CURLE_WRITE_ERROR) {
		/* The answer was too long. It is not to be asked for again, and says nothing. */
		spool_end(link->spool, SPOOL_UNCLEAR, 0);
		spool_end(link->spool, SPOOL_REJECTED, 0);
		return;
	}
	transport_retry_later(
	    transport, link,
	    sent >= 0 && (size_t)sent < link->body_bytes ? SPOOL_RETRY : SPOOL_UNCLEAR, 0);
}

static void transport_finish(struct transport *transport, struct transport_link *link,
			     CURLcode code)
{
	curl_multi_remove_handle(transport->multi, link->easy);
	link->in_flight = false;
	if (code == CURLE_OK)
		transport_answered(transport, link);
	else
		transport_broken(transport, link, code);
	transport_release_body(link);
}

static void transport_start_all(struct transport *transport)
{
	uint64_t now = child_now_ns();

	for (int i = 0; i < TRANSPORT_LINKS; i++) {
		struct transport_link *link = &transport->links[i];

		if (link->spool && !link->in_flight && now >= link->not_before_ns &&
		    spool_first(link->spool))
			transport_begin(transport, link);
	}
}

void transport_step(struct transport *transport, int timeout_ms)
{
	struct transport_link *link;
	CURLMsg *message;
	int running, left;

	transport_start_all(transport);
	curl_multi_perform(transport->multi, &running);
	while ((message = curl_multi_info_read(transport->multi, &left))) {
		CURLcode code = message->data.result;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&link);
		transport_finish(transport, link, code);
	}
	curl_multi_poll(transport->multi, NULL, 0, timeout_ms, NULL);
}

bool transport_idle(const struct transport *transport)
{
	for (int i = 0; i < TRANSPORT_LINKS; i++)
		if (transport->links[i].spool &&
		    (transport->links[i].in_flight || spool_first(transport->links[i].spool)))
			return false;
	return true;
}

void transport_close(struct transport *transport)
{
	for (int i = 0; i < TRANSPORT_LINKS; i++) {
		struct transport_link *link = &transport->links[i];

		if (link->in_flight) {
			curl_off_t sent = 0;

			curl_easy_getinfo(link->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
			curl_multi_remove_handle(transport->multi, link->easy);
			spool_end(link->spool,
				  sent >= 0 && (size_t)sent < link->body_bytes ? SPOOL_RETRY
									       : SPOOL_UNCLEAR,
				  0);
		}
		transport_release_body(link);
		free(link->response);
		curl_slist_free_all(link->headers);
		if (link->easy)
			curl_easy_cleanup(link->easy);
	}
	if (transport->multi)
		curl_multi_cleanup(transport->multi);
	memset(transport, 0, sizeof(*transport));
}
