/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reading end of BPF's ring buffer, with a private cursor: records are read, the batch is
 * committed, and only then is the room given back.
 */
#ifndef SCONCE_SAMPLER_RING_H
#define SCONCE_SAMPLER_RING_H

#include <stddef.h>
#include <stdint.h>

struct ring {
	_Atomic uint64_t *consumer;
	const _Atomic uint64_t *producer;
	const char *data; /* size_bytes, mapped twice by the kernel */
	uint64_t size_bytes;
	uint64_t cursor;
	uint64_t end; /* of what ring_begin() saw */
};

/* Map the ring buffer behind fd. 0 or -errno. */
int ring_open(struct ring *ring, int fd, uint64_t size_bytes);
/* Go on at the committed position, if the ring can be there. */
void ring_resume(struct ring *ring, uint64_t committed);
/* See what is there now; ring_next() goes no further. */
void ring_begin(struct ring *ring);
/*
 * The next record and its length. NULL when there is none, or when the next is still being written.
 * *len_bytes is what the kernel says; the record holds nothing that was checked.
 */
const void *ring_next(struct ring *ring, uint32_t *len_bytes);
/* Give back the room of everything read. */
void ring_release(struct ring *ring);

#endif
