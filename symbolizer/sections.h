/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a section by its name, unpacked where the file has them packed: SHF_COMPRESSED with
 * zlib or zstd, and the older .zdebug_*. libelf is not asked to: it would believe the size that is
 * claimed, and that of Debian 12 knows no zstd.
 */
#ifndef SCONCE_SYMBOLIZER_SECTIONS_H
#define SCONCE_SYMBOLIZER_SECTIONS_H

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/elffile.h"
#include "symbolizer/unpack.h"

/* Of one section. What comes out counts among what is read of the file (ELFFILE_LOAD_MAX) too. */
#define SECTIONS_PACKED_MAX   (128ull << 20)
#define SECTIONS_UNPACKED_MAX (256ull << 20)

struct section {
	const uint8_t *data;
	uint64_t bytes;
	struct unpacked
	    unpacked; /* .data NULL = data lies in the file's image, until it is closed */
};

/*
 * ".debug_info", or where there is none ".zdebug_info". 0; -ENOENT: there is none, or it has no
 * bytes in this file; -EFBIG, -ENOEXEC (damaged), -ENOMEM or what reading gave. Ended with
 * sections_free(), before or after elffile_close().
 */
int sections_find(struct elffile *file, const char *name, struct section *out);
/* The same of a section whose header is known. zdebug: by its name it is one of the older kind. */
int sections_read(struct elffile *file, const GElf_Shdr *header, bool zdebug, struct section *out);
void sections_free(struct section *section);

#endif
