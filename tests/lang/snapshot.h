/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sample of a process as BPF would have it (registers, thread pointer, ranges) and the memory
 * that is read for it: by the walkers of languages (lang_host_read()) and by remote.h (pread() of
 * SNAPSHOT_FD, which the linker gives to us: -Wl,--wrap=pread).
 *
 * Memory is kept as it is read, in pieces of 64 bytes: of a process that stands still this is a
 * cache, and afterwards a picture in which the same sample can be walked and named again.
 */
#ifndef SCONCE_TESTS_LANG_SNAPSHOT_H
#define SCONCE_TESTS_LANG_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shm/record.h"

#define SNAPSHOT_FD	     0x5c09ce
#define SNAPSHOT_RANGES_MAX  1024u
#define SNAPSHOT_FILES_MAX   512u
#define SNAPSHOT_PATH_BYTES  256u
#define SNAPSHOT_PIECE_BYTES 64u
#define SNAPSHOT_PIECES_MAX  (1u << 17)

struct snapshot_piece {
	uint64_t at; /* a multiple of SNAPSHOT_PIECE_BYTES */
	uint8_t bytes[SNAPSHOT_PIECE_BYTES];
};

/* What is written to a file, before its pieces. */
struct snapshot_head {
	uint64_t magic;
	struct record_regs regs;
	uint64_t thread_pointer;
	uint32_t made_by, ranges_n, files_n, pieces_n;
	struct record_range ranges[SNAPSHOT_RANGES_MAX];     /* sorted */
	char paths[SNAPSHOT_FILES_MAX][SNAPSHOT_PATH_BYTES]; /* of file id i + 1 */
};

struct snapshot {
	struct snapshot_head head;
	pid_t pid;	       /* not 0: what is not here yet is read from this process */
	bool everywhere;       /* what is not here is some other piece: nothing is unreadable */
	uint64_t reads, bytes; /* asked for since snapshot_begin() */
	struct snapshot_piece *pieces;
	uint32_t *index; /* 2 * SNAPSHOT_PIECES_MAX places: 1 + number of a piece, by its address */
};

bool snapshot_open(struct snapshot *snapshot);
void snapshot_close(struct snapshot *snapshot);
/* Forget all pieces. */
void snapshot_begin(struct snapshot *snapshot, pid_t pid);

/* Whoever reads from now on reads this one. */
void snapshot_use(struct snapshot *snapshot);
bool snapshot_read(struct snapshot *snapshot, uint64_t from, void *to, size_t bytes);
/* After pieces were added by hand, or moved. */
void snapshot_reindex(struct snapshot *snapshot);

bool snapshot_save(const struct snapshot *snapshot, const char *path);
bool snapshot_load(struct snapshot *snapshot, const char *path);

#endif
