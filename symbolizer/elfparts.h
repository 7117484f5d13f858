/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of an open ELF file by name or by address: sections, what the program headers point to, the
 * entry. Call frame information is found through it, in files without section headers too.
 */
#ifndef SCONCE_SYMBOLIZER_ELFPARTS_H
#define SCONCE_SYMBOLIZER_ELFPARTS_H

#include <gelf.h>

#include "symbolizer/elffile.h"

#define ELFPARTS_NAMES_MAX (4u << 20) /* bytes of the section names */

/* The header of the first section of this name. 0, -ENOENT, or what reading gave. */
int elfparts_find(struct elffile *file, const char *name, GElf_Shdr *header);

/*
 * `.eh_frame` or another section with bytes, by name. 0; -ENOENT: there is none, it has no bytes in
 * this file or they are compressed; or what reading gave.
 */
int elfparts_section(struct elffile *file, const char *name, GElf_Shdr *header,
		     const uint8_t **bytes);

/*
 * `.eh_frame` by way of PT_GNU_EH_FRAME. Its size is not known: it ends with its terminator, at the
 * latest with its segment.
 */
int elfparts_eh_frame(struct elffile *file, uint64_t *vaddr, uint64_t *size, const uint8_t **bytes);

/* The bytes at an address; NULL when the file does not hold all of them. */
const uint8_t *elfparts_data(struct elffile *file, uint64_t vaddr, uint64_t bytes);

/* The loaded segment, executable or not, that holds an address; false when none does. */
bool elfparts_loaded(struct elffile *file, uint64_t vaddr, struct elffile_segment *segment);

/* The file offset of an address in an executable segment; false when it is in none. */
bool elfparts_code(const struct elffile *file, uint64_t vaddr, uint64_t *offset);
/* The same of the program's entry. */
bool elfparts_entry(const struct elffile *file, uint64_t *offset);

#endif
