/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#define GZIP_WINDOW 31 /* the largest window (15) + 16 for a gzip header */
#define GZIP_LEVEL  3  /* of the time that level 6 takes a third, for a tenth more bytes */

int gzip_pack(const void *bytes, size_t len_bytes, uint8_t **out, size_t *out_bytes)
{
	z_stream stream = {.next_in = (Bytef *)bytes, .avail_in = (uInt)len_bytes};
	uLong bound;
	int status;

	if (len_bytes > INT_MAX)
		return -E2BIG;
	if (deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		return -ENOMEM;
	bound = deflateBound(&stream, (uLong)len_bytes);
	*out = malloc(bound);
	if (!*out) {
		deflateEnd(&stream);
		return -ENOMEM;
	}
	stream.next_out = *out;
	stream.avail_out = (uInt)bound;
	status = deflate(&stream, Z_FINISH);
	*out_bytes = stream.total_out;
	deflateEnd(&stream);
	if (status == Z_STREAM_END)
		return 0;
	free(*out);
	*out = NULL;
	return -EIO;
}
