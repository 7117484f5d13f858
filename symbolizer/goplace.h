/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a Go program has its table of functions (symbolizer/pclntab.h), and where the text begins
 * that the table counts from: neither is written down in all releases and by all linkers.
 *
 * Position independent programs that another linker than Go's has put together, as distributions
 * build them, have the table somewhere in the middle of their read-only data up to Go 1.25: there
 * it is looked for, in files that say that they are Go, and known by what the first functions say
 * of themselves. Up to 1.17 such a table is full of addresses that are not in the file: it is not
 * found.
 */
#ifndef SCONCE_SYMBOLIZER_GOPLACE_H
#define SCONCE_SYMBOLIZER_GOPLACE_H

#include <stdint.h>

#include "symbolizer/elffile.h"

struct goplace {
	uint64_t offset, vaddr;
	uint64_t size; /* at most: the table may end before */
};

/* 0, -ENOENT or what reading gave. */
int goplace_find(struct elffile *file, struct goplace *place);

/* What functions count from, since 1.18. header: the word of the table's header that is for it. */
uint64_t goplace_text(struct elffile *file, uint64_t table_vaddr, uint64_t header);

#endif
