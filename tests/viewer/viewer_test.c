/* SPDX-License-Identifier: Apache-2.0 */
/* The real sconce-viewer: what it takes in, what it shows, what it refuses. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "profile/otlp.h"
#include "tests/viewer/harness.h"
#include "tests/viewer/samples.h"

#define PROTOBUF "Content-Type: application/x-protobuf\r\n"
#define GZIP	 "Content-Encoding: gzip\r\n"
#define KEY	 "-/systemd/web.service"
#define SLOT	 "/api/v1/slots/-%2Fsystemd%2Fweb.service"
#define MIB	 (1u << 20)

static struct harness viewer; /* with the defaults, for most tests */

static int start_viewer(void **state)
{
	struct config config;

	(void)state;
	config_defaults(&config, MODE_RUN);
	snprintf(config.runtime.host_name, sizeof(config.runtime.host_name), "box<1>");
	harness_start(&viewer, &config);
	return 0;
}

static int stop_viewer(void **state)
{
	(void)state;
	harness_stop(&viewer);
	return 0;
}

struct bytes {
	uint8_t *data;
	size_t len;
};

/* web.service: 30 samples leaf <- work <- main, 10 recursive; other.service: 60. */
static struct bytes request(uint64_t batch)
{
	struct otlp_encode_options options = {.batch = batch, .instance = {1}};
	struct profile *profile = profile_new(MIB);
	struct bytes bytes;

	samples_add(profile, "systemd.unit=web.service", "leaf;work;main", "", 30);
	samples_add(profile, "systemd.unit=web.service", "work;work;work;main", "no_row", 10);
	samples_add(profile, "systemd.unit=other.service", "secret;main", "", 60);
	assert_int_equal(otlp_encode(profile, &options, &bytes.data, &bytes.len), 0);
	profile_free(profile);
	return bytes;
}

static struct bytes gzipped(const void *data, size_t len)
{
	struct bytes out = {.len = len / 500 + 4096};
	z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)len};

	out.len = out.len < len + 4096 ? len + 4096 : out.len;
	out.data = malloc(out.len);
	assert_non_null(out.data);
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, MAX_WBITS + 16, 9, Z_DEFAULT_STRATEGY),
			 Z_OK);
	z.next_out = out.data;
	z.avail_out = (uInt)out.len;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	out.len = z.total_out;
	deflateEnd(&z);
	return out;
}

static void ask(int status, enum door door, const char *method, const char *path,
		const char *headers, const void *body, size_t len)
{
	struct reply reply = harness_ask(&viewer, door, method, path, headers, body, len);

	if (reply.status != status)
		fail_msg("%s %s: %d instead of %d\n%s", method, path, reply.status, status,
			 reply.text);
	reply_free(&reply);
}

static void get(const char *path, int status, const char *expected)
{
	struct reply reply = harness_ask(&viewer, DOOR_TCP, "GET", path, "", NULL, 0);

	if (reply.status != status || !strstr(reply.text, expected))
		fail_msg("%s: %d, no %s in\n%s", path, reply.status, expected, reply.text);
	reply_free(&reply);
}

static void post(struct bytes bytes, const char *headers, int status)
{
	ask(status, DOOR_UNIX, "POST", OTLP_PATH, headers, bytes.data, bytes.len);
}

static void test_intake_and_slots(void **state)
{
	struct bytes first = request(1), second = request(2),
		     packed = gzipped(second.data, second.len);
	struct reply reply;

	(void)state;
	get("/", 200, "Collecting, the next data arrives within 5 s.");
	get(SLOT "/functions", 404, "\"status\":\"not open\"");
	reply = harness_ask(&viewer, DOOR_UNIX, "POST", OTLP_PATH, PROTOBUF, first.data, first.len);
	assert_int_equal(reply.status, 200);
	assert_int_equal(reply.body_len, 2);
	assert_memory_equal(reply.body, "\x0a\x00", 2); /* partial_success, empty */
	reply_free(&reply);

	/* everything is seen, nothing is kept */
	get("/api/v1/workloads", 200, "{\"key\":\"-/systemd/other.service\",");
	get("/api/v1/workloads", 200, "\"cpuNs\":2000000000,\"samples\":40,");
	get("/api/v1/workloads", 200, "\"share\":0.6000,");
	get("/", 200, "href=\"/workload?key=-%2Fsystemd%2Fweb.service\">" KEY "</a>");
	get("/", 200, "0 / 24 slots · 0 KiB / 192 MiB · TTL 120 s");

	ask(200, DOOR_TCP, "PUT", SLOT, "", NULL, 0);
	get(SLOT "/functions", 200, "\"samples\":0,");
	post(packed, PROTOBUF GZIP, 200);
	get(SLOT "/functions", 200, "\"samples\":40,\"cpuNs\":2000000000,\"completeStacks\":30,");
	get(SLOT "/functions", 200,
	    "\"name\":\"leaf\",\"module\":\"/usr/bin/"
	    "example\",\"file\":\"\",\"kernel\":false,\"self\":30,\"total\":30}");
	get(SLOT "/functions", 200,
	    "\"name\":\"work\",\"module\":\"/usr/bin/"
	    "example\",\"file\":\"\",\"kernel\":false,\"self\":10,\"total\":40}");
	get(SLOT "/functions?sort=total&limit=1", 200, "\"functions\":[{\"name\":\"work\"");
	get(SLOT "/functions?sort=name&limit=1", 200,
	    "\"functionsTotal\":3,\"functions\":[{\"name\":\"leaf\"");
	reply = harness_ask(&viewer, DOOR_TCP, "GET", SLOT "/functions", "", NULL, 0);
	assert_null(strstr(reply.text, "secret")); /* of another workload */
	reply_free(&reply);

	/* again, in both encodings: known by its id */
	post(second, PROTOBUF, 200);
	post(packed, PROTOBUF GZIP, 200);
	get(SLOT "/functions", 200, "\"samples\":40,");
	assert_int_equal(harness_counter(&viewer, C_intake_requests), 4);
	assert_int_equal(harness_counter(&viewer, C_intake_samples), 200);
	assert_int_equal(harness_counter(&viewer, C_intake_duplicates), 4);
	assert_int_equal(harness_counter(&viewer, C_workloads), 2);
	assert_int_equal(harness_counter(&viewer, C_slots), 1);
	assert_true(harness_counter(&viewer, C_slot_bytes) > 0);
	assert_true(harness_counter(&viewer, C_intake_first_named_ns) > 0);

	ask(200, DOOR_TCP, "POST", SLOT "/clear", "", NULL, 0);
	get(SLOT "/functions", 200, "\"samples\":0,");
	ask(200, DOOR_TCP, "DELETE", SLOT, "", NULL, 0);
	ask(200, DOOR_TCP, "DELETE", SLOT, "", NULL, 0);
	get(SLOT "/functions", 409, "\"status\":\"closed\"");
	ask(409, DOOR_TCP, "POST", SLOT "/clear", "", NULL, 0);
	get("/middle/workload?key=-%2Fsystemd%2Fweb.service", 409, "was closed");
	assert_int_equal(harness_counter(&viewer, C_slots), 0);
	free(first.data);
	free(second.data);
	free(packed.data);
}

static void test_workload_page(void **state)
{
	struct bytes bytes = request(10);

	(void)state;
	get("/workload?key=-/systemd/web.service", 200,
	    "Collecting, the next data arrives within 5 s.");
	post(bytes, PROTOBUF, 200);
	get("/workload?key=-/systemd/web.service", 200, "<h1>" KEY "</h1>");
	get("/middle/workload?key=-/systemd/web.service&sort=name", 200,
	    "<span class=\"name\">leaf</span><span class=\"module\">example</span></td>"
	    "<td>30</td><td>75.00&nbsp;%</td><td>30</td><td>75.00&nbsp;%</td></tr>");
	get("/workload?key=-/systemd/web.service&sort=total", 200,
	    "data-refresh=\"/middle/workload?key=-%2Fsystemd%2Fweb.service&amp;sort=total\"");
	get("/workload?key=-/systemd/web.service", 200, "1 / 24 slots");
	get("/workload", 400, "which workload?");
	get("/workload?key=short", 400, "which workload?");
	get("/workload?key=%2", 400, "which workload?");
	ask(200, DOOR_TCP, "DELETE", SLOT, "", NULL, 0);
	free(bytes.data);
}

/* The 25th workload takes the place of the first; reading that one does not bring it back. */
static void test_eviction_is_told(void **state)
{
	uint64_t before = harness_counter(&viewer, C_slots_evicted);
	char path[64];

	(void)state;
	for (int i = 0; i < 25; i++) {
		snprintf(path, sizeof(path), "/api/v1/slots/a%%2FDeployment%%2Fw%d", i);
		ask(200, DOOR_TCP, "PUT", path, "", NULL, 0);
	}
	get("/api/v1/slots/a%2FDeployment%2Fw0/functions", 409,
	    "\"status\":\"evicted\",\"endedUnixSeconds\":");
	get("/api/v1/slots/a%2fdeployment%2fw0/functions", 409,
	    "\"evictedBy\":\"a/Deployment/w24\"");
	get("/middle/workload?key=a/deployment/w0", 409, "to make room for");
	get("/api/v1/slots", 200, "\"activeSlots\":24,\"maxSlots\":24,");
	get("/api/v1/slots", 200,
	    "\"slotMaxBytes\":8388608,\"maxTotalBytesBudget\":201326592,\"slotTtlSeconds\":120,");
	get("/api/v1/slots", 200, "\"ended\":[{\"key\":\"a/Deployment/w0\",\"status\":\"evicted\"");
	assert_int_equal(harness_counter(&viewer, C_slots_evicted) - before, 1);
	get("/workload?key=a/Deployment/w0", 200, "Collecting"); /* visiting does */
	for (int i = 0; i < 25; i++) {
		snprintf(path, sizeof(path), "/api/v1/slots/a%%2FDeployment%%2Fw%d", i);
		ask(200, DOOR_TCP, "DELETE", path, "", NULL, 0);
	}
}

static void check_absent(const char *path, const char *forbidden)
{
	struct reply reply = harness_ask(&viewer, DOOR_TCP, "GET", path, "", NULL, 0);

	if (reply.status != 200 || strstr(reply.body, forbidden))
		fail_msg("%s: %d, %s in\n%s", path, reply.status, forbidden, reply.text);
	reply_free(&reply);
}

static void test_hostile_names_are_escaped(void **state)
{
	struct otlp_encode_options options = {.batch = 20, .instance = {1}};
	struct profile *profile = profile_new(MIB);
	struct bytes bytes;

	(void)state;
	samples_add(profile, "process.executable.name=<img src=x onerror=alert(1)>",
		    "</script><script>\"f&g\";main", "", 5);
	assert_int_equal(otlp_encode(profile, &options, &bytes.data, &bytes.len), 0);
	profile_free(profile);
	get("/workload?key=-/process/%3Cimg%20src=x%20onerror=alert(1)%3E", 200, "Collecting");
	post(bytes, PROTOBUF, 200);
	free(bytes.data);
	get("/workload?key=-/process/%3Cimg%20src=x%20onerror=alert(1)%3E", 200,
	    "&lt;/script&gt;&lt;script&gt;&quot;f&amp;g&quot;</span>");
	check_absent("/workload?key=-/process/%3Cimg%20src=x%20onerror=alert(1)%3E", "<script>");
	check_absent("/workload?key=-/process/%3Cimg%20src=x%20onerror=alert(1)%3E", "<img");
	check_absent("/api/v1/slots/-%2Fprocess%2F%3Cimg%20src=x%20onerror=alert(1)%3E/functions",
		     "<");
	get("/", 200, "-/process/&lt;img src=x onerror");
	check_absent("/", "<img");
	get("/api/v1/workloads", 200, "-/process/\\u003cimg src=x onerror");
	check_absent("/api/v1/workloads", "<img");
}

static void test_bad_bodies(void **state)
{
	static uint8_t large[9 * MIB], zeros[40 * MIB];
	struct bytes bomb = gzipped(zeros, sizeof(zeros)), good = request(30), packed;
	struct bytes rubbish = {(uint8_t *)"not protobuf at all \xff\xff\xff", 22};
	uint64_t refused = harness_counter(&viewer, C_intake_refused);

	(void)state;
	packed = gzipped(good.data, good.len);
	post(rubbish, PROTOBUF, 400);
	post((struct bytes){good.data, good.len - 1}, PROTOBUF, 400);
	post(rubbish, PROTOBUF GZIP, 400);
	post((struct bytes){packed.data, packed.len - 9}, PROTOBUF GZIP, 400);
	post(good, "Content-Type: application/json\r\n", 415);
	post(good, "Content-Type: application/x-protobuffer\r\n", 415);
	post(good, "", 415);
	post(good, PROTOBUF "Content-Encoding: zstd\r\n", 415);
	post((struct bytes){large, sizeof(large)}, PROTOBUF, 413);
	post(bomb, PROTOBUF GZIP, 413);
	assert_int_equal(harness_counter(&viewer, C_intake_refused) - refused, 10);
	/* and goes on */
	post(good, "Content-Type: application/x-protobuf; v=1\r\nContent-Encoding: identity\r\n",
	     200);
	ask(405, DOOR_UNIX, "GET", OTLP_PATH, "", NULL, 0);
	free(bomb.data);
	free(good.data);
	free(packed.data);
}

/* Without a Content-Length the size is known only when it is there. */
static void test_chunked_too_large(void **state)
{
	int fd = harness_connect(&viewer, DOOR_UNIX);
	static const char head[] = "POST " OTLP_PATH " HTTP/1.1\r\nHost: x\r\n" PROTOBUF
				   "Transfer-Encoding: chunked\r\n\r\n";
	static char piece[MIB + 10];
	char answer[64] = "";
	int n = snprintf(piece, 16, "%x\r\n", MIB), sent = 0;
	ssize_t got;

	(void)state;
	memcpy(piece + n + MIB, "\r\n", 2);
	send(fd, head, sizeof(head) - 1, MSG_NOSIGNAL);
	for (int i = 0; i < 9; i++)
		sent += send(fd, piece, (size_t)n + MIB + 2, MSG_NOSIGNAL) > 0;
	assert_int_equal(sent, 9);
	send(fd, "0\r\n\r\n", 5, MSG_NOSIGNAL);
	got = recv(fd, answer, sizeof(answer) - 1, 0);
	assert_true(got > 12);
	assert_memory_equal(answer, "HTTP/1.1 413", 12);
	close(fd);
	/* one that never ends is cut off */
	fd = harness_connect(&viewer, DOOR_UNIX);
	send(fd, head, sizeof(head) - 1, MSG_NOSIGNAL);
	for (sent = 0; sent < 40 && send(fd, piece, (size_t)n + MIB + 2, MSG_NOSIGNAL) > 0; sent++)
		;
	assert_in_range(sent, 16, 30);
	close(fd);
	get("/healthz", 200, "ok");
}

static void test_who_may_ask(void **state)
{
	static const struct {
		const char *method, *path, *headers;
		int status;
	} rows[] = {
	    {"GET", "/", "Host: evil.example\r\n", 403},
	    {"GET", "/", "Host: evil.example:4041\r\n", 403},
	    {"GET", "/metrics", "Host: rebound.example\r\n", 403},
	    {"GET", "/", "Host: 127.0.0.1:4041\r\n", 200},
	    {"GET", "/", "Host: [::1]\r\n", 200},
	    {"GET", "/nothing", "", 404},
	    {"GET", "/api/v1/slots/a%2Fb%2Fc/nothing", "", 404},
	    {"GET", "/../etc/passwd", "", 404},
	    {"PUT", "/", "", 405},
	    {"DELETE", "/api/v1/workloads", "", 405},
	    {"HEAD", "/", "", 200},
	    {"PUT", "/api/v1/slots/a", "", 400},
	    {"PUT", "/api/v1/slots/a%2F%2Fc", "", 400},
	    {"PUT", "/api/v1/slots/a%00%2Fb%2Fc", "", 400},
	    /* a page of another origin */
	    {"PUT", SLOT, "Origin: http://evil.example\r\n", 403},
	    {"PUT", SLOT, "Origin: null\r\n", 403},
	    {"PUT", SLOT, "Host: localhost:1\r\nOrigin: http://localhost:2\r\n", 403},
	    {"PUT", SLOT, "Host: localhost:1\r\nOrigin: http://localhost:1\r\n", 200},
	    {"POST", SLOT "/clear", "Sec-Fetch-Site: cross-site\r\n", 403},
	    {"POST", SLOT "/clear", "Sec-Fetch-Site: same-origin\r\n", 200},
	    {"DELETE", SLOT, "Origin: http://evil.example\r\n", 403},
	    {"POST", OTLP_PATH, PROTOBUF "Origin: http://evil.example\r\n", 403},
	    {"GET", "/workload?key=a/b/c",
	     "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: image\r\n", 403},
	    {"GET", "/workload?key=a/b/c",
	     "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: document\r\n", 200},
	    {"GET", "/workload?key=a/b/c", "Sec-Fetch-Site: none\r\n", 200},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ask(rows[i].status, DOOR_TCP, rows[i].method, rows[i].path, rows[i].headers, NULL,
		    0);
	/* any name does on the unix socket */
	ask(200, DOOR_UNIX, "GET", "/healthz", "Host: whatever\r\n", NULL, 0);
}

static void test_headers_of_answers(void **state)
{
	static const char *const wanted[] = {
	    "Content-Security-Policy: default-src 'none'; style-src 'self'; script-src 'self';",
	    "X-Content-Type-Options: nosniff\r\n", "Referrer-Policy: no-referrer\r\n",
	    "Cache-Control: no-store\r\n"};
	struct reply reply = harness_ask(&viewer, DOOR_TCP, "GET", "/page.js", "", NULL, 0);
	char etag[128], *start, *end;

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		get("/", 200, wanted[i]);
		get("/nothing", 404, wanted[i]);
	}
	get("/", 200, "box&lt;1&gt;");
	start = strstr(reply.text, "ETag: ");
	assert_non_null(start);
	end = strstr(start, "\r\n");
	snprintf(etag, sizeof(etag), "If-None-Match: %.*s\r\n", (int)(end - start - 6), start + 6);
	reply_free(&reply);
	reply = harness_ask(&viewer, DOOR_TCP, "GET", "/page.js", etag, NULL, 0);
	assert_int_equal(reply.status, 304);
	assert_int_equal(reply.body_len, 0);
	reply_free(&reply);
	get("/page.css", 200, "prefers-color-scheme");
}

static void test_metrics_and_quality(void **state)
{
	(void)state;
	harness_count(&viewer, ROLE_SAMPLER, C_taken, 1000);
	harness_count(&viewer, ROLE_SAMPLER, C_lost_bpf_ring_full, 7);
	harness_count(&viewer, SLOT_WORKER(0), C_lost_symbolizer_queue_full, 2);
	harness_count(&viewer, SLOT_WORKER(1), C_lost_symbolizer_queue_full, 3);
	harness_count(&viewer, SLOT_WORKER(0), C_frames_named, 90);
	harness_count(&viewer, SLOT_WORKER(1), C_frames_unknown, 10);
	harness_count(&viewer, SLOT_WORKER(1), C_stop_complete, 3);
	harness_count(&viewer, SLOT_WORKER(1), C_stop_no_row, 1);
	/* nobody can count for another */
	harness_count(&viewer, ROLE_BROKER, C_taken, 5000);
	get("/metrics", 200, "# TYPE sconce_taken_total counter\nsconce_taken_total 1000\n");
	get("/metrics", 200, "sconce_lost_symbolizer_queue_full_total{worker=\"1\"} 3\n");
	get("/metrics", 200, "# TYPE sconce_slots gauge\nsconce_slots ");
	get("/metrics", 200, "# HELP sconce_intake_requests_total OTLP requests accepted\n");
	get("/", 200,
	    "This machine: 1000 samples taken, <span class=\"bad\">12 lost (kernel 7, symbolizer "
	    "5)</span>");
	get("/", 200, " · 90.0&nbsp;% of frames have a name · 75.0&nbsp;% of stacks are complete");
}

/* A file that ended or held up a worker has a name on every page; whoever chose it. */
static void test_quarantine(void **state)
{
	struct reply reply;

	(void)state;
	harness_blame(&viewer, SLOT_WORKER(1), "/srv/<b>evil.so");
	get("/", 200,
	    " · <span class=\"bad\">not looked into: /srv/?b?evil.so (8:1, inode 17)</span>");
	harness_blame(&viewer, SLOT_WORKER(0), "libother.so");
	get("/workload?key=" KEY, 200,
	    "not looked into: libother.so (8:1, inode 17), /srv/?b?evil.so (8:1, inode 17)</span>");
	harness_blame(&viewer, SLOT_WORKER(0), NULL);
	harness_blame(&viewer, SLOT_WORKER(1), NULL);
	reply = harness_ask(&viewer, DOOR_TCP, "GET", "/", "", NULL, 0);
	assert_null(strstr(reply.text, "not looked into"));
	reply_free(&reply);
}

/* A runtime of which nothing is understood has its line. */
static void test_unread(void **state)
{
	struct reply reply;

	(void)state;
	harness_unread(&viewer, SLOT_WORKER(1), "3.15");
	get("/", 200,
	    " · <span class=\"bad\">python 3.15: layout unknown (/opt/?i?python)</span>");
	harness_unread(&viewer, SLOT_WORKER(1), "");
	get("/", 200, " · <span class=\"bad\">python: layout unknown (/opt/?i?python)</span>");
	harness_unread(&viewer, SLOT_WORKER(1), NULL);
	reply = harness_ask(&viewer, DOOR_TCP, "GET", "/", "", NULL, 0);
	assert_null(strstr(reply.text, "layout unknown"));
	reply_free(&reply);
}

/* 40 silent connections: more than are served. Both doors go on, one by one or when they time out.
 */
static void test_forty_connections(void **state)
{
	struct bytes bytes = request(40);
	int fds[40];

	(void)state;
	for (int i = 0; i < 40; i++) {
		fds[i] = harness_connect(&viewer, DOOR_TCP);
		send(fds[i], "GET / HT", 8, MSG_NOSIGNAL);
	}
	post(bytes, PROTOBUF, 200); /* the intake is another door */
	for (int i = 0; i < 20; i++)
		close(fds[i]);
	get("/healthz", 200, "ok");
	get("/", 200, KEY);
	for (int i = 20; i < 40; i++)
		close(fds[i]);
	get("/healthz", 200, "ok");
	free(bytes.data);
}

static void test_drain(void **state)
{
	struct message_empty none = {0};
	struct timespec tick = {0, 10000000};
	struct message message;
	int err = -1;

	(void)state;
	assert_int_equal(channel_send(&viewer.channel, MESSAGE_DRAIN, &none, NULL, 0), 0);
	for (int i = 0; i < 300 && err; i++) {
		err = channel_recv(&viewer.channel, &message, NULL, NULL);
		nanosleep(&tick, NULL);
	}
	assert_int_equal(err, 0);
	assert_int_equal(message.type, MESSAGE_DRAINED);
	get("/healthz", 200, "ok");
}

/* However it ended: the next one serves the same sockets, and counts on. Slots are empty again. */
static void test_restart(void **state)
{
	static const int signals[] = {SIGTERM, SIGKILL};
	struct bytes bytes = request(60);

	(void)state;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		uint64_t before;

		ask(200, DOOR_TCP, "PUT", SLOT, "", NULL, 0);
		before = harness_counter(&viewer, C_intake_requests);
		assert_true(harness_counter(&viewer, C_slots) > 0);
		harness_restart(&viewer, signals[i]);
		get(SLOT "/functions", 404, "\"status\":\"not open\"");
		get("/", 200, "Collecting");
		assert_int_equal(harness_counter(&viewer, C_slots), 0);
		post(bytes, PROTOBUF, 200);
		get("/", 200, KEY);
		assert_int_equal(harness_counter(&viewer, C_intake_requests) - before, 1);
	}
	free(bytes.data);
}

static uint64_t turns(void)
{
	const struct ledger *ledger = ledger_map(viewer.ledgers[ROLE_VIEWER].ro);
	uint64_t n;

	assert_non_null(ledger);
	n = ledger->turns;
	munmap((void *)(uintptr_t)ledger, LEDGER_BYTES);
	return n;
}

/* Idle, it turns once a second, and not much more often. */
static void test_idle_turns(void **state)
{
	struct timespec wait = {3, 200000000};
	uint64_t before = turns();

	(void)state;
	nanosleep(&wait, NULL);
	assert_in_range(turns() - before, 3, 20);
}

static void test_token(void **state)
{
	static const struct {
		enum door door;
		const char *headers;
		int status;
	} rows[] = {
	    {DOOR_TCP, "", 401},
	    {DOOR_TCP, "Authorization: Bearer wrong0\r\n", 401},
	    {DOOR_TCP, "Authorization: Bearer s3cre\r\n", 401},
	    {DOOR_TCP, "Authorization: Bearer s3cret\r\n", 200},
	    /* base64 of "me:s3cret", "me:wrong", and none */
	    {DOOR_TCP, "Authorization: Basic bWU6czNjcmV0\r\n", 200},
	    {DOOR_TCP, "Authorization: Basic bWU6d3Jvbmc=\r\n", 401},
	    {DOOR_TCP, "Authorization: Basic ???\r\n", 401},
	    {DOOR_UNIX, "", 200},
	};
	static const char *const paths[] = {"/", "/healthz", "/metrics", "/api/v1/slots",
					    "/page.js"};
	struct config config;

	(void)state;
	config_defaults(&config, MODE_RUN);
	strcpy(config.viewer.token, "s3cret");
	harness_start(&viewer, &config);
	for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			ask(rows[i].status, rows[i].door, "GET", paths[p], rows[i].headers, NULL,
			    0);
	ask(401, DOOR_TCP, "POST", OTLP_PATH, PROTOBUF, "x", 1);
	harness_stop(&viewer);
}

/* A slot that nobody looks at ends, whatever arrives for it. */
static void test_expiry(void **state)
{
	struct timespec wait = {0, 300000000};
	struct bytes bytes = request(50);
	struct config config;
	uint64_t expired = 0;

	(void)state;
	config_defaults(&config, MODE_RUN);
	config.viewer.slot_ttl_s = 1;
	config.viewer.cleanup_interval_s = 1;
	harness_start(&viewer, &config);
	ask(200, DOOR_TCP, "PUT", SLOT, "", NULL, 0);
	for (int i = 0; i < 30 && !expired; i++) {
		post(bytes, PROTOBUF, 200);
		nanosleep(&wait, NULL);
		expired = harness_counter(&viewer, C_slots_expired);
	}
	assert_int_equal(expired, 1);
	get(SLOT "/functions", 409, "\"status\":\"expired\"");
	get("/middle/workload?key=-/systemd/web.service", 409, "because nobody looked at it");
	harness_stop(&viewer);
	free(bytes.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_intake_and_slots),
	    cmocka_unit_test(test_workload_page),
	    cmocka_unit_test(test_eviction_is_told),
	    cmocka_unit_test(test_hostile_names_are_escaped),
	    cmocka_unit_test(test_bad_bodies),
	    cmocka_unit_test(test_chunked_too_large),
	    cmocka_unit_test(test_who_may_ask),
	    cmocka_unit_test(test_headers_of_answers),
	    cmocka_unit_test(test_metrics_and_quality),
	    cmocka_unit_test(test_quarantine),
	    cmocka_unit_test(test_unread),
	    cmocka_unit_test(test_forty_connections),
	    cmocka_unit_test(test_restart),
	    cmocka_unit_test(test_drain),
	    cmocka_unit_test(test_idle_turns),
	};
	const struct CMUnitTest others[] = {
	    cmocka_unit_test(test_token),
	    cmocka_unit_test(test_expiry),
	};

	return cmocka_run_group_tests(tests, start_viewer, stop_viewer) +
	       cmocka_run_group_tests(others, NULL, NULL);
}
