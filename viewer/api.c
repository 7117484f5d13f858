/* SPDX-License-Identifier: Apache-2.0 */
#include "viewer/api.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FUNCTIONS_DEFAULT 1000
#define FUNCTIONS_MAX	  10000
#define REPLY_SOFT_BYTES  (HTTP_REPLY_BYTES - (64u << 10)) /* no further row is begun */
#define NS_PER_S	  1000000000ull

double api_unix_s(uint64_t boot_ns)
{
	struct timespec now;
	double age_s = ((double)child_now_ns() - (double)boot_ns) / 1e9;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9 - age_s;
}

enum functions_order api_order(const struct http_request *request)
{
	char sort[16];

	if (!http_query(request, "sort", sort, sizeof(sort)))
		return FUNCTIONS_BY_SELF;
	if (!strcmp(sort, "total"))
		return FUNCTIONS_BY_TOTAL;
	return strcmp(sort, "name") ? FUNCTIONS_BY_SELF : FUNCTIONS_BY_NAME;
}

bool api_key_valid(const char *key)
{
	const char *kind = strchr(key, '/');
	const char *name = kind ? strchr(kind + 1, '/') : NULL;

	return name && kind > key && name > kind + 1 && name[1];
}

static void json_u64(struct text *text, const char *name, uint64_t value)
{
	text_printf(text, "\"%s\":%llu", name, (unsigned long long)value);
}

static void json_comma(struct text *text, size_t i)
{
	if (i)
		text_str(text, ",");
}

/* ---- workloads ---------------------------------------------------------------------------- */

static void api_workload(struct viewer *viewer, struct text *text, const struct workload_use *use,
			 double all_cpus)
{
	text_str(text, "{\"key\":");
	text_json(text, use->key);
	text_printf(text, ",\"cpus\":%.4f,\"share\":%.4f,", use->cpus,
		    all_cpus > 0 ? use->cpus / all_cpus : 0);
	json_u64(text, "cpuNs", use->cpu_ns);
	text_str(text, ",");
	json_u64(text, "samples", use->samples);
	text_printf(text, ",\"lastSeenUnixSeconds\":%.3f,\"slot\":%s}",
		    api_unix_s(use->last_seen_ns),
		    slots_find(&viewer->slots, use->key) ? "true" : "false");
}

void api_workloads(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct viewer *viewer = context;
	struct text *text = &reply->body;
	uint64_t now_ns = child_now_ns();
	struct workload_use *uses = calloc(WORKLOADS_MAX, sizeof(*uses));
	double all_cpus = workloads_cpus(viewer->workloads, now_ns);
	size_t n;

	(void)request;
	if (!uses) {
		http_error(reply, 500, "out of memory");
		return;
	}
	n = workloads_list(viewer->workloads, now_ns, uses, WORKLOADS_MAX);
	reply->type = "application/json";
	text_printf(text, "{\"windowSeconds\":%d,\"cpus\":%.4f,\"workloads\":[", WORKLOADS_WINDOW_S,
		    all_cpus);
	for (size_t i = 0; i < n && text->len < REPLY_SOFT_BYTES; i++) {
		json_comma(text, i);
		api_workload(viewer, text, &uses[i], all_cpus);
	}
	text_str(text, "]}\n");
	free(uses);
}

/* ---- slots -------------------------------------------------------------------------------- */

static void api_slot(struct text *text, const struct slot *slot)
{
	text_str(text, "{\"key\":");
	text_json(text, slot->key);
	text_printf(text, ",\"openedUnixSeconds\":%.3f,\"lastRequestUnixSeconds\":%.3f,",
		    api_unix_s(slot->opened_ns), api_unix_s(slot->last_request_ns));
	json_u64(text, "bytes", slot_bytes(slot));
	text_str(text, ",");
	json_u64(text, "samples", slot_samples(slot));
	text_str(text, ",");
	json_u64(text, "dropped", slot->dropped);
	text_str(text, "}");
}

static void api_ended(struct text *text, const struct slot_ended *ended)
{
	text_printf(text, "\"status\":\"%s\",\"endedUnixSeconds\":%.3f", slot_end_text(ended->why),
		    api_unix_s(ended->time_ns));
	if (ended->why == SLOT_EVICTED) {
		text_str(text, ",\"evictedBy\":");
		text_json(text, ended->by);
	}
}

static void api_slots_totals(struct text *text, const struct slots *slots)
{
	const struct slots_limits *limits = &slots->limits;

	json_u64(text, "activeSlots", slots->n);
	text_str(text, ",");
	json_u64(text, "maxSlots", limits->max_slots);
	text_str(text, ",");
	json_u64(text, "totalBytesUsed", slots_bytes(slots));
	text_str(text, ",");
	json_u64(text, "slotMaxBytes", limits->max_bytes);
	text_str(text, ",");
	json_u64(text, "maxTotalBytesBudget", limits->max_bytes * limits->max_slots);
	text_str(text, ",");
	json_u64(text, "slotTtlSeconds", limits->ttl_ns / NS_PER_S);
	text_str(text, ",");
	json_u64(text, "evicted", slots->evicted);
	text_str(text, ",");
	json_u64(text, "expired", slots->expired);
}

void api_slots(void *context, const struct http_request *request, struct http_reply *reply)
{
	const struct slots *slots = &((struct viewer *)context)->slots;
	struct text *text = &reply->body;
	uint64_t n = slots->ended_n < SLOTS_ENDED_MAX ? slots->ended_n : SLOTS_ENDED_MAX;
	size_t i = 0;

	(void)request;
	reply->type = "application/json";
	text_str(text, "{");
	api_slots_totals(text, slots);
	text_str(text, ",\"slots\":[");
	for (const struct slot *slot = slots->first; slot && text->len < REPLY_SOFT_BYTES;
	     slot = slot->next) {
		json_comma(text, i++);
		api_slot(text, slot);
	}
	text_str(text, "],\"ended\":[");
	for (i = 0; i < n; i++) { /* newest first */
		const struct slot_ended *ended =
		    &slots->ended[(slots->ended_n - 1 - i) % SLOTS_ENDED_MAX];

		json_comma(text, i);
		text_str(text, "{\"key\":");
		text_json(text, ended->key);
		text_str(text, ",");
		api_ended(text, ended);
		text_str(text, "}");
	}
	text_str(text, "]}\n");
}

/* The key of the path in its normal form; false with the reply set. */
static bool api_key(const struct http_request *request, struct http_reply *reply,
		    char key[WORKLOAD_KEY_BYTES])
{
	_Static_assert(HTTP_KEY_BYTES <= WORKLOAD_KEY_BYTES, "a key of the path fits");
	memcpy(key, request->key, HTTP_KEY_BYTES);
	workload_key_normalize(key);
	if (api_key_valid(key))
		return true;
	http_error(reply, 400, "a key has three parts: namespace%2FKind%2Fname");
	return false;
}

/* 409 for a slot that ended, with when and why; 404 for one that never was. */
static void api_not_open(const struct slots *slots, const char *key, struct http_reply *reply)
{
	const struct slot_ended *ended = slots_last_end(slots, key);
	struct text *text = &reply->body;

	reply->status = ended ? 409 : 404;
	reply->type = "application/json";
	text_str(text, "{\"sourceKey\":");
	text_json(text, key);
	text_str(text, ",");
	if (ended)
		api_ended(text, ended);
	else
		text_str(text, "\"status\":\"not open\"");
	text_str(text, "}\n");
}

static void api_ok(const struct slots *slots, const char *key, struct http_reply *reply)
{
	struct text *text = &reply->body;

	reply->type = "application/json";
	text_str(text, "{\"status\":\"ok\",\"sourceKey\":");
	text_json(text, key);
	text_str(text, ",");
	api_slots_totals(text, slots);
	text_str(text, "}\n");
}

void api_slot_open(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct viewer *viewer = context;
	char key[WORKLOAD_KEY_BYTES];

	if (!api_key(request, reply, key))
		return;
	if (slots_open(&viewer->slots, key, child_now_ns()))
		api_ok(&viewer->slots, key, reply);
	else
		http_error(reply, 500, "out of memory");
}

void api_slot_close(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct viewer *viewer = context;
	char key[WORKLOAD_KEY_BYTES];

	if (!api_key(request, reply, key))
		return;
	slots_close(&viewer->slots, key, child_now_ns());
	api_ok(&viewer->slots, key, reply);
}

void api_slot_clear(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct viewer *viewer = context;
	char key[WORKLOAD_KEY_BYTES];

	if (!api_key(request, reply, key))
		return;
	if (slots_clear(&viewer->slots, key, child_now_ns()))
		api_ok(&viewer->slots, key, reply);
	else
		api_not_open(&viewer->slots, key, reply);
}

/* ---- functions ---------------------------------------------------------------------------- */

static size_t api_limit(const struct http_request *request)
{
	char limit[16];
	long n;

	if (!http_query(request, "limit", limit, sizeof(limit)))
		return FUNCTIONS_DEFAULT;
	n = strtol(limit, NULL, 10);
	return n > 0 && n < FUNCTIONS_MAX ? (size_t)n : FUNCTIONS_MAX;
}

static void api_function(struct text *text, const struct function_row *row)
{
	text_str(text, "{\"name\":");
	text_json(text, row->name);
	text_str(text, ",\"module\":");
	text_json(text, row->module);
	text_str(text, ",\"file\":");
	text_json(text, row->file);
	text_printf(text, ",\"kernel\":%s,", row->kernel ? "true" : "false");
	json_u64(text, "self", row->self);
	text_str(text, ",");
	json_u64(text, "total", row->total);
	text_str(text, "}");
}

static void api_functions(struct text *text, const struct slot *slot,
			  const struct functions *functions, size_t limit)
{
	text_str(text, "{\"sourceKey\":");
	text_json(text, slot->key);
	text_str(text, ",");
	json_u64(text, "samples", functions->samples);
	text_str(text, ",");
	json_u64(text, "cpuNs", functions->cpu_ns);
	text_str(text, ",");
	json_u64(text, "completeStacks", functions->complete);
	text_str(text, ",");
	json_u64(text, "dropped", slot->dropped);
	text_str(text, ",");
	json_u64(text, "functionsTotal", functions->n);
	text_str(text, ",\"functions\":[");
	for (size_t i = 0; i < functions->n && i < limit && text->len < REPLY_SOFT_BYTES; i++) {
		json_comma(text, i);
		api_function(text, &functions->row[i]);
	}
	text_str(text, "]}\n");
}

void api_slot_functions(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct viewer *viewer = context;
	struct functions functions;
	char key[WORKLOAD_KEY_BYTES];
	struct slot *slot;

	if (!api_key(request, reply, key))
		return;
	slot = slots_use(&viewer->slots, key, child_now_ns());
	if (!slot) {
		api_not_open(&viewer->slots, key, reply);
		return;
	}
	if (functions_count(&functions, slot, api_order(request))) {
		http_error(reply, 500, "out of memory");
		return;
	}
	reply->type = "application/json";
	api_functions(&reply->body, slot, &functions, api_limit(request));
	functions_fini(&functions);
}

void api_health(void *context, const struct http_request *request, struct http_reply *reply)
{
	(void)context;
	(void)request;
	reply->type = "text/plain; charset=utf-8";
	text_str(&reply->body, "ok\n");
}
