/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/lang/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bpf/lang.bpf.h"
#include "symbolizer/remote.h"

#define SNAPSHOT_MAGIC	   0x31676d6965636e6full
#define SNAPSHOT_INDEX	   (2 * SNAPSHOT_PIECES_MAX)
#define SNAPSHOT_READ_MAX  REMOTE_BYTES_MAX
#define SNAPSHOT_PIECES(n) (((n) + 2 * SNAPSHOT_PIECE_BYTES) / SNAPSHOT_PIECE_BYTES)

static struct snapshot *current;

bool snapshot_open(struct snapshot *snapshot)
{
	memset(snapshot, 0, sizeof(*snapshot));
	snapshot->pieces = calloc(SNAPSHOT_PIECES_MAX, sizeof(*snapshot->pieces));
	snapshot->index = calloc(SNAPSHOT_INDEX, sizeof(*snapshot->index));
	if (snapshot->pieces && snapshot->index)
		return true;
	snapshot_close(snapshot);
	return false;
}

void snapshot_close(struct snapshot *snapshot)
{
	if (current == snapshot)
		current = NULL;
	free(snapshot->pieces);
	free(snapshot->index);
	snapshot->pieces = NULL;
	snapshot->index = NULL;
}

void snapshot_begin(struct snapshot *snapshot, pid_t pid)
{
	snapshot->pid = pid;
	snapshot->reads = snapshot->bytes = 0;
	snapshot->head.pieces_n = 0;
	memset(snapshot->index, 0, SNAPSHOT_INDEX * sizeof(*snapshot->index));
}

void snapshot_use(struct snapshot *snapshot)
{
	current = snapshot;
}

static uint32_t snapshot_hash(uint64_t at)
{
	return (uint32_t)((at / SNAPSHOT_PIECE_BYTES * 0x9e3779b97f4a7c15ull) >> 40);
}

/* Where the piece is in the index, or would be. */
static uint32_t snapshot_place(const struct snapshot *snapshot, uint64_t at)
{
	uint32_t i = snapshot_hash(at) % SNAPSHOT_INDEX;

	while (snapshot->index[i] && snapshot->pieces[snapshot->index[i] - 1].at != at)
		i = (i + 1) % SNAPSHOT_INDEX;
	return i;
}

static const struct snapshot_piece *snapshot_find(const struct snapshot *snapshot, uint64_t at)
{
	uint32_t found = snapshot->index[snapshot_place(snapshot, at)];

	if (found)
		return &snapshot->pieces[found - 1];
	if (snapshot->everywhere && snapshot->head.pieces_n)
		return &snapshot->pieces[snapshot_hash(at) % snapshot->head.pieces_n];
	return NULL;
}

static void snapshot_add(struct snapshot *snapshot, uint64_t at, const void *bytes)
{
	uint32_t place = snapshot_place(snapshot, at);

	if (snapshot->index[place] || snapshot->head.pieces_n == SNAPSHOT_PIECES_MAX)
		return;
	snapshot->pieces[snapshot->head.pieces_n].at = at;
	memcpy(snapshot->pieces[snapshot->head.pieces_n].bytes, bytes, SNAPSHOT_PIECE_BYTES);
	snapshot->index[place] = ++snapshot->head.pieces_n;
}

void snapshot_reindex(struct snapshot *snapshot)
{
	memset(snapshot->index, 0, SNAPSHOT_INDEX * sizeof(*snapshot->index));
	for (uint32_t i = 0; i < snapshot->head.pieces_n; i++) {
		uint32_t place = snapshot_place(snapshot, snapshot->pieces[i].at);

		if (!snapshot->index[place])
			snapshot->index[place] = i + 1;
	}
}

/* Whole pieces, which need no page that the bytes asked for do not need. */
static void snapshot_fetch(struct snapshot *snapshot, uint64_t from, size_t bytes)
{
	static uint8_t buf[SNAPSHOT_PIECES(SNAPSHOT_READ_MAX) * SNAPSHOT_PIECE_BYTES];
	uint64_t start = from - from % SNAPSHOT_PIECE_BYTES, end = from + bytes;
	size_t n = (size_t)((end - start + SNAPSHOT_PIECE_BYTES - 1) / SNAPSHOT_PIECE_BYTES);
	struct iovec to = {buf, n * SNAPSHOT_PIECE_BYTES},
		     what = {(void *)start, n * SNAPSHOT_PIECE_BYTES};
	ssize_t got = process_vm_readv(snapshot->pid, &to, 1, &what, 1, 0);

	for (size_t i = 0; got > 0 && i < (size_t)got / SNAPSHOT_PIECE_BYTES; i++)
		snapshot_add(snapshot, start + i * SNAPSHOT_PIECE_BYTES,
			     buf + i * SNAPSHOT_PIECE_BYTES);
}

static bool snapshot_has(const struct snapshot *snapshot, uint64_t from, uint64_t end)
{
	for (uint64_t at = from - from % SNAPSHOT_PIECE_BYTES; at < end; at += SNAPSHOT_PIECE_BYTES)
		if (!snapshot_find(snapshot, at))
			return false;
	return true;
}

bool snapshot_read(struct snapshot *snapshot, uint64_t from, void *to, size_t bytes)
{
	uint64_t end = from + bytes;

	snapshot->reads++;
	snapshot->bytes += bytes;
	if (end < from || end > 1ull << 48 || bytes > SNAPSHOT_READ_MAX)
		return false;
	if (snapshot->pid && !snapshot_has(snapshot, from, end))
		snapshot_fetch(snapshot, from, bytes);
	if (!snapshot_has(snapshot, from, end))
		return false;
	while (from < end) {
		uint64_t in = from % SNAPSHOT_PIECE_BYTES, n = SNAPSHOT_PIECE_BYTES - in;

		if (n > end - from)
			n = end - from;
		memcpy(to, snapshot_find(snapshot, from - in)->bytes + in, n);
		to = (char *)to + n;
		from += n;
	}
	return true;
}

/* What bpf/lang.bpf.h asks for. */
int lang_host_read(void *to, __u32 bytes, __u64 from)
{
	return current && snapshot_read(current, from, to, bytes) ? 0 : -EFAULT;
}

/* What symbolizer/remote.c reads by. */
ssize_t __real_pread(int fd, void *to, size_t bytes, off_t from);
ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t from);
ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t from)
{
	if (fd != SNAPSHOT_FD)
		return __real_pread(fd, to, bytes, from);
	if (current && snapshot_read(current, (uint64_t)from, to, bytes))
		return (ssize_t)bytes;
	errno = EIO;
	return -1;
}

bool snapshot_save(const struct snapshot *snapshot, const char *path)
{
	struct snapshot_head head = snapshot->head;
	FILE *f = fopen(path, "wb");
	bool written;

	if (!f)
		return false;
	head.magic = SNAPSHOT_MAGIC;
	written =
	    fwrite(&head, sizeof(head), 1, f) == 1 &&
	    fwrite(snapshot->pieces, sizeof(*snapshot->pieces), head.pieces_n, f) == head.pieces_n;
	return !fclose(f) && written;
}

bool snapshot_load(struct snapshot *snapshot, const char *path)
{
	FILE *f = fopen(path, "rb");
	struct snapshot_head *head = &snapshot->head;
	bool whole;

	if (!f)
		return false;
	snapshot_begin(snapshot, 0);
	whole =
	    fread(head, sizeof(*head), 1, f) == 1 && head->magic == SNAPSHOT_MAGIC &&
	    head->ranges_n <= SNAPSHOT_RANGES_MAX && head->files_n <= SNAPSHOT_FILES_MAX &&
	    head->pieces_n <= SNAPSHOT_PIECES_MAX &&
	    fread(snapshot->pieces, sizeof(*snapshot->pieces), head->pieces_n, f) == head->pieces_n;
	fclose(f);
	if (!whole)
		head->pieces_n = 0;
	for (uint32_t i = 0; i < SNAPSHOT_FILES_MAX; i++)
		head->paths[i][SNAPSHOT_PATH_BYTES - 1] = 0;
	snapshot_reindex(snapshot);
	return whole;
}
