/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwind tables of files: compiled when a walk first needs one (by this worker, or by the one
 * that owns the file: symbolizer/peers.h), kept for the walks of this worker, and handed to the
 * sampler for the walks in the kernel. All together they are bounded; the one not used for longest
 * goes first and is compiled again when it is needed. That of a file with a language's runtime says
 * what BPF has to know of that.
 */
#ifndef SCONCE_SYMBOLIZER_FILETABLE_H
#define SCONCE_SYMBOLIZER_FILETABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/table.h"
#include "symbolizer/files.h"

struct runtimes;

struct filetables {
	struct files *files;
	struct channel *sampler;
	struct peers *peers;
	struct runtimes *runtimes; /* told of what is found; NULL: none are looked for */
	uint64_t now_ns;		  /* set before a walk */
	uint64_t bytes, bytes_max;
	uint64_t compiled, none, evictions; /* counters, added up by the worker */
	uint64_t window_ns;		  /* of the limit of sending */
	uint32_t sent;			  /* in it */
	struct file *missing;		  /* the first file of a walk that is not here */
};

/* Borrows files and channel. */
void filetable_open(struct filetables *tables, struct files *files, struct channel *sampler,
		    uint64_t bytes_max);

/*
 * The table of this file, NULL when it has none and is walked by frame pointers. *missing: the file
 * is not here (yet), which is also left in tables->missing. Valid until the next call.
 */
const struct table_header *filetable_get(struct filetables *tables, uint32_t file_id, bool *missing);

/* The file's content is forgotten; called by files. */
void filetable_forget(struct filetables *tables, struct file *file);
/* The file's content is another one by now: what the sampler was told of it does not hold. */
void filetable_withdraw(struct filetables *tables, const struct file *file);

/* For symbolizer/peers. */

/* Compile it if need be, and tell the sampler. False: the file is not here. */
bool filetable_make(struct filetables *tables, struct file *file);
/* Take over what another worker made; table NULL = there is none. */
void filetable_adopt(struct filetables *tables, struct file *file, struct table_header *table,
		     size_t bytes, uint32_t lender);
void filetable_forget_lent(struct filetables *tables, uint32_t lender);
/* A sealed memfd with these bytes; -1 with errno. */
int filetable_memfd(const void *bytes, size_t n);

#endif
