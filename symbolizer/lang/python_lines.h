/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an offset in CPython's bytecode to a line: the tables of code objects
 * (Objects/lnotab_notes.txt, Objects/locations.md of its sources). They are bytes out of a
 * process's memory, and may be anything; time is linear in them.
 */
#ifndef SCONCE_SYMBOLIZER_LANG_PYTHON_LINES_H
#define SCONCE_SYMBOLIZER_LANG_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

enum python_lines {
	PYTHON_LNOTAB,	  /* to 3.9: (bytes, lines) one behind the other */
	PYTHON_LINETABLE, /* 3.10: the same by ranges, some without a line */
	PYTHON_LOCATIONS, /* from 3.11: an entry for each run of instructions, with columns */
};

/* The line at an offset in bytes; 0: it has none, or the table does not come so far. */
uint32_t python_line(enum python_lines kind, const uint8_t *table, size_t bytes, uint32_t first,
		     uint32_t offset);

#endif
