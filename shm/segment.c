/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* linux/memfd.h of 6.1 lacks it; 6.3 and later know it, older kernels answer EINVAL. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

static int segment_memfd(const char *name)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

	return fd >= 0 || errno != EINVAL ? fd : memfd_create(name, flags);
}

static int segment_reopen(int fd)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

int segment_create(struct segment *segment, const char *name, size_t bytes)
{
	size_t rounded = (bytes + SEGMENT_PAGE - 1) & ~(size_t)(SEGMENT_PAGE - 1);
	int err;

	segment->ro = -1;
	segment->rw = segment_memfd(name);
	if (segment->rw < 0)
		return -errno;
	if (ftruncate(segment->rw, (off_t)rounded) || fchmod(segment->rw, 0400) ||
	    fcntl(segment->rw, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		goto fail;
	segment->ro = segment_reopen(segment->rw);
	if (segment->ro >= 0)
		return 0;
fail:
	err = -errno;
	segment_close(segment);
	return err;
}

void segment_close(struct segment *segment)
{
	if (segment->rw >= 0)
		close(segment->rw);
	if (segment->ro >= 0)
		close(segment->ro);
	segment->rw = segment->ro = -1;
}

long segment_size(int fd)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0)
		return -errno;
	if ((seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
		return -EPROTO;
	if (fstat(fd, &st))
		return -errno;
	return (long)st.st_size;
}

void *segment_map(int fd, size_t bytes, int writable)
{
	int prot = PROT_READ | (writable ? PROT_WRITE : 0);
	void *p = mmap(NULL, bytes, prot, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}
