/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one address stands for: the functions whose code it is, by all sources alike (symbols,
 * DWARF, Go's table, perf maps). Innermost first: all but the last are inlined into the next one.
 */
#ifndef SCONCE_SYMBOLIZER_LINE_H
#define SCONCE_SYMBOLIZER_LINE_H

#include <stdint.h>

#include "shm/symbol.h"

struct line {
	const char *name; /* as the linker has it, where that is known: mangled. Never NULL */
	const char *file; /* path of the source; NULL = not known */
	uint32_t line; /* of the innermost: where the address is; else of the call; 0 = not known */
	uint32_t start_line; /* of the function; 0 = not known */
};

/* Texts are valid until the next question to whoever filled it in. */
struct lines {
	struct line line[SYMBOL_LINES_MAX];
	uint32_t n; /* 0 = nothing is known */
};

#endif
