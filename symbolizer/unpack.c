/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/unpack.h"

#include <errno.h>
#include <lzma.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>

#define FIRST_ROOM_BYTES (256u << 10)

struct run {
	const struct unpack_source *source;
	struct unpacked *out;
	uint64_t taken, bytes_max; /* packed bytes that were read; what may come out */
	const uint8_t *in;	   /* of `piece`, not used yet */
	size_t in_n;
	union {
		z_stream zlib;
		ZSTD_DStream *zstd;
		lzma_stream xz;
	} state;
	uint8_t piece[UNPACK_PIECE_BYTES];
};

/*
 * A format. step: from run->in to room bytes at `to`; moves run->in on and sets how much came.
 * 1: a stream is at its end; 0: there is more; or -errno.
 */
struct format {
	int (*begin)(struct run *run);
	int (*step)(struct run *run, uint8_t *to, size_t room, size_t *came);
	void (*end)(struct run *run);
};

static int unpack_begin_zlib(struct run *run)
{
	return inflateInit(&run->state.zlib) == Z_OK ? 0 : -ENOMEM;
}

static int unpack_step_zlib(struct run *run, uint8_t *to, size_t room, size_t *came)
{
	z_stream *z = &run->state.zlib;
	int result;

	z->next_in = (uint8_t *)run->in;
	z->avail_in = (uInt)run->in_n;
	z->next_out = to;
	z->avail_out = (uInt)room;
	result = inflate(z, Z_NO_FLUSH);
	run->in = z->next_in;
	run->in_n = z->avail_in;
	*came = room - z->avail_out;
	if (result == Z_STREAM_END)
		return inflateReset(z) == Z_OK ? 1 : -ENOEXEC;
	return result == Z_OK || result == Z_BUF_ERROR ? 0
	       : result == Z_MEM_ERROR		       ? -ENOMEM
						       : -ENOEXEC;
}

static void unpack_end_zlib(struct run *run)
{
	inflateEnd(&run->state.zlib);
}

static int unpack_begin_zstd(struct run *run)
{
	run->state.zstd = ZSTD_createDStream();
	if (!run->state.zstd)
		return -ENOMEM;
	ZSTD_DCtx_setParameter(run->state.zstd, ZSTD_d_windowLogMax, UNPACK_WINDOW_LOG);
	return 0;
}

static int unpack_step_zstd(struct run *run, uint8_t *to, size_t room, size_t *came)
{
	ZSTD_inBuffer in = {run->in, run->in_n, 0};
	ZSTD_outBuffer out = {to, room, 0};
	size_t result = ZSTD_decompressStream(run->state.zstd, &out, &in);

	run->in += in.pos;
	run->in_n -= in.pos;
	*came = out.pos;
	if (ZSTD_isError(result))
		return -ENOEXEC;
	return result == 0;
}

static void unpack_end_zstd(struct run *run)
{
	ZSTD_freeDStream(run->state.zstd);
}

static int unpack_begin_xz(struct run *run)
{
	run->state.xz = (lzma_stream)LZMA_STREAM_INIT;
	return lzma_stream_decoder(&run->state.xz, UNPACK_XZ_MEMORY, 0) == LZMA_OK ? 0 : -ENOMEM;
}

static int unpack_step_xz(struct run *run, uint8_t *to, size_t room, size_t *came)
{
	lzma_stream *xz = &run->state.xz;
	lzma_ret result;

	xz->next_in = run->in;
	xz->avail_in = run->in_n;
	xz->next_out = to;
	xz->avail_out = room;
	result = lzma_code(xz, LZMA_RUN);
	run->in = xz->next_in;
	run->in_n = xz->avail_in;
	*came = room - xz->avail_out;
	if (result == LZMA_STREAM_END)
		return 1;
	return result == LZMA_OK || result == LZMA_BUF_ERROR		   ? 0
	       : result == LZMA_MEM_ERROR || result == LZMA_MEMLIMIT_ERROR ? -ENOMEM
									   : -ENOEXEC;
}

static void unpack_end_xz(struct run *run)
{
	lzma_end(&run->state.xz);
}

static const struct format formats[] = {
    [UNPACK_ZLIB] = {unpack_begin_zlib, unpack_step_zlib, unpack_end_zlib},
    [UNPACK_ZSTD] = {unpack_begin_zstd, unpack_step_zstd, unpack_end_zstd},
    [UNPACK_XZ] = {unpack_begin_xz, unpack_step_xz, unpack_end_xz},
};

static int unpack_refill(struct run *run)
{
	uint64_t left = run->source->bytes - run->taken;
	size_t n = left < sizeof(run->piece) ? left : sizeof(run->piece);
	int err = n ? run->source->read(run->source->arg, run->taken, run->piece, n) : 0;

	run->in = run->piece;
	run->in_n = n;
	run->taken += n;
	return err;
}

/* To `room` bytes; 0 frees. What may be written to counts as our memory, used or not. */
static int unpack_resize(struct unpacked *out, uint64_t room)
{
	void *p;

	if (room == out->room)
		return 0;
	p = out->data
		? mremap(out->data, out->room, room, MREMAP_MAYMOVE)
		: mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	out->data = p;
	out->room = room;
	return 0;
}

/* Make room, where there may be more. */
static int unpack_grow(struct run *run)
{
	struct unpacked *out = run->out;
	uint64_t used = run->taken - run->in_n, room;

	if (out->bytes > UNPACK_RATIO_FROM && out->bytes / UNPACK_RATIO_MAX > used)
		return -EFBIG;
	if (out->bytes < out->room || out->room >= run->bytes_max)
		return 0;
	room = out->room ? out->room * 2 : FIRST_ROOM_BYTES;
	return unpack_resize(out, room < run->bytes_max ? room : run->bytes_max);
}

/* Until nothing is left of the source. */
static int unpack_all(struct run *run, const struct format *format)
{
	for (;;) {
		size_t came = 0, before;
		int result = run->in_n ? 0 : unpack_refill(run);

		if (result == 0)
			result = unpack_grow(run);
		if (result)
			return result;
		before = run->in_n;
		result = format->step(run, run->out->data + run->out->bytes,
				      run->out->room - run->out->bytes, &came);
		run->out->bytes += came;
		if (result < 0)
			return result;
		if (result == 1 && run->in_n == 0 && run->taken == run->source->bytes)
			return 0;
		/* Behind one stream begins another; not of xz, which nobody writes so. */
		if (result == 1 && format == &formats[UNPACK_XZ])
			return 0;
		if (came == 0 && before == run->in_n)
			return run->in_n && run->out->bytes == run->bytes_max ? -EFBIG : -ENOEXEC;
	}
}

int unpack(enum unpack_format format, const struct unpack_source *source, uint64_t bytes_max,
	   struct unpacked *out)
{
	static struct run run; /* a worker has one thread, and its stack is not for 64 KiB */
	int err;

	memset(out, 0, sizeof(*out));
	memset(&run, 0, offsetof(struct run, piece));
	run.source = source;
	run.out = out;
	run.bytes_max = bytes_max;
	if (source->bytes == 0 || bytes_max == 0)
		return -ENOEXEC;
	err = formats[format].begin(&run);
	if (err)
		return err;
	err = unpack_all(&run, &formats[format]);
	formats[format].end(&run);
	if (err == 0 && out->bytes == 0)
		err = -ENOEXEC;
	if (err == 0)
		err = unpack_resize(out, out->bytes);
	if (err)
		unpack_free(out);
	return err;
}

void unpack_free(struct unpacked *unpacked)
{
	if (unpacked->data)
		munmap(unpacked->data, unpacked->room);
	memset(unpacked, 0, sizeof(*unpacked));
}
