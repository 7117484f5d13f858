/* SPDX-License-Identifier: Apache-2.0 */
#include "viewer/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 1024

void text_init(struct text *text, size_t limit)
{
	*text = (struct text){.limit = limit};
}

void text_fini(struct text *text)
{
	free(text->data);
	text->data = NULL;
}

/* Room for `len` more bytes. */
static bool text_reserve(struct text *text, size_t len)
{
	size_t capacity = text->capacity ? text->capacity : FIRST_BYTES;
	char *data;

	if (text->failed || len > text->limit || text->len > text->limit - len) {
		text->failed = true;
		return false;
	}
	if (text->len + len <= text->capacity)
		return true;
	while (capacity < text->len + len)
		capacity *= 2;
	data = realloc(text->data, capacity);
	if (!data) {
		text->failed = true;
		return false;
	}
	text->data = data;
	text->capacity = capacity;
	return true;
}

void text_add(struct text *text, const void *data, size_t len)
{
	if (!len || !text_reserve(text, len))
		return;
	memcpy(text->data + text->len, data, len);
	text->len += len;
}

void text_str(struct text *text, const char *string)
{
	text_add(text, string, strlen(string));
}

void text_printf(struct text *text, const char *format, ...)
{
	char buffer[512];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(buffer, sizeof(buffer), format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(buffer))
		text->failed = true; /* our own formats are short */
	else
		text_add(text, buffer, (size_t)n);
}

/*
 * Length of the UTF-8 character at s, 0 when there is none: neither overlong forms nor surrogates,
 * which browsers and JSON readers take for something else than we do.
 */
static size_t text_utf8(const unsigned char *s)
{
	static const struct {
		unsigned char mask, lead, len;
		uint32_t least;
	} forms[] = {{0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}};
	uint32_t c;

	if (s[0] < 0x80)
		return 1;
	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		if ((s[0] & forms[f].mask) != forms[f].lead)
			continue;
		c = s[0] & (unsigned char)~forms[f].mask;
		for (size_t i = 1; i < forms[f].len; i++) {
			if ((s[i] & 0xc0) != 0x80)
				return 0;
			c = c << 6 | (s[i] & 0x3f);
		}
		if (c < forms[f].least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
			return 0;
		return forms[f].len;
	}
	return 0;
}

typedef bool text_escape(struct text *text, unsigned char c);

/* Copy a string; `escape` writes the ASCII characters that may not stand for themselves. */
static void text_escaped(struct text *text, const char *string, text_escape *escape)
{
	const unsigned char *s = (const unsigned char *)string;
	size_t len;

	for (; *s; s += len) {
		len = text_utf8(s);
		if (!len) {
			text_str(text, "\xef\xbf\xbd");
			len = 1;
		} else if (len > 1 || !escape(text, *s)) {
			text_add(text, s, len);
		}
	}
}

static bool text_escape_html(struct text *text, unsigned char c)
{
	switch (c) {
	case '&':
		text_str(text, "&amp;");
		return true;
	case '<':
		text_str(text, "&lt;");
		return true;
	case '>':
		text_str(text, "&gt;");
		return true;
	case '"':
		text_str(text, "&quot;");
		return true;
	case '\'':
		text_str(text, "&#39;");
		return true;
	}
	if (c < 0x20 || c == 0x7f)
		text_str(text, "\xef\xbf\xbd");
	return c < 0x20 || c == 0x7f;
}

void text_html(struct text *text, const char *string)
{
	text_escaped(text, string, text_escape_html);
}

static bool text_escape_json(struct text *text, unsigned char c)
{
	if (c >= 0x20 && c != 0x7f && !strchr("\"\\<>&'", c))
		return false;
	text_printf(text, "\\u%04x", c);
	return true;
}

void text_json(struct text *text, const char *string)
{
	text_str(text, "\"");
	text_escaped(text, string, text_escape_json);
	text_str(text, "\"");
}

void text_url(struct text *text, const char *string)
{
	for (; *string; string++) {
		unsigned char c = (unsigned char)*string;

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    strchr("-._~", c))
			text_add(text, &c, 1);
		else
			text_printf(text, "%%%02X", c);
	}
}

static bool text_escape_label(struct text *text, unsigned char c)
{
	if (c == '\\' || c == '"') {
		text_printf(text, "\\%c", c);
		return true;
	}
	if (c == '\n')
		text_str(text, "\\n");
	return c == '\n';
}

void text_label(struct text *text, const char *string)
{
	text_escaped(text, string, text_escape_label);
}

void text_bytes(struct text *text, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes / 1024;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	/* 192 MiB, but 1.7 MiB */
	text_printf(text, value == (double)(uint64_t)value ? "%.0f %s" : "%.1f %s", value,
		    units[unit]);
}

static int text_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool text_url_decode(const char *from, size_t len, char *to, size_t to_bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int c = (unsigned char)from[i];

		if (c == '%') {
			int high = i + 2 < len ? text_hex(from[i + 1]) : -1;
			int low = high >= 0 ? text_hex(from[i + 2]) : -1;

			if (low < 0)
				return false;
			c = high << 4 | low;
			i += 2;
		}
		if (!c || n + 1 >= to_bytes)
			return false;
		to[n++] = (char)c;
	}
	if (n >= to_bytes)
		return false;
	to[n] = '\0';
	return true;
}
