/* SPDX-License-Identifier: Apache-2.0 */
#include "viewer/assets.h"

#include <stdio.h>

/* The path is from the root of the tree, where make runs. */
#define EMBED(name, path)                                                                          \
	__asm__(".pushsection .rodata\n"                                                           \
		".global assets_" #name "\n.global assets_" #name "_end\n"                         \
		"assets_" #name ":\n.incbin \"viewer/page/" path "\"\n"                            \
		"assets_" #name "_end:\n.byte 0\n.popsection\n");                                  \
	extern const char assets_##name[], assets_##name##_end[]

EMBED(page_html, "page.html");
EMBED(page_css, "page.css");
EMBED(page_js, "page.js");

struct asset {
	const char *type, *data, *end;
	char etag[24]; /* made at the first request */
};

static void assets_send(struct asset *asset, struct http_reply *reply)
{
	uint64_t hash = 14695981039346656037ull;

	if (!asset->etag[0]) {
		for (const char *p = asset->data; p < asset->end; p++)
			hash = (hash ^ (unsigned char)*p) * 1099511628211ull;
		snprintf(asset->etag, sizeof(asset->etag), "\"%016llx\"", (unsigned long long)hash);
	}
	reply->type = asset->type;
	reply->fixed = asset->data;
	reply->fixed_len = (size_t)(asset->end - asset->data);
	reply->etag = asset->etag;
}

void assets_css(void *context, const struct http_request *request, struct http_reply *reply)
{
	static struct asset css = {"text/css; charset=utf-8", assets_page_css, assets_page_css_end,
				   ""};

	(void)context;
	(void)request;
	assets_send(&css, reply);
}

void assets_js(void *context, const struct http_request *request, struct http_reply *reply)
{
	static struct asset js = {"text/javascript; charset=utf-8", assets_page_js,
				  assets_page_js_end, ""};

	(void)context;
	(void)request;
	assets_send(&js, reply);
}
