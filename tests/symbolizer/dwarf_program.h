/* SPDX-License-Identifier: Apache-2.0 */
/* A program with debug information, for tests: opened as a worker does it, .dwo files beside it. */
#ifndef SCONCE_TESTS_SYMBOLIZER_DWARF_PROGRAM_H
#define SCONCE_TESTS_SYMBOLIZER_DWARF_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/dwarf.h"
#include "symbolizer/elffile.h"
#include "symbolizer/line.h"
#include "symbolizer/reader.h"
#include "symbolizer/symbols.h"

#define DWARF_PROGRAM_PATH 512

struct dwarf_program {
	struct reader reader;
	struct elffile file;
	struct elffile debug;		     /* its debug file, where it has none of its own */
	struct elffile *named;		     /* the one of both that has the symbols */
	char debug_path[DWARF_PROGRAM_PATH]; /* "" = it needs none */
	struct symbols *symbols;
	struct dwarf *dwarf;		    /* NULL = it has no debug information */
	char directory[DWARF_PROGRAM_PATH]; /* where its .dwo files are */
	uint32_t dwos, dwos_missing;
};

/*
 * alt, dwp: paths, or NULL. False: no ELF file. What it lacks is looked for by its build id below
 * usr/lib/debug, in the folders that it stands in, from the innermost on.
 */
bool dwarf_program_open(struct dwarf_program *p, const char *path, const char *alt, const char *dwp,
			size_t bytes_max);
void dwarf_program_close(struct dwarf_program *p);
/* As filenames_find() does it: symbols, then debug information. */
void dwarf_program_find(struct dwarf_program *p, uint64_t vaddr, struct lines *lines);
/* The address of the n-th byte of its code (.text), and how many there are. */
uint64_t dwarf_program_code(struct dwarf_program *p, uint64_t *bytes);

#endif
