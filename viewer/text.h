/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text under construction: a growing buffer with a limit, and the escapes of what we write into it.
 *
 * Past the limit, or without memory, the text is marked `failed` and nothing is added any more; the
 * writer looks once, at the end. Names of functions and workloads come from outside: they are
 * written with text_html, text_json, text_url or text_label, never with text_printf.
 */
#ifndef SCONCE_VIEWER_TEXT_H
#define SCONCE_VIEWER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *data;
	size_t len, capacity, limit;
	bool failed;
};

void text_init(struct text *text, size_t limit);
void text_fini(struct text *text);

void text_add(struct text *text, const void *data, size_t len);
void text_str(struct text *text, const char *string);
__attribute__((format(printf, 2, 3))) void text_printf(struct text *text, const char *format, ...);

/* Between tags and inside double-quoted attributes. Bytes that are not UTF-8 become U+FFFD. */
void text_html(struct text *text, const char *string);
/* A JSON string with its quotes; also safe inside HTML. */
void text_json(struct text *text, const char *string);
/* Percent-encoded: everything but letters, digits and "-._~". */
void text_url(struct text *text, const char *string);
/* The value of a Prometheus label, or a help text. */
void text_label(struct text *text, const char *string);
/* 1.7 MiB */
void text_bytes(struct text *text, uint64_t bytes);

/*
 * Undo percent-encoding into `to`. False when it does not fit, holds a NUL or a broken escape.
 */
bool text_url_decode(const char *from, size_t len, char *to, size_t to_bytes);

#endif
