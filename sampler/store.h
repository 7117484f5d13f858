/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of unwind tables: whose table stands where in BPF's chunks (bpf/tables.h).
 *
 *   handed over -> copied into room that nobody reads -> checked there -> published
 *     -> withdrawn (its file id is forgotten, it has not been needed for long, or its worker broke
 *     the protocol) -> its room is given away again after TABLES_GRACE_NS
 *
 * A table that finds no room is refused. Its worker notices by samples of that file that it has to
 * walk itself, and sends it again.
 */
#ifndef SCONCE_SAMPLER_STORE_H
#define SCONCE_SAMPLER_STORE_H

#include <stdbool.h>

#include "bpf/tables.h"
#include "sampler/slices.h"
#include "shm/ledger.h"

/* Only what was not needed for so long makes room for another table. */
#define STORE_COLD_NS 5000000000ull

struct store {
	uint32_t *words;	/* all chunks, one behind the other */
	struct bpf_file *files; /* TABLES_FILES_MAX, and the one that stands for all others */
	struct slices room;	/* in units of STORE_UNIT words */
	uint32_t chunks, chunks_max;
	bool wants_chunk; /* and may have it */
	uint64_t evict_after_ns;
	uint32_t tables;
	uint64_t bytes, refused, evicted; /* the last two since they were last counted */
};

/*
 * Map the files and the chunks that there are: fds chunk_fd, chunk_fd + 1, ... Withdraws whatever a
 * former sampler published. How many files that were, or -errno.
 */
int store_open(struct store *store, int files_fd, int chunk_fd, uint64_t unwind_bytes);
/* One chunk more. 0 or -errno. The fd stays the caller's. */
int store_add_chunk(struct store *store, int fd);

/*
 * Take over the table in the first `bytes` of this memfd. 0; -ENOSPC when there is no room; -EEXIST
 * when the file has one; -EPROTO when it is none, and that is its worker's fault.
 */
int store_install(struct store *store, uint32_t file_id, uint32_t worker, int fd, uint32_t bytes,
		  uint64_t now_ns);
/* This file has none and is walked by frame pointers. withdraw: forget what was said of it. */
void store_install_none(struct store *store, uint32_t file_id, uint32_t worker, bool withdraw,
			uint64_t now_ns);
/* Withdraw all that this worker has made. */
void store_withdraw(struct store *store, uint32_t worker, uint64_t now_ns);
void store_count(struct store *store, struct ledger_writer *ledger);

#endif
