/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the call frame information of an ELF file into an unwind table (shm/table.h).
 *
 * Works through `.eh_frame` from beginning to end (its search table is not needed), through
 * `.debug_frame` as well where `.eh_frame` is nearly empty. Time and memory are linear in the file
 * and bounded, whatever stands in it; a part that makes no sense becomes RULE_INVALID and nothing
 * more.
 */
#ifndef SCONCE_SYMBOLIZER_EHFRAME_H
#define SCONCE_SYMBOLIZER_EHFRAME_H

#include <stddef.h>
#include <stdint.h>

#include "shm/table.h"
#include "symbolizer/elffile.h"

/*
 * The table of an open file, in one malloc'ed block that the caller frees; it passes table_check().
 * 0; -ENOENT: the file says nothing about its frames; -ENOTSUP: it is not of this architecture;
 * -EFBIG: a limit was passed; -ENOMEM; or what reading gave.
 */
int ehframe_compile(struct elffile *file, uint32_t file_id, struct table_header **table,
		    size_t *bytes);

#endif
