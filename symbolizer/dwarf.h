/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, files, lines and inlined frames from the debug information (DWARF 2 to 5) of one file.
 *
 * Nothing is read before the first question, and then only the unit (translation unit) that holds
 * the address: its entries become a sorted index (symbolizer/dwarfindex.h), its line program sorted
 * rows. Units that were not asked for longest go when the bytes are used up. One that is damaged,
 * too large or takes too long is not looked at again; what all of them may take of the time is
 * limited as well.
 *
 * Not by libdw: that of Debian 12 (0.188) knows no .dwp and opens .dwo files by itself, puts the
 * names of a line table together before anybody can say how long they may get, ends the program
 * when memory runs out, and gives nothing back before the whole file is closed.
 */
#ifndef SCONCE_SYMBOLIZER_DWARF_H
#define SCONCE_SYMBOLIZER_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/elffile.h"
#include "symbolizer/line.h"

#define DWARF_DWO_NAME_BYTES 64
#define DWARF_DWO_MAX	     4096 /* given to one file */

struct dwarf;

struct dwarf_parts {
	struct elffile *debug; /* has .debug_info: the file itself or its debug file */
	struct elffile *alt;   /* dwz's common file; NULL */
	struct elffile *dwp;   /* NULL */
};

/* A .dwo: the last component of its name, and the id that its unit has. */
struct dwarf_want {
	uint64_t dwo_id;
	char name[DWARF_DWO_NAME_BYTES];
};

/*
 * bytes_max: of all that is kept of this file. NULL with errno; ENOENT: it has no DWARF. The files
 * may be closed afterwards, but their slots in the reader have to stay as long as it lives.
 */
struct dwarf *dwarf_open(const struct dwarf_parts *parts, size_t bytes_max);
void dwarf_close(struct dwarf *dwarf);

/*
 * What an address of the file stands for. symbol: from the symbol table, NULL = none; it is what
 * the outermost function is called (a part that was split off has a name of its own there, and
 * folded functions have one of theirs). lines->n = 0: nothing is known. Texts are valid until the
 * next question.
 */
void dwarf_find(struct dwarf *dwarf, uint64_t vaddr, const char *symbol, struct lines *lines);

/* Questions had no answer because it had had its part of the time, and it has some again: those may
 * be asked once more. True once. */
bool dwarf_resumed(struct dwarf *dwarf);

/* Memory that it holds. */
size_t dwarf_bytes(const struct dwarf *dwarf);

/* Did the last question miss a .dwo that was not given yet? */
bool dwarf_wants(struct dwarf *dwarf, struct dwarf_want *want);
/*
 * Here it is (its slot stays as long as dwarf lives); NULL: there is none, do not ask again. 0,
 * -ENOENT (it is not that one), -ENOSPC (too many) or -ENOMEM.
 */
int dwarf_give(struct dwarf *dwarf, uint64_t dwo_id, struct elffile *dwo);

#endif
