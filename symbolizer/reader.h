/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads parts of files that others own: several at once through io_uring; by pread one alone, what
 * the ring did not bring, and everything where there is no ring or where the file's filesystem does
 * not suit it. The results are the same. kallsyms and modules are read elsewhere, by pread: they
 * are the kernel's own, in one piece, and procfs does not suit the ring.
 *
 * The ring is made before the sandbox closes. It can do one thing, READ of a registered file: a
 * ring without restrictions would be a way around seccomp. A file is never mapped, because its
 * owner may truncate it, and then a load from the mapping is a SIGBUS; a read is merely short.
 */
#ifndef SCONCE_SYMBOLIZER_READER_H
#define SCONCE_SYMBOLIZER_READER_H

#include <liburing.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define READER_FILES_MAX 512
#define READER_DEPTH	 32

struct reader {
	struct io_uring ring;
	bool uring;
	int fds[READER_FILES_MAX];    /* -1 = free slot */
	bool suits[READER_FILES_MAX]; /* the file is in the ring */
	uint32_t files;
	uint64_t reads_uring, reads_pread;
	_Atomic uint32_t *waits; /* not 0 while a filesystem is waited for; NULL = nobody looks */
};

struct reader_part {
	void *buf;
	size_t len_bytes;
	uint64_t offset;
	long result; /* bytes read: short only at the end of the file; or -errno */
};

/* with_uring: try to get a ring; without one reads go through pread. Never fails. */
void reader_open(struct reader *reader, bool with_uring);
void reader_close(struct reader *reader);

/* Takes the fd, in every case. The slot that it got, or -errno (-ENFILE: no slot is free). */
int reader_add(struct reader *reader, int fd);
void reader_remove(struct reader *reader, int slot);

/* fstat() of the file in this slot. */
int reader_stat(const struct reader *reader, int slot, struct stat *st);

/* Fill all parts. */
void reader_read(struct reader *reader, int slot, struct reader_part *parts, size_t parts_n);

#endif
