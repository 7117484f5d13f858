/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/ledger.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define READ_TRIES 100

int ledger_create(struct segment *segment, const char *name)
{
	return segment_create(segment, name, LEDGER_BYTES);
}

static void *ledger_map_checked(int fd, int writable)
{
	long size = segment_size(fd);

	if (size < (long)LEDGER_BYTES) {
		errno = size < 0 ? (int)-size : EPROTO;
		return NULL;
	}
	return segment_map(fd, LEDGER_BYTES, writable);
}

int ledger_open(struct ledger_writer *ledger, int fd)
{
	uint64_t commits;

	ledger->shared = ledger_map_checked(fd, 1);
	if (!ledger->shared)
		return -errno;
	commits = atomic_load_explicit(&ledger->shared->commits, memory_order_relaxed);
	ledger->now = ledger->shared->entry[commits & 1];
	return 0;
}

void ledger_commit(struct ledger_writer *ledger)
{
	struct ledger *shared = ledger->shared;
	uint64_t commits = atomic_load_explicit(&shared->commits, memory_order_relaxed);

	/* The commit before is seen before this entry changes; partner: the fence in ledger_read(). */
	atomic_thread_fence(memory_order_release);
	shared->entry[(commits + 1) & 1] = ledger->now;
	/* release pairs with the acquire in ledger_read(): the entry is whole before it holds */
	atomic_store_explicit(&shared->commits, commits + 1, memory_order_release);
}

void ledger_turn(struct ledger_writer *ledger)
{
	atomic_fetch_add_explicit(&ledger->shared->turns, 1, memory_order_relaxed);
}

const struct ledger *ledger_map(int fd)
{
	return ledger_map_checked(fd, 0);
}

int ledger_read(const struct ledger *ledger, struct ledger_entry *entry)
{
	uint64_t before, after;

	for (int i = 0; i < READ_TRIES; i++) {
		before = atomic_load_explicit(&ledger->commits, memory_order_acquire);
		memcpy(entry, &ledger->entry[before & 1], sizeof(*entry));
		/* Our entry is written again by the second commit from now, which begins when
		 * `commits` is one further. */
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&ledger->commits, memory_order_relaxed);
		if (after == before)
			return 0;
	}
	return -EAGAIN;
}
