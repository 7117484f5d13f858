/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sconce-viewer: an OTLP receiver that shows what it receives. It listens on two sockets that it
 * was handed (TCP for people, unix for the exporter), holds no right, and forgets everything when
 * it is restarted.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/sandbox.h"
#include "viewer/api.h"
#include "viewer/assets.h"
#include "viewer/http.h"
#include "viewer/pages.h"
#include "viewer/viewer.h"

#define TURN_MS	 1000 /* the supervisor wants to see one each second */
#define NS_PER_S 1000000000ull

static const struct http_route routes[] = {
    {"GET", "/", pages_workloads, 0},
    {"GET", "/workload", pages_workload, HTTP_OPENS},
    {"GET", "/middle/workloads", pages_workloads_middle, 0},
    {"GET", "/middle/workload", pages_workload_middle, 0},
    {"GET", "/page.css", assets_css, 0},
    {"GET", "/page.js", assets_js, 0},
    {"GET", "/api/v1/workloads", api_workloads, 0},
    {"GET", "/api/v1/slots", api_slots, 0},
    {"PUT", "/api/v1/slots/{key}", api_slot_open, HTTP_CHANGES},
    {"DELETE", "/api/v1/slots/{key}", api_slot_close, HTTP_CHANGES},
    {"POST", "/api/v1/slots/{key}/clear", api_slot_clear, HTTP_CHANGES},
    {"GET", "/api/v1/slots/{key}/functions", api_slot_functions, 0},
    {"GET", "/healthz", api_health, 0},
    {"GET", "/metrics", ledgers_metrics, 0},
    {"POST", OTLP_PATH, intake_post, HTTP_CHANGES},
    {NULL, NULL, NULL, 0},
};

static void viewer_answered(void *context, const char *path, unsigned status)
{
	struct ledger_writer *ledger = &((struct viewer *)context)->child.ledger;

	if (strcmp(path, OTLP_PATH))
		ledger_add(ledger, C_http_requests, 1);
	else
		ledger_add(ledger, status == 200 ? C_intake_requests : C_intake_refused, 1);
}

static void viewer_init(struct viewer *viewer)
{
	const struct config_viewer *config = &viewer->child.config->viewer;
	const struct slots_limits limits = {
	    .max_slots = config->max_slots,
	    .ttl_ns = config->slot_ttl_s * NS_PER_S,
	    .max_bytes = config->slot_max_bytes,
	};
	int err;

	viewer->started_ns = viewer->swept_ns = child_now_ns();
	slots_init(&viewer->slots, &limits);
	viewer->workloads = workloads_new(viewer->started_ns);
	err = viewer->workloads ? intake_init(&viewer->intake) : -ENOMEM;
	if (err)
		fatal("cannot begin: %s", strerror(-err));
	ledgers_open(&viewer->ledgers, &viewer->child.ledger);
}

static struct http *viewer_listen(int listen_fd, const struct http_options *options, int epoll_fd)
{
	struct http *http = http_open(listen_fd, options);
	struct epoll_event event = {.events = EPOLLIN};

	if (!http)
		fatal("cannot serve the socket at fd %d: %m", listen_fd);
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, http_fd(http), &event))
		fatal("cannot watch the socket at fd %d: %m", listen_fd);
	return http;
}

static int viewer_epoll(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, FD_SUPERVISOR, &event))
		fatal("cannot watch the supervisor: %m");
	return fd;
}

static void viewer_sweep(struct viewer *viewer)
{
	uint64_t now_ns = child_now_ns();

	if (now_ns < viewer->swept_ns + viewer->child.config->viewer.cleanup_interval_s * NS_PER_S)
		return;
	viewer->swept_ns = now_ns;
	slots_sweep(&viewer->slots, now_ns);
}

/* Commit when this turn changed something; nobody is told of a turn that did not. */
static void viewer_commit(struct viewer *viewer)
{
	struct ledger_writer *ledger = &viewer->child.ledger;
	static uint64_t committed[COUNTER_COUNT];

	ledger_set(ledger, C_workloads, workloads_n(viewer->workloads));
	ledger_set(ledger, C_slots, viewer->slots.n);
	ledger_set(ledger, C_slot_bytes, slots_bytes(&viewer->slots));
	ledger_add(ledger, C_slots_evicted, viewer->slots.evicted - viewer->evicted_counted);
	ledger_add(ledger, C_slots_expired, viewer->slots.expired - viewer->expired_counted);
	viewer->evicted_counted = viewer->slots.evicted;
	viewer->expired_counted = viewer->slots.expired;
	if (!memcmp(committed, ledger->now.counter, sizeof(committed)))
		return;
	memcpy(committed, ledger->now.counter, sizeof(committed));
	ledger_commit(ledger);
}

static void viewer_run(struct viewer *viewer, struct http *page, struct http *intake, int epoll_fd)
{
	struct epoll_event events[4];
	int timeout_ms;

	while (child_continue(&viewer->child)) {
		/* All that arrived is shown: there is nothing to finish. */
		if (viewer->child.draining)
			child_drained(&viewer->child);
		timeout_ms = http_timeout_ms(intake, http_timeout_ms(page, TURN_MS));
		epoll_wait(epoll_fd, events, 4, timeout_ms);
		http_turn(page);
		http_turn(intake);
		viewer_sweep(viewer);
		viewer_commit(viewer);
	}
}

int main(int argc, char **argv)
{
	static struct viewer viewer;
	const struct config *config;
	struct http_options page = {
	    .routes = routes, .context = &viewer, .answered = viewer_answered};
	struct http_options intake = page;
	struct http *page_http, *intake_http;
	int epoll_fd;

	child_start(&viewer.child, ROLE_VIEWER, argc, argv);
	config = viewer.child.config;
	viewer_init(&viewer);
	page.listen = config->viewer.listen;
	page.host_name = config->runtime.host_name;
	page.token = config->viewer.token;
	epoll_fd = viewer_epoll();
	page_http = viewer_listen(FD_VIEWER_HTTP, &page, epoll_fd);
	intake_http = viewer_listen(FD_VIEWER_INTAKE, &intake, epoll_fd);
	tzset(); /* opens /etc/localtime, which is out of reach below */

	child_ready(&viewer.child, sandbox_enter(ROLE_VIEWER, NULL));
	viewer_run(&viewer, page_http, intake_http, epoll_fd);

	http_close(page_http);
	http_close(intake_http);
	intake_fini(&viewer.intake);
	slots_fini(&viewer.slots);
	workloads_free(viewer.workloads);
	close(epoll_fd);
	return 0;
}
