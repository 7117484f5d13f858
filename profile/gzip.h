/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in one gzip member: pprof files and request bodies. */
#ifndef SCONCE_PROFILE_GZIP_H
#define SCONCE_PROFILE_GZIP_H

#include <stddef.h>
#include <stdint.h>

/* *out is malloc'ed and the caller's. 0 or -errno. */
int gzip_pack(const void *bytes, size_t len_bytes, uint8_t **out, size_t *out_bytes);

#endif
