/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory that one process writes and others read: a memfd of fixed size.
 *
 * The supervisor makes every segment and keeps the writable fd, so that a restarted owner gets the
 * same memory. The other side is given a second, read-only open file: with mode 0400 it cannot be
 * opened for writing again through /proc/self/fd, and its mappings cannot be made writable.
 * F_SEAL_FUTURE_WRITE is not used, because it would keep a restarted owner from mapping.
 */
#ifndef SCONCE_SHM_SEGMENT_H
#define SCONCE_SHM_SEGMENT_H

#include <stddef.h>

#define SEGMENT_PAGE 4096

struct segment {
	int rw; /* for the owner */
	int ro; /* for everyone else */
};

/*
 * Make a segment of `bytes` (rounded up to a page), sealed against shrinking and growing. Both fds
 * are close-on-exec. 0 or -errno.
 */
int segment_create(struct segment *segment, const char *name, size_t bytes);
void segment_close(struct segment *segment);

/* Size of a segment, checked to be sealed against shrinking. Bytes, or -errno (-EPROTO: not sealed). */
long segment_size(int fd);

/* Map all of it. NULL with errno. */
void *segment_map(int fd, size_t bytes, int writable);

#endif
