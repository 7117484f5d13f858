/* SPDX-License-Identifier: Apache-2.0 */
/* The files that processes have mapped: unwind table, runtime, names; each looked at once. */
#ifndef SCONCE_TESTS_LANG_LIVEFILE_H
#define SCONCE_TESTS_LANG_LIVEFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/table.h"
#include "symbolizer/elffile.h"
#include "symbolizer/lang/lang.h"
#include "symbolizer/symbols.h"

struct livefile {
	char path[256]; /* as /proc/PID/maps has it, for show */
	uint64_t device, inode;
	struct table_header *table; /* with the runtime behind it; NULL: none */
	int recognized;		    /* what lang_recognize() said */
	struct lang_runtime runtime;
	struct symbols *symbols; /* NULL: none */
	struct elffile_segment segments[ELFFILE_SEGMENTS_MAX];
	uint32_t segments_n;
};

/* The id of a file, which is opened by `by` when it was not met before. 0: it cannot be opened. */
uint32_t livefile_id(const char *path, const char *by, uint64_t device, uint64_t inode);
/* Ours, under RECORD_VDSO_FILE_ID, is that of every process. NULL: no such id. */
const struct livefile *livefile_get(uint32_t id);
/* The function at an offset of the file; NULL: not known. */
const char *livefile_symbol(const struct livefile *file, uint64_t offset);
void livefile_forget(void);

#endif
