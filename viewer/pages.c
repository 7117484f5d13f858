/* SPDX-License-Identifier: Apache-2.0 */
#include "viewer/pages.h"

#include <stdlib.h>
#include <string.h>

#include "viewer/api.h"
#include "viewer/assets.h"
#include "viewer/footer.h"
#include "viewer/functions.h"

#define WORKLOADS_SHOWN 500
#define FUNCTIONS_SHOWN 500

/* What fills the places of the frame. */
struct page {
	struct viewer *viewer;
	const char *title;
	const struct text *refresh, *middle;
};

static void page_place(struct text *to, const struct page *page, const char *name, size_t len)
{
	if (!strncmp(name, "title", len))
		text_html(to, page->title);
	else if (!strncmp(name, "host", len))
		text_html(to, page->viewer->child.config->runtime.host_name);
	else if (!strncmp(name, "refresh", len))
		text_add(to, page->refresh->data, page->refresh->len);
	else if (!strncmp(name, "main", len))
		text_add(to, page->middle->data, page->middle->len);
}

static void page_write(struct text *to, const struct page *page)
{
	const char *from = assets_page_html, *open, *close;

	while ((open = memchr(from, '{', (size_t)(assets_page_html_end - from)))) {
		close = strchr(open, '}');
		text_add(to, from, (size_t)(open - from));
		page_place(to, page, open + 1, (size_t)(close - open - 1));
		from = close + 1;
	}
	text_add(to, from, (size_t)(assets_page_html_end - from));
}

/* Put the frame around what the reply holds so far. Takes `refresh`. */
static void page_frame(struct viewer *viewer, struct http_reply *reply, const char *title,
		       struct text *refresh)
{
	struct text middle = reply->body;
	const struct page page = {viewer, title, refresh, &middle};

	text_init(&reply->body, HTTP_REPLY_BYTES);
	page_write(&reply->body, &page);
	reply->body.failed |= middle.failed | refresh->failed;
	text_fini(&middle);
	text_fini(refresh);
}

/* ---- the list of workloads ---------------------------------------------------------------- */

static void page_workload_link(struct text *text, const char *key)
{
	text_str(text, "<a class=\"name\" href=\"/workload?key=");
	text_url(text, key);
	text_str(text, "\">");
	text_html(text, key);
	text_str(text, "</a>");
}

static void page_workload_row(struct viewer *viewer, struct text *text,
			      const struct workload_use *use, double all_cpus)
{
	double share = all_cpus > 0 ? use->cpus / all_cpus : 0;

	text_str(text, "<tr><td>");
	page_workload_link(text, use->key);
	if (slots_find(&viewer->slots, use->key))
		text_str(text, "<span class=\"module\">open</span>");
	text_printf(text,
		    "</td><td>%.3f</td><td>%.1f&nbsp;%% <meter value=\"%.4f\"></meter></td>"
		    "<td>%llu</td></tr>\n",
		    use->cpus, 100 * share, share, (unsigned long long)use->samples);
}

static void page_workload_rows(struct viewer *viewer, struct text *text,
			       const struct workload_use *uses, size_t n, double all_cpus)
{
	text_str(
	    text,
	    "<table><thead><tr><th scope=\"col\">Workload</th><th scope=\"col\">CPUs</th>"
	    "<th scope=\"col\">Share</th><th scope=\"col\">Samples</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < n; i++)
		page_workload_row(viewer, text, &uses[i], all_cpus);
	text_str(text, "</tbody></table>\n");
	if (workloads_n(viewer->workloads) > n)
		text_printf(text, "<p class=\"faint\">%zu more use less.</p>\n",
			    workloads_n(viewer->workloads) - n);
}

static void page_workloads_middle(struct viewer *viewer, struct text *text)
{
	uint64_t now_ns = child_now_ns();
	struct workload_use *uses = calloc(WORKLOADS_SHOWN, sizeof(*uses));
	double all_cpus = workloads_cpus(viewer->workloads, now_ns);
	size_t n = uses ? workloads_list(viewer->workloads, now_ns, uses, WORKLOADS_SHOWN) : 0;

	text_str(text, "<h1>Workloads</h1>\n");
	text_printf(text,
		    "<p class=\"faint\">%.2f CPUs busy in %zu workloads, over the last %d s.</p>\n",
		    all_cpus, workloads_n(viewer->workloads), WORKLOADS_WINDOW_S);
	if (n)
		page_workload_rows(viewer, text, uses, n, all_cpus);
	else
		text_str(text,
			 "<p class=\"notice\">Collecting, the next data arrives within 5 s.</p>\n");
	free(uses);
	footer_write(text, viewer);
}

void pages_workloads_middle(void *context, const struct http_request *request,
			    struct http_reply *reply)
{
	(void)request;
	reply->type = "text/html; charset=utf-8";
	page_workloads_middle(context, &reply->body);
}

void pages_workloads(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct text refresh;

	pages_workloads_middle(context, request, reply);
	text_init(&refresh, 64);
	text_str(&refresh, "/middle/workloads");
	page_frame(context, reply, "Workloads", &refresh);
}

/* ---- the functions of a workload ---------------------------------------------------------- */

static const struct {
	const char *sort, *title;
} columns[] = {
    [FUNCTIONS_BY_SELF] = {"self", "Self"},
    [FUNCTIONS_BY_TOTAL] = {"total", "Total"},
    [FUNCTIONS_BY_NAME] = {"name", "Function"},
};

static void page_column(struct text *text, const char *key, enum functions_order column,
			enum functions_order order, const char *span)
{
	text_printf(text, "<th scope=\"col\"%s%s><a id=\"by-%s\"%s href=\"/workload?key=", span,
		    column != order		  ? ""
		    : column == FUNCTIONS_BY_NAME ? " aria-sort=\"ascending\""
						  : " aria-sort=\"descending\"",
		    columns[column].sort, column == order ? " aria-current=\"true\"" : "");
	text_url(text, key);
	text_printf(text, "&amp;sort=%s\">%s</a></th>", columns[column].sort,
		    columns[column].title);
}

static const char *page_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void page_function_row(struct text *text, const struct function_row *row, uint64_t samples)
{
	double percent = samples ? 100.0 / (double)samples : 0;

	text_str(text, "<tr><td title=\"");
	text_html(text, row->file[0] ? row->file : row->module);
	text_str(text, "\"><span class=\"name\">");
	text_html(text, row->name);
	text_str(text, "</span><span class=\"module\">");
	text_html(text, row->kernel && !row->module[0] ? "[kernel]" : page_basename(row->module));
	text_printf(text,
		    "</span></td><td>%llu</td><td>%.2f&nbsp;%%</td><td>%llu</td><td>%.2f&nbsp;%%</"
		    "td></tr>\n",
		    (unsigned long long)row->self, percent * (double)row->self,
		    (unsigned long long)row->total, percent * (double)row->total);
}

static void page_functions(struct text *text, const struct slot *slot,
			   const struct functions *functions, enum functions_order order)
{
	size_t shown = functions->n < FUNCTIONS_SHOWN ? functions->n : FUNCTIONS_SHOWN;

	text_str(text, "<table><thead><tr>");
	page_column(text, slot->key, FUNCTIONS_BY_NAME, order, "");
	page_column(text, slot->key, FUNCTIONS_BY_SELF, order, " colspan=\"2\"");
	page_column(text, slot->key, FUNCTIONS_BY_TOTAL, order, " colspan=\"2\"");
	text_str(text, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < shown; i++)
		page_function_row(text, &functions->row[i], functions->samples);
	text_str(text, "</tbody></table>\n");
	if (functions->n > shown)
		text_printf(text, "<p class=\"faint\">%zu more functions are not shown.</p>\n",
			    functions->n - shown);
}

static void page_button(struct text *text, const char *method, const char *key, const char *action,
			const char *then, const char *label)
{
	text_printf(text,
		    "<button hidden id=\"%s\" data-method=\"%s\" data-then=\"%s\" "
		    "data-url=\"/api/v1/slots/",
		    label, method, then);
	text_url(text, key);
	text_printf(text, "%s\">%s</button>\n", action, label);
}

static void page_slot(struct viewer *viewer, struct text *text, const struct slot *slot,
		      enum functions_order order)
{
	struct functions functions;
	double open_s = (double)(child_now_ns() - slot->opened_ns) / 1e9;

	text_str(text, "<h1>");
	text_html(text, slot->key);
	text_str(text, "</h1>\n");
	if (functions_count(&functions, slot, order)) {
		text_str(text, "<p class=\"bad\">Out of memory.</p>\n");
		return;
	}
	text_printf(text,
		    "<p class=\"faint\">%llu samples, %.2f s of CPU, in a slot open for %.0f s",
		    (unsigned long long)functions.samples, (double)functions.cpu_ns / 1e9, open_s);
	if (slot->dropped)
		text_printf(text, "; %llu older samples made room",
			    (unsigned long long)slot->dropped);
	text_str(text, ".</p>\n<p>");
	page_button(text, "POST", slot->key, "/clear", "", "Clear");
	page_button(text, "DELETE", slot->key, "", "/", "Close");
	text_str(text, "</p>\n");
	if (functions.samples)
		page_functions(text, slot, &functions, order);
	else
		text_str(text,
			 "<p class=\"notice\">Collecting, the next data arrives within 5 s.</p>\n");
	functions_fini(&functions);
	footer_write(text, viewer);
}

static void page_not_open(struct viewer *viewer, struct text *text, const char *key)
{
	const struct slot_ended *ended = slots_last_end(&viewer->slots, key);

	text_str(text, "<h1>");
	text_html(text, key);
	text_str(text, "</h1>\n<p class=\"notice\">This slot ");
	if (ended) {
		text_printf(text, "was %s %.0f s ago", slot_end_text(ended->why),
			    (double)(child_now_ns() - ended->time_ns) / 1e9);
		if (ended->why == SLOT_EVICTED) {
			text_str(text, " to make room for ");
			page_workload_link(text, ended->by);
		} else if (ended->why == SLOT_EXPIRED) {
			text_str(text, ", because nobody looked at it");
		}
	} else {
		text_str(text, "is not open");
	}
	text_str(text, ". <a id=\"again\" href=\"/workload?key=");
	text_url(text, key);
	text_str(text, "\">Open it again</a></p>\n");
	footer_write(text, viewer);
}

/* The key of the query in its normal form; false with the reply set. */
static bool page_key(const struct http_request *request, struct http_reply *reply,
		     char key[WORKLOAD_KEY_BYTES])
{
	if (http_query(request, "key", key, WORKLOAD_KEY_BYTES) && api_key_valid(key)) {
		workload_key_normalize(key);
		reply->type = "text/html; charset=utf-8";
		return true;
	}
	http_error(reply, 400, "which workload? /workload?key=namespace/Kind/name");
	return false;
}

void pages_workload_middle(void *context, const struct http_request *request,
			   struct http_reply *reply)
{
	struct viewer *viewer = context;
	char key[WORKLOAD_KEY_BYTES];
	struct slot *slot;

	if (!page_key(request, reply, key))
		return;
	slot = slots_use(&viewer->slots, key, child_now_ns());
	if (slot) {
		page_slot(viewer, &reply->body, slot, api_order(request));
		return;
	}
	reply->status = slots_last_end(&viewer->slots, key) ? 409 : 404;
	page_not_open(viewer, &reply->body, key);
}

void pages_workload(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct viewer *viewer = context;
	enum functions_order order = api_order(request);
	char key[WORKLOAD_KEY_BYTES];
	struct text refresh;
	struct slot *slot;

	if (!page_key(request, reply, key))
		return;
	slot = slots_open(&viewer->slots, key, child_now_ns());
	if (!slot) {
		http_error(reply, 500, "out of memory");
		return;
	}
	page_slot(viewer, &reply->body, slot, order);
	text_init(&refresh, 4096);
	text_str(&refresh, "/middle/workload?key=");
	text_url(&refresh, key);
	text_printf(&refresh, "&amp;sort=%s", columns[order].sort);
	page_frame(viewer, reply, key, &refresh);
}
