/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, files, lines and inlined functions of a Go program, stripped or not, from the table
 * that it carries for its own run time (symbolizer/pclntab.h, symbolizer/goinline.h).
 *
 * The table of a large program is tens of MB long, and a profile meets some hundred of its
 * functions: it is read by the piece, when a name is asked for. So the file has to be open then;
 * while it is not, only what was read before is known. C code of such a program is not in its
 * table.
 */
#ifndef SCONCE_SYMBOLIZER_GOLINES_H
#define SCONCE_SYMBOLIZER_GOLINES_H

#include <stddef.h>
#include <stdint.h>

#include "symbolizer/elffile.h"
#include "symbolizer/line.h"

struct golines;

/*
 * Of an open file, which may be closed afterwards; its reader has to stay. bytes_max: of what is
 * kept of it. NULL with errno: ENOENT (no Go program), ENOMEM, EFBIG or what reading gave.
 */
struct golines *golines_open(struct elffile *file, size_t bytes_max);
void golines_close(struct golines *go);

/* What is at this address. slot: where the file stands in the reader, -1 = nowhere. */
void golines_find(struct golines *go, int slot, uint64_t vaddr, struct lines *lines);

/* Of memory. */
size_t golines_bytes(const struct golines *go);
/* Gives up what was read. */
void golines_forget(struct golines *go);

#endif
