/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/blame.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

static uint64_t blame_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* The entry of what is named, else the one that may go first. */
static struct blame_file *blame_entry(struct blame *blame, uint64_t device, uint64_t inode)
{
	struct blame_file *least = &blame->files[0];

	for (struct blame_file *f = blame->files; f < blame->files + BLAME_FILES; f++) {
		if (f->points && f->device == device && f->inode == inode)
			return f;
		if (f->points < least->points)
			least = f;
	}
	return least;
}

static void blame_add(struct blame *blame, const struct blame_file *what, uint32_t points)
{
	struct blame_file *f = blame_entry(blame, what->device, what->inode);

	if (!f->points || f->device != what->device || f->inode != what->inode) {
		*f = *what;
		f->points = 0;
	}
	f->points += points;
}

void blame_resume(struct blame *blame, uint32_t stuck_ms)
{
	uint64_t age_ms = (blame_now_ns() - blame->since_ns) / 1000000;
	/* The supervisor counts from a turn, half a second long at most, and notes come behind it. */
	bool held = age_ms >= stuck_ms - stuck_ms / 4;
	bool certain = held || blame->crashed;
	struct blame_file at = blame->at;

	if (atomic_exchange(&blame->busy, 0) && (certain || at.device)) {
		blame_add(blame, &at, certain ? BLAME_CERTAIN : 1);
		at.inode = 0;
		if (held && blame->reading && at.device)
			blame_add(blame, &at, 1);
	}
	blame->crashed = blame->reading = 0;
}

void blame_begin(struct blame *blame, uint64_t device, uint64_t inode, const char *name)
{
	size_t n = strlen(name), room = sizeof(blame->at.name) - 1;

	atomic_store(&blame->busy, 0);
	blame->since_ns = blame_now_ns();
	blame->at = (struct blame_file){.device = device, .inode = inode};
	memcpy(blame->at.name, name + (n > room ? n - room : 0), n > room ? room : n);
	atomic_store(&blame->busy, device || inode);
}

void blame_end(struct blame *blame)
{
	struct blame_file *f = blame_entry(blame, blame->at.device, blame->at.inode);

	atomic_store(&blame->busy, 0);
	if (f->points < BLAME_CERTAIN && f->device == blame->at.device &&
	    f->inode == blame->at.inode)
		f->points = 0;
}

bool blame_is_final(const struct blame_file *f)
{
	return f->points >= (!f->device ? BLAME_PROCESS : f->inode ? BLAME_FILE : BLAME_DEVICE);
}

bool blame_refuses(const struct blame *blame, uint64_t device, uint64_t inode)
{
	for (int i = 0; blame && i < BLAME_FILES; i++) {
		const struct blame_file *f = &blame->files[i];

		if (f->device == device && (f->inode == inode || (device && !f->inode)) &&
		    blame_is_final(f))
			return true;
	}
	return false;
}
