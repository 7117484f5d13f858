/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed bytes of a foreign file (zlib, zstd, xz) into memory, piece by piece. Nothing of what the
 * file says of sizes is believed: memory grows with what has come out, up to the caller's limit,
 * and what comes out may be so many times as long as what went in, or the attempt ends.
 */
#ifndef SCONCE_SYMBOLIZER_UNPACK_H
#define SCONCE_SYMBOLIZER_UNPACK_H

#include <stddef.h>
#include <stdint.h>

/* Debug sections shrink to a third or a fifth, their strings to a tenth; a bomb to a thousandth. */
#define UNPACK_RATIO_MAX   200
#define UNPACK_RATIO_FROM  (1u << 20)  /* bytes that nobody counts */
#define UNPACK_WINDOW_LOG  25	       /* of zstd: 32 MiB, as its level 20 wants; 19 wants 8 MiB */
#define UNPACK_XZ_MEMORY   (66u << 20) /* its level 9 wants 65 MiB, the default 9 */
#define UNPACK_PIECE_BYTES 65536

enum unpack_format { UNPACK_ZLIB, UNPACK_ZSTD, UNPACK_XZ };

/* Where packed bytes come from: fill all of buf from there on. 0 or -errno. */
typedef int unpack_read_fn(void *arg, uint64_t at, void *buf, size_t bytes);

struct unpack_source {
	unpack_read_fn *read;
	void *arg;
	uint64_t bytes; /* how many there are */
};

/* A mapping of its own: `room` bytes that may be written to. */
struct unpacked {
	uint8_t *data;
	uint64_t bytes, room;
};

/*
 * Unpack at most bytes_max, which is less than 4 GiB. Several streams of zlib or zstd behind one
 * another are one text, as linkers write them. 0; -EFBIG (too much, or too much from too little),
 * -ENOEXEC (damaged or cut off), -ENOMEM or what reading gave. Then unpack_free() is not needed.
 */
int unpack(enum unpack_format format, const struct unpack_source *source, uint64_t bytes_max,
	   struct unpacked *out);
void unpack_free(struct unpacked *unpacked);

#endif
