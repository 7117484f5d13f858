/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/reader.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One request at most; the kernel itself stops a little below 2 GiB. */
#define READER_CHUNK_BYTES (64u << 20)
/* A read that is interrupted so often in a row is given up. */
#define READER_RETRIES 16

/* A file's server may never answer, and then neither a kill helps. */
static void reader_waits(const struct reader *reader, uint32_t waits)
{
	if (reader->waits)
		atomic_store(reader->waits, waits);
}

static int reader_restrict(struct io_uring *ring)
{
	/* What is not allowed is refused; FIXED_FILE is allowed, being required. */
	struct io_uring_restriction rules[] = {
	    {.opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_READ},
	    {.opcode = IORING_RESTRICTION_SQE_FLAGS_REQUIRED, .sqe_flags = IOSQE_FIXED_FILE},
	    {.opcode = IORING_RESTRICTION_REGISTER_OP, .register_op = IORING_REGISTER_FILES_UPDATE},
	};
	int err = io_uring_register_files_sparse(ring, READER_FILES_MAX);

	if (err == 0)
		err = io_uring_register_restrictions(ring, rules, 3);
	return err ? err : io_uring_enable_rings(ring);
}

void reader_open(struct reader *reader, bool with_uring)
{
	memset(reader, 0, sizeof(*reader));
	memset(reader->fds, 0xff, sizeof(reader->fds));
	/* Whatever the reason is (sysctl, seccomp, an old kernel), pread does the same. */
	if (!with_uring ||
	    io_uring_queue_init(READER_DEPTH, &reader->ring, IORING_SETUP_R_DISABLED))
		return;
	if (reader_restrict(&reader->ring))
		io_uring_queue_exit(&reader->ring);
	else
		reader->uring = true;
}

static void reader_drop_ring(struct reader *reader)
{
	if (reader->uring)
		io_uring_queue_exit(&reader->ring);
	reader->uring = false;
}

void reader_close(struct reader *reader)
{
	for (int i = 0; i < READER_FILES_MAX; i++)
		reader_remove(reader, i);
	reader_drop_ring(reader);
}

/*
 * Whether the file's filesystem reads without waiting. Where it does not (tmpfs, overlayfs,
 * FUSE) the kernel hands each read to a thread that it adds to this process: slower than pread, and
 * where it can have no thread (pids.max, RLIMIT_NPROC) it cancels the read after 50 ms.
 */
static bool reader_ring_suits(struct reader *reader, unsigned slot)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&reader->ring);
	struct io_uring_cqe *cqe;
	static char byte; /* of no use to anybody; static, so that it may be written at any time */
	int result;

	io_uring_prep_read(sqe, (int)slot, &byte, 1, 0);
	sqe->flags |= IOSQE_FIXED_FILE;
	sqe->rw_flags = RWF_NOWAIT;
	/* Without waiting it is done, one way or the other, when it is submitted. */
	if (io_uring_submit(&reader->ring) != 1 || io_uring_peek_cqe(&reader->ring, &cqe)) {
		reader_drop_ring(reader);
		return false;
	}
	result = cqe->res;
	io_uring_cqe_seen(&reader->ring, cqe);
	return result >= 0 || result == -EAGAIN;
}

static void reader_set_ring_file(struct reader *reader, int slot, int fd)
{
	if (reader->uring &&
	    io_uring_register_files_update(&reader->ring, (unsigned)slot, &fd, 1) != 1)
		reader_drop_ring(reader);
}

int reader_add(struct reader *reader, int fd)
{
	int slot = 0;

	while (slot < READER_FILES_MAX && reader->fds[slot] >= 0)
		slot++;
	if (slot == READER_FILES_MAX) {
		close(fd);
		return -ENFILE;
	}
	reader_set_ring_file(reader, slot, fd);
	reader->suits[slot] = reader->uring && reader_ring_suits(reader, (unsigned)slot);
	if (!reader->suits[slot])
		reader_set_ring_file(reader, slot, -1);
	reader->fds[slot] = fd; /* kept beside the ring's own reference: the way back to pread */
	reader->files++;
	return slot;
}

void reader_remove(struct reader *reader, int slot)
{
	if (reader->fds[slot] < 0)
		return;
	if (reader->suits[slot])
		reader_set_ring_file(reader, slot, -1);
	reader_waits(reader, 1);
	close(reader->fds[slot]);
	reader_waits(reader, 0);
	reader->fds[slot] = -1;
	reader->files--;
}

int reader_stat(const struct reader *reader, int slot, struct stat *st)
{
	int err;

	reader_waits(reader, 1);
	err = fstat(reader->fds[slot], st) ? -errno : 0;
	reader_waits(reader, 0);
	return err;
}

static size_t reader_chunk(const struct reader_part *part)
{
	size_t left = part->len_bytes - (size_t)part->result;

	return left < READER_CHUNK_BYTES ? left : READER_CHUNK_BYTES;
}

static void reader_read_pread(struct reader *reader, int fd, struct reader_part *part)
{
	int retries = 0;
	long got;

	if (part->result < 0) /* the ring's word is not the last */
		part->result = 0;
	while ((size_t)part->result < part->len_bytes) {
		got = pread(fd, (char *)part->buf + part->result, reader_chunk(part),
			    (off_t)(part->offset + (uint64_t)part->result));
		reader->reads_pread++;
		if (got < 0 && (errno == EINTR || errno == EAGAIN) && ++retries < READER_RETRIES)
			continue;
		if (got < 0)
			part->result = -errno;
		if (got <= 0)
			return;
		part->result += got;
	}
}

static void reader_submit(struct reader *reader, int slot, struct reader_part *part)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&reader->ring);

	io_uring_prep_read(sqe, slot, part->buf, (unsigned)reader_chunk(part), part->offset);
	sqe->flags |= IOSQE_FIXED_FILE;
	io_uring_sqe_set_data(sqe, part);
	reader->reads_uring++;
}

/* One try for each of up to READER_DEPTH parts. False when the ring is of no use any more; nothing
 * is in flight then. */
static bool reader_read_ring(struct reader *reader, int slot, struct reader_part *parts, size_t n)
{
	struct io_uring *ring = &reader->ring;
	struct io_uring_cqe *cqe;
	size_t pending = 0;
	bool works = true;

	for (size_t i = 0; i < n; i++)
		if (parts[i].len_bytes > 0 && ++pending)
			reader_submit(reader, slot, &parts[i]);
	while (pending > 0) {
		int err = io_uring_submit_and_wait(ring, 1);

		while (io_uring_peek_cqe(ring, &cqe) == 0) {
			struct reader_part *part = io_uring_cqe_get_data(cqe);

			part->result = cqe->res;
			works &= cqe->res != -ECANCELED; /* no thread was to be had */
			io_uring_cqe_seen(ring, cqe);
			pending--;
		}
		if (err >= 0 || pending == 0)
			continue;
		if (io_uring_sq_ready(ring) == pending)
			return false;
		/* The kernel may still write into the buffers of what was submitted. */
		if (err != -EINTR && err != -EAGAIN && err != -EBUSY)
			abort();
	}
	return works;
}

/*
 * What the ring did not bring whole, for whatever reason, pread does, and its answer counts: so
 * both ways give the same. One part alone is read by pread: there is nothing to be done meanwhile,
 * and it costs half as much.
 */
void reader_read(struct reader *reader, int slot, struct reader_part *parts, size_t parts_n)
{
	for (size_t i = 0; i < parts_n; i++)
		parts[i].result = 0;
	reader_waits(reader, 1);
	for (size_t i = 0; i < parts_n; i += READER_DEPTH) {
		size_t n = parts_n - i < READER_DEPTH ? parts_n - i : READER_DEPTH;

		if (n > 1 && reader->uring && reader->suits[slot] &&
		    !reader_read_ring(reader, slot, parts + i, n))
			reader_drop_ring(reader);
		for (size_t k = i; k < i + n; k++)
			reader_read_pread(reader, reader->fds[slot], &parts[k]);
	}
	reader_waits(reader, 0);
}
