/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads perf rings. The records are the kernel's and fixed in layout but for the path at the end of
 * MMAP2, which is only carried on. Lengths are checked all the same. The surprise: a ring lives
 * only as long as somebody has it mapped, so a restarted sampler starts with empty ones.
 */
#include "sampler/sideband.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int sideband_open(struct sideband *sideband, int fd, uint32_t pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct sideband_ring *ring = &sideband->ring[sideband->n];
	char *base;

	if (sideband->n == CONFIG_CPUS_MAX)
		return -E2BIG;
	base = mmap(NULL, (1 + (size_t)pages) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	ring->meta = (struct perf_event_mmap_page *)base;
	ring->data = base + page;
	ring->size_bytes = pages * page;
	ring->cursor = ring->end = ring->meta->data_tail;
	sideband->n++;
	return 0;
}

/* Records are multiples of 8, so an aligned word never wraps. */
static uint64_t sideband_word(const struct sideband_ring *ring, uint64_t at)
{
	uint64_t word;

	memcpy(&word, ring->data + (at & (ring->size_bytes - 1)), sizeof(word));
	return word;
}

/* Bytes of the next record; 0 = not the kernel's, and nothing behind it can be found. */
static uint32_t sideband_length(const struct sideband_ring *ring)
{
	uint64_t word = sideband_word(ring, ring->cursor);
	struct perf_event_header header;

	memcpy(&header, &word, sizeof(header));
	if (header.size < 16 || (header.size & 7) || header.size > ring->end - ring->cursor ||
	    header.size > SIDEBAND_RECORD_MAX)
		return 0;
	return header.size;
}

static void sideband_look(struct sideband_ring *ring)
{
	uint32_t len = ring->cursor != ring->end ? sideband_length(ring) : 0;

	ring->next_ns = len ? sideband_word(ring, ring->cursor + len - 8) : 0;
}

static void sideband_find_oldest(struct sideband *sideband)
{
	sideband->oldest = NULL;
	for (uint32_t i = 0; i < sideband->n; i++) {
		struct sideband_ring *ring = &sideband->ring[i];

		if (ring->cursor != ring->end &&
		    (!sideband->oldest || ring->next_ns < sideband->oldest->next_ns))
			sideband->oldest = ring;
	}
}

bool sideband_begin(struct sideband *sideband, uint64_t now_ns)
{
	sideband->horizon_ns = now_ns;
	for (uint32_t i = 0; i < sideband->n; i++) {
		struct sideband_ring *ring = &sideband->ring[i];

		/* acquire pairs with the kernel's barrier before it moves data_head */
		ring->end = __atomic_load_n(&ring->meta->data_head, __ATOMIC_ACQUIRE);
		sideband_look(ring);
	}
	sideband_find_oldest(sideband);
	return sideband->oldest;
}

/* Shortest record by type, without the time; 0 = of no interest. */
static const uint32_t shortest[PERF_RECORD_MAX] = {
    [PERF_RECORD_FORK] = sizeof(((union sideband_record *)0)->task),
    [PERF_RECORD_EXIT] = sizeof(((union sideband_record *)0)->task),
    [PERF_RECORD_COMM] = sizeof(((union sideband_record *)0)->comm),
    [PERF_RECORD_LOST] = sizeof(((union sideband_record *)0)->lost),
    [PERF_RECORD_MMAP2] = offsetof(union sideband_record, mmap2.path) + 8,
};

static void sideband_one(struct sideband *sideband, struct sideband_ring *ring)
{
	static union sideband_record record;
	uint32_t len = sideband_length(ring), type;

	if (len == 0) {
		ring->cursor = ring->end;
		record.header.type = PERF_RECORD_LOST;
		record.lost.records = 1;
		sideband->handle(sideband->arg, &record, 0);
		return;
	}
	for (uint32_t i = 0; i < len / 8; i++, ring->cursor += 8)
		record.word[i] = sideband_word(ring, ring->cursor);
	type = record.header.type;
	if (type >= PERF_RECORD_MAX || !shortest[type] || len < shortest[type] + 8)
		return;
	/* A path ends before the time whatever the kernel wrote. */
	((char *)&record)[len - 9] = type == PERF_RECORD_MMAP2 ? 0 : ((char *)&record)[len - 9];
	sideband->handle(sideband->arg, &record, record.word[len / 8 - 1]);
}

void sideband_apply(struct sideband *sideband, uint64_t until_ns)
{
	struct sideband_ring *ring;

	if (until_ns > sideband->horizon_ns)
		until_ns = sideband->horizon_ns;
	while ((ring = sideband->oldest) && ring->next_ns <= until_ns) {
		sideband_one(sideband, ring);
		/* release: the record is copied before the kernel may write there again */
		__atomic_store_n(&ring->meta->data_tail, ring->cursor, __ATOMIC_RELEASE);
		sideband_look(ring);
		sideband_find_oldest(sideband);
	}
}
