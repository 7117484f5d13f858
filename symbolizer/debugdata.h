/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `.gnu_debugdata`: what Fedora and others leave in stripped files, so that at least functions have
 * names. It is an ELF file packed by xz, whose only content is a symbol table of what `.dynsym`
 * lacks.
 */
#ifndef SCONCE_SYMBOLIZER_DEBUGDATA_H
#define SCONCE_SYMBOLIZER_DEBUGDATA_H

#include "symbolizer/elffile.h"

#define DEBUGDATA_BYTES_MAX (64ull << 20) /* unpacked; libLLVM's would be 20 MiB */

/*
 * Open the file inside; it does not need the other any more. 0; -ENOENT: there is none; -EFBIG,
 * -ENOEXEC, -ENOMEM or what reading gave.
 */
int debugdata_open(struct elffile *file, struct elffile *inside);

#endif
