/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* libiberty's own limit of recursion stays: DMGL_NO_RECURSE_LIMIT is not among them. */
#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

/* Of a name of D: bytes when all that it repeats is written out, and those by the ways to try. */
#define D_BYTES_MAX (4 * DEMANGLE_INPUT_BYTES_MAX)
#define D_WORK_MAX  (1u << 22)

struct output {
	char *buf;
	size_t size, len;
	jmp_buf full;
};

/*
 * libiberty does not let a callback say stop; leaving by longjmp does. What it holds at that moment
 * is on its stack (C++), or one small buffer that is lost (Rust).
 */
static void demangle_append(const char *text, size_t len, void *arg)
{
	struct output *out = arg;

	if (len >= out->size - out->len)
		longjmp(out->full, 1);
	memcpy(out->buf + out->len, text, len);
	out->len += len;
}

typedef int demangler(const char *mangled, int options, demangle_callbackref callback, void *arg);

static size_t demangle_with(demangler *fn, const char *name, char *buf, size_t size)
{
	struct output out = {.buf = buf, .size = size};

	if (setjmp(out.full))
		return 0;
	if (!fn(name, OPTIONS, demangle_append, &out))
		return 0;
	buf[out.len] = 0;
	return out.len;
}

/* The distance that stands behind a 'Q': base 26, capitals, and a small letter as the last digit.
 */
static size_t demangle_d_distance(const char *p)
{
	size_t n = 0;

	while (*p >= 'A' && *p <= 'Z' && n < DEMANGLE_INPUT_BYTES_MAX)
		n = n * 26 + (size_t)(*p++ - 'A');
	return *p >= 'a' && *p <= 'z' ? n * 26 + (size_t)(*p - 'a') : 0;
}

/*
 * D's demangler takes no callback: it returns when it is done, with memory for all of it. So how
 * much it may have to do is added up before. A 'Q' repeats what stands between the place that it
 * refers to and itself, and that may hold others of its kind: 2^n for n bytes, if somebody wants it
 * so. And older compilers wrote the length of a template's symbol right before that of its first
 * name, so that each way to part the digits is tried. What is no such thing but looks so counts
 * too.
 */
static bool demangle_d_bounded(const char *name)
{
	uint32_t work[DEMANGLE_INPUT_BYTES_MAX + 1] = {0}; /* of all before this byte */
	uint64_t ways = 1;

	for (size_t i = 0; name[i]; i++) {
		uint64_t more = 1;

		if (name[i] == 'Q') {
			size_t distance = demangle_d_distance(name + i + 1);

			if (distance > 0 && distance <= i)
				more += work[i] - work[i - distance];
		}
		if (name[i] == 'S' && strspn(name + i + 1, "0123456789") > 1)
			ways *= strspn(name + i + 1, "0123456789");
		if (work[i] + more > D_BYTES_MAX || (work[i] + more) * ways > D_WORK_MAX)
			return false;
		work[i + 1] = (uint32_t)(work[i] + more);
	}
	return true;
}

static size_t demangle_d(const char *name, char *buf, size_t size)
{
	char *text = demangle_d_bounded(name) ? dlang_demangle(name, OPTIONS) : NULL;
	size_t len = text ? strlen(text) : 0;

	if (len >= size)
		len = 0;
	memcpy(buf, text ? text : "", len);
	buf[len] = 0;
	free(text);
	return len;
}

size_t demangle(const char *name, char *buf, size_t size)
{
	size_t len = 0;

	if (name[0] != '_' || !name[1] || !strchr("ZRD", name[1]) || size == 0 ||
	    strnlen(name, DEMANGLE_INPUT_BYTES_MAX) == DEMANGLE_INPUT_BYTES_MAX)
		return 0;
	if (name[1] == 'D')
		return demangle_d(name, buf, size);
	/* Rust's older scheme looks like C++ with a hash at the end; its demangler knows the
	 * difference. */
	if (name[1] == 'R' || strstr(name, "17h"))
		len = demangle_with(rust_demangle_callback, name, buf, size);
	if (len == 0 && name[1] == 'Z')
		len = demangle_with(cplus_demangle_v3_callback, name, buf, size);
	return len;
}
