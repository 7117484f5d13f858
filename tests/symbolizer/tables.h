/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables for tests: compiled from a file or from bytes, looked up, written as text. */
#ifndef SCONCE_TESTS_SYMBOLIZER_TABLES_H
#define SCONCE_TESTS_SYMBOLIZER_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/table.h"
#include "symbolizer/elffile.h"

#define TABLES_TEXT_BYTES 96

struct tables_result {
	int err; /* of elffile_open() or ehframe_compile() */
	struct table_header *table;
	size_t bytes;
	double ms; /* of CPU */
	struct elffile_segment segments[ELFFILE_SEGMENTS_MAX];
	uint32_t segments_n;
};

/* Takes the fd. A table was checked by table_check(); the caller frees it. */
struct tables_result tables_compile(int fd);
struct tables_result tables_compile_bytes(const void *bytes, size_t n);

/* The rule that holds at a file offset, by the look-up of the walk itself (bpf/rows.bpf.h). False:
 * there is none, outside of the table. */
bool tables_find(const struct table_header *table, uint64_t offset, struct table_rule *rule);
/* The first offset from here on, up to `end`, at which another rule holds: each is looked up. */
uint64_t tables_next(const struct table_header *table, uint64_t offset, uint64_t end);
/* Changes that share a row with the one before. */
uint32_t tables_folded(const struct table_header *table);
/* "sp+16 fp@cfa-16 ra@cfa-8" and the like. */
const char *tables_text(const struct table_rule *rule, char text[TABLES_TEXT_BYTES]);

#endif
