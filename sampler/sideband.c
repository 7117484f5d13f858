/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads perf rings. The records are the kernel's and fixed in layout but for the path at the end of
 * MMAP2, which is only carried on. Lengths are checked all the same. The surprise: a ring lives
 * only as long as somebody has it mapped, so a restarted sampler starts with empty ones.
 */
#include "sampler/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RECORD_MAX 8192 /* MMAP2 with the longest path is half of it */

struct task_record {
	struct perf_event_header header;
	uint32_t pid, parent_pid, tid, parent_tid;
};

struct comm_record { /* the name follows */
	struct perf_event_header header;
	uint32_t pid, tid;
};

struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
};

struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t start, len, page_offset;
	uint32_t dev_major, dev_minor;
	uint64_t inode, generation;
	uint32_t prot, flags;
	char path[];
};

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

static struct perf_event_header sideband_header(const struct sideband_ring *ring)
{
	uint64_t word = sideband_word(ring, ring->cursor);
	struct perf_event_header header;

	memcpy(&header, &word, sizeof(header));
	return header;
}

static void sideband_look(struct sideband_ring *ring)
{
	struct perf_event_header header;

	if (ring->cursor == ring->end)
		return;
	header = sideband_header(ring);
	if (header.size < 16 || (header.size & 7) || header.size > ring->end - ring->cursor)
		ring->next_ns = 0; /* not the kernel's: dropped with the rest of the ring */
	else
		ring->next_ns = sideband_word(ring, ring->cursor + header.size - 8);
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

void sideband_begin(struct sideband *sideband, uint64_t now_ns)
{
	sideband->horizon_ns = now_ns;
	for (uint32_t i = 0; i < sideband->n; i++) {
		struct sideband_ring *ring = &sideband->ring[i];

		/* acquire pairs with the kernel's barrier before it moves data_head */
		ring->end = __atomic_load_n(&ring->meta->data_head, __ATOMIC_ACQUIRE);
		sideband_look(ring);
	}
	sideband_find_oldest(sideband);
}

static bool sideband_parse_task(const void *record, uint32_t len, struct sideband_event *event)
{
	const struct task_record *r = record;

	if (len < sizeof(*r))
		return false;
	event->kind = r->header.type == PERF_RECORD_FORK ? SIDEBAND_FORK : SIDEBAND_EXIT;
	event->pid = r->pid;
	event->tid = r->tid;
	event->parent_pid = r->parent_pid;
	return true;
}

static bool sideband_parse_comm(const void *record, uint32_t len, struct sideband_event *event)
{
	const struct comm_record *r = record;

	if (len < sizeof(*r) || !(r->header.misc & PERF_RECORD_MISC_COMM_EXEC))
		return false;
	event->kind = SIDEBAND_EXEC;
	event->pid = r->pid;
	event->tid = r->tid;
	return true;
}

static bool sideband_parse_map(const void *record, uint32_t len, struct sideband_event *event)
{
	const struct mmap2_record *r = record;

	if (len <= offsetof(struct mmap2_record, path) || !(r->prot & PROT_EXEC) ||
	    !memchr(r->path, 0, len - offsetof(struct mmap2_record, path)))
		return false;
	event->kind = SIDEBAND_MAP;
	event->pid = r->pid;
	event->tid = r->tid;
	event->start = r->start;
	event->end = r->start + r->len;
	event->offset = r->page_offset;
	event->path = r->path;
	if (!(r->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		event->dev_major = r->dev_major;
		event->dev_minor = r->dev_minor;
		event->inode = r->inode;
		event->generation = r->generation;
	}
	return event->start < event->end;
}

static bool sideband_parse_lost(const void *record, uint32_t len, struct sideband_event *event)
{
	const struct lost_record *r = record;

	if (len < sizeof(*r))
		return false;
	event->kind = SIDEBAND_LOST;
	event->lost = r->lost;
	return true;
}

static bool (*const parsers[PERF_RECORD_MAX])(const void *, uint32_t, struct sideband_event *) = {
    [PERF_RECORD_FORK] = sideband_parse_task, [PERF_RECORD_EXIT] = sideband_parse_task,
    [PERF_RECORD_COMM] = sideband_parse_comm, [PERF_RECORD_MMAP2] = sideband_parse_map,
    [PERF_RECORD_LOST] = sideband_parse_lost,
};

bool sideband_parse(const void *record, uint32_t len_bytes, struct sideband_event *event)
{
	const struct perf_event_header *header = record;
	uint64_t time_ns;

	if (len_bytes < sizeof(*header) + sizeof(time_ns) || header->type >= PERF_RECORD_MAX ||
	    !parsers[header->type])
		return false;
	memset(event, 0, sizeof(*event));
	memcpy(&time_ns, (const char *)record + len_bytes - sizeof(time_ns), sizeof(time_ns));
	event->time_ns = time_ns;
	return parsers[header->type](record, len_bytes - (uint32_t)sizeof(time_ns), event);
}

/* Whatever cannot be read is treated like what the kernel dropped. */
static void sideband_unreadable(struct sideband *sideband, struct sideband_ring *ring)
{
	struct sideband_event event = {.kind = SIDEBAND_LOST, .lost = 1};

	ring->cursor = ring->end;
	sideband->handle(sideband->arg, &event);
}

static void sideband_one(struct sideband *sideband, struct sideband_ring *ring)
{
	_Alignas(8) char record[RECORD_MAX];
	struct perf_event_header header = sideband_header(ring);
	struct sideband_event event;

	if (header.size < 16 || (header.size & 7) || header.size > ring->end - ring->cursor ||
	    header.size > sizeof(record)) {
		sideband_unreadable(sideband, ring);
		return;
	}
	for (uint32_t i = 0; i < header.size; i += 8) {
		uint64_t word = sideband_word(ring, ring->cursor + i);

		memcpy(record + i, &word, sizeof(word));
	}
	ring->cursor += header.size;
	if (sideband_parse(record, header.size, &event))
		sideband->handle(sideband->arg, &event);
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

bool sideband_empty(const struct sideband *sideband)
{
	return !sideband->oldest;
}
