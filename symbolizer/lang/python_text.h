/* SPDX-License-Identifier: Apache-2.0 */
/* Strings of CPython (PEP 393) in a process's memory, as UTF-8. */
#ifndef SCONCE_SYMBOLIZER_LANG_PYTHON_TEXT_H
#define SCONCE_SYMBOLIZER_LANG_PYTHON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/remote.h"

/* Offsets in a string: its length stands behind the header, then a hash and the state. */
struct python_strings {
	uint32_t header, ascii, compact, kind_shift;
};

/*
 * The text of the string at an address, cut where it does not fit. What is no character (a half of
 * a pair, a control) becomes '?'. False: there is no string, or not one that has its text in
 * itself.
 */
bool python_text(struct remote *remote, const struct python_strings *strings, uint64_t at, char *to,
		 size_t size);

#endif
