/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4) for the hash that names a file on the wire (htlhash). At most 8 KiB per file
 * go through it, which is why it is plain C and no library of a megabyte.
 */
#ifndef SCONCE_SYMBOLIZER_SHA256_H
#define SCONCE_SYMBOLIZER_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t block[64];
};

void sha256_init(struct sha256 *hash);
void sha256_update(struct sha256 *hash, const void *data, size_t bytes);
void sha256_final(struct sha256 *hash, uint8_t digest[32]);

#endif
