/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers for mapped files.
 *
 * A file is (device, inode, generation). An id is given once and never again, over restarts of the
 * sampler too, because workers and samples on their way still use the old ones. The table forgets
 * the id that was given longest ago; whoever still maps that file gets a new one when the worker
 * asks for it (NEED_FILE).
 */
#ifndef SCONCE_SAMPLER_FILES_H
#define SCONCE_SAMPLER_FILES_H

#include <stdint.h>

#include "bpf/tables.h"
#include "proto/messages.h"
#include "shm/record.h"

#define FILES_MAX	 TABLES_FILES_MAX /* ids remembered; a power of two */
#define FILES_PER_COMMIT 65536u /* ids given between two commits at most */

struct file {
	uint32_t id; /* 0 = unused slot */
	uint32_t dev_major, dev_minor;
	uint32_t next;		    /* in its hash chain: slot + 1 */
	uint64_t inode, generation; /* generation 0 = not known */
	uint32_t told;		    /* bit k: worker k knows the id */
	uint32_t theirs;	    /* bit k: that worker or one before it was told */
	uint32_t asked;		    /* bit k: the broker was asked to hand it to worker k */
	struct file_key key;	    /* as the broker opened it; all 0 = not yet */
	char path[RECORD_PATH_BYTES];
};

struct files {
	struct file file[FILES_MAX];
	uint32_t bucket[FILES_MAX]; /* slot + 1; 0 = empty */
	uint32_t last_id, limit_id, n;
};

/* last_id: the newest id that is known to have been given before this process started. */
void files_init(struct files *files, uint32_t last_id);

/* The file of this identity, made if needed; path may be "". NULL: too many since the commit. */
struct file *files_of(struct files *files, uint32_t dev_major, uint32_t dev_minor, uint64_t inode,
		      uint64_t generation, const char *path);
/* NULL = never given, or forgotten. */
struct file *files_by_id(struct files *files, uint32_t id);
/* The identity turned out to be somebody else's: the next mapping of it gets a new id. */
void files_forget(struct files *files, struct file *file);
/* last_id is in the ledger. */
void files_committed(struct files *files);

#endif
