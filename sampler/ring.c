/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumer of a BPF_MAP_TYPE_RINGBUF. libbpf's moves the consumer position while it reads; ours
 * must not move before the ledger is written, which is why there is one here.
 *
 * The kernel's layout: page 0 the consumer position, page 1 the producer position, then the data,
 * twice. A record has an 8 byte header: u32 length with two flag bits, u32 for the kernel's own
 * use.
 */
#include "sampler/ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

int ring_open(struct ring *ring, int fd, uint64_t size_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *base;

	ring->consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring->consumer == MAP_FAILED)
		return -errno;
	base = mmap(NULL, page + 2 * size_bytes, PROT_READ, MAP_SHARED, fd, (off_t)page);
	if (base == MAP_FAILED)
		return -errno;
	ring->producer = (const _Atomic uint64_t *)base;
	ring->data = base + page;
	ring->size_bytes = size_bytes;
	ring->cursor = ring->end = atomic_load_explicit(ring->consumer, memory_order_relaxed);
	return 0;
}

void ring_resume(struct ring *ring, uint64_t committed)
{
	uint64_t end = atomic_load_explicit(ring->producer, memory_order_acquire);

	if (committed <= ring->cursor || committed > end)
		return;
	ring->cursor = committed;
	ring_release(ring);
}

void ring_begin(struct ring *ring)
{
	/* acquire pairs with the kernel's release when it reserves: headers up to here are there */
	ring->end = atomic_load_explicit(ring->producer, memory_order_acquire);
}

const void *ring_next(struct ring *ring, uint32_t *len_bytes)
{
	while (ring->cursor < ring->end) {
		const char *record = ring->data + (ring->cursor & (ring->size_bytes - 1));
		/* acquire pairs with the kernel's release when it clears the busy bit */
		uint32_t word = atomic_load_explicit((const _Atomic uint32_t *)(const void *)record,
						     memory_order_acquire);
		uint32_t len = word & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		uint64_t all = ((uint64_t)len + BPF_RINGBUF_HDR_SZ + 7) & ~7ull;

		if (word & BPF_RINGBUF_BUSY_BIT)
			return NULL;
		if (all > ring->end - ring->cursor) {
			/* Never by an honest kernel: nothing that follows can be found. */
			ring->cursor = ring->end;
			*len_bytes = 0;
			return record;
		}
		ring->cursor += all;
		if (word & BPF_RINGBUF_DISCARD_BIT)
			continue;
		*len_bytes = len;
		return record + BPF_RINGBUF_HDR_SZ;
	}
	return NULL;
}

void ring_release(struct ring *ring)
{
	/* release: all reads are done before the kernel writes here again */
	atomic_store_explicit(ring->consumer, ring->cursor, memory_order_release);
}
