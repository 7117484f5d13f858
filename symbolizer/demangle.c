/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

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

size_t demangle(const char *name, char *buf, size_t size)
{
	size_t len = 0;

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') || size == 0 ||
	    strnlen(name, DEMANGLE_INPUT_BYTES_MAX) == DEMANGLE_INPUT_BYTES_MAX)
		return 0;
	/* Rust's older scheme looks like C++ with a hash at the end; its demangler knows the
	 * difference. */
	if (name[1] == 'R' || strstr(name, "17h"))
		len = demangle_with(rust_demangle_callback, name, buf, size);
	if (len == 0 && name[1] == 'Z')
		len = demangle_with(cplus_demangle_v3_callback, name, buf, size);
	return len;
}
