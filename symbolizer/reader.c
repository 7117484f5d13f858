/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One request at most; the kernel itself stops a little below 2 GiB. */
#define READER_CHUNK_BYTES (64u << 20)
/* A read that is interrupted so often in a row is given up. */
#define READER_RETRIES 16

static int reader_restrict(struct io_uring *ring)
{
	struct io_uring_restriction rules[4] = {
	    {.opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_READ},
	    {.opcode = IORING_RESTRICTION_SQE_FLAGS_REQUIRED, .sqe_flags = IOSQE_FIXED_FILE},
	    {.opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED,
	     .sqe_flags = IOSQE_FIXED_FILE | IOSQE_ASYNC},
	    {.opcode = IORING_RESTRICTION_REGISTER_OP, .register_op = IORING_REGISTER_FILES_UPDATE},
	};
	int err = io_uring_register_files_sparse(ring, READER_FILES_MAX);

	if (err == 0)
		err = io_uring_register_restrictions(ring, rules, 4);
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

int reader_add(struct reader *reader, int fd)
{
	int slot = 0;

	while (slot < READER_FILES_MAX && reader->fds[slot] >= 0)
		slot++;
	if (slot == READER_FILES_MAX) {
		close(fd);
		return -ENFILE;
	}
	if (reader->uring &&
	    io_uring_register_files_update(&reader->ring, (unsigned)slot, &fd, 1) != 1)
		reader_drop_ring(reader);
	reader->fds[slot] = fd; /* kept beside the ring's own reference: the way back to pread */
	reader->files++;
	return slot;
}

void reader_remove(struct reader *reader, int slot)
{
	int none = -1;

	if (reader->fds[slot] < 0)
		return;
	if (reader->uring)
		io_uring_register_files_update(&reader->ring, (unsigned)slot, &none, 1);
	close(reader->fds[slot]);
	reader->fds[slot] = -1;
	reader->files--;
}

int reader_stat(const struct reader *reader, int slot, struct stat *st)
{
	return fstat(reader->fds[slot], st) ? -errno : 0;
}

static size_t reader_chunk(const struct reader_part *part)
{
	size_t left = part->len_bytes - (size_t)part->result;

	return left < READER_CHUNK_BYTES ? left : READER_CHUNK_BYTES;
}

/* Count in what one request brought. True when the part needs another one. */
static bool reader_advance(struct reader_part *part, long got, int *retries)
{
	if ((got == -EINTR || got == -EAGAIN) && ++*retries < READER_RETRIES)
		return true;
	if (got < 0) {
		part->result = got;
		return false;
	}
	part->result += got;
	return got > 0 && (size_t)part->result < part->len_bytes;
}

static void reader_read_pread(struct reader *reader, int fd, struct reader_part *part)
{
	int retries = 0;
	long got;

	if (part->len_bytes == 0 || part->result < 0)
		return;
	do {
		got = pread(fd, (char *)part->buf + part->result, reader_chunk(part),
			    (off_t)(part->offset + (uint64_t)part->result));
		if (got < 0)
			got = -errno;
		reader->reads_pread++;
	} while (reader_advance(part, got, &retries));
}

static void reader_submit(struct reader *reader, int slot, struct reader_part *part, size_t index)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&reader->ring);

	io_uring_prep_read(sqe, slot, (char *)part->buf + part->result,
			   (unsigned)reader_chunk(part), part->offset + (uint64_t)part->result);
	sqe->flags |= IOSQE_FIXED_FILE;
	io_uring_sqe_set_data64(sqe, index);
	reader->reads_uring++;
}

/* Up to READER_DEPTH parts. False when the ring is of no use any more; nothing is in flight then.
 */
static bool reader_read_ring(struct reader *reader, int slot, struct reader_part *parts, size_t n)
{
	int retries[READER_DEPTH] = {0};
	struct io_uring_cqe *cqe;
	size_t pending = 0;

	for (size_t i = 0; i < n; i++)
		if (parts[i].len_bytes > 0 && ++pending)
			reader_submit(reader, slot, &parts[i], i);
	while (pending > 0) {
		int err = io_uring_submit_and_wait(&reader->ring, 1);

		if (err < 0 && err != -EINTR && err != -EAGAIN && err != -EBUSY) {
			/* The kernel may still write into the buffers of what was submitted. */
			if (io_uring_sq_ready(&reader->ring) != pending)
				abort();
			return false;
		}
		while (io_uring_peek_cqe(&reader->ring, &cqe) == 0) {
			size_t i = io_uring_cqe_get_data64(cqe);
			long got = cqe->res;

			io_uring_cqe_seen(&reader->ring, cqe);
			if (reader_advance(&parts[i], got, &retries[i]))
				reader_submit(reader, slot, &parts[i], i);
			else
				pending--;
		}
	}
	return true;
}

void reader_read(struct reader *reader, int slot, struct reader_part *parts, size_t parts_n)
{
	for (size_t i = 0; i < parts_n; i++)
		parts[i].result = 0;
	for (size_t i = 0; i < parts_n; i += READER_DEPTH) {
		size_t n = parts_n - i < READER_DEPTH ? parts_n - i : READER_DEPTH;

		if (reader->uring && reader_read_ring(reader, slot, parts + i, n))
			continue;
		reader_drop_ring(reader);
		for (size_t k = 0; k < n; k++)
			if (parts[i + k].result >= 0 &&
			    (size_t)parts[i + k].result < parts[i + k].len_bytes)
				reader_read_pread(reader, reader->fds[slot], &parts[i + k]);
	}
}
