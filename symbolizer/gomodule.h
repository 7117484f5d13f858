/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Go program tells its own run time of itself (struct moduledata): of it, the address that
 * functions count their parts from since Go 1.18, which is nowhere else in a file without symbols.
 *
 * It has no mark, so it is known by what it says of the table of functions, which has to be true to
 * the last word: where each of the six parts is, how many functions there are, where the first one
 * begins and the last one ends. The surprise: in which of the words behind those the address is
 * changes (1.20, 1.27) without a sign of it, so all that it may be in are told, and the caller has
 * to see which one makes sense.
 */
#ifndef SCONCE_SYMBOLIZER_GOMODULE_H
#define SCONCE_SYMBOLIZER_GOMODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/elffile.h"
#include "symbolizer/pclntab.h"

#define GOMODULE_PARTS 12

/* Addresses of which one is what functions' parts (pclntab_funcdata()) count from. False: none. */
bool gomodule_find(struct elffile *file, const struct pclntab *tab, uint64_t parts[GOMODULE_PARTS]);

#endif
