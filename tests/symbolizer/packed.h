/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files with packed sections, made in memory. */
#ifndef SCONCE_TESTS_PACKED_H
#define SCONCE_TESTS_PACKED_H

#include <stddef.h>
#include <stdint.h>

enum packed_as {
	PACKED_PLAIN,
	PACKED_ZLIB,
	PACKED_ZSTD,
	PACKED_ZDEBUG,
	PACKED_XZ,
	PACKED_XZ_BARE, /* without a sum: damage goes through to who reads it */
};

struct packed_section {
	const char *name;
	uint32_t type; /* 0 = SHT_PROGBITS */
	uint32_t link;
	uint64_t flags; /* SHF_COMPRESSED where it applies */
	const void *data;
	size_t bytes;
};

/*
 * What a section holds that has these bytes packed so, headers included; claimed: the size that the
 * header states. How many bytes there are in `out`; 0 = they do not fit.
 */
size_t packed_data(enum packed_as as, const void *data, size_t bytes, uint64_t claimed,
		   uint8_t *out, size_t room);
/* A file of these sections; number 0 and the names are added. How long it is; 0 = it does not fit.
 */
size_t packed_elf(const struct packed_section *sections, size_t n, uint8_t *out, size_t room);

#endif
