/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runtimes of languages (symbolizer/lang/lang.h) in files: looked for once in each, when its unwind
 * table is made, which carries what BPF has to know of it; or, of a table that another worker made,
 * when the first frame of a script needs a name.
 *
 * Nearly no file is one. A runtime has to export what its extensions are written against, so a word
 * or two of the file's hash table of symbols tell, before any language is asked.
 */
#ifndef SCONCE_SYMBOLIZER_RUNTIMES_H
#define SCONCE_SYMBOLIZER_RUNTIMES_H

#include <stdbool.h>
#include <stddef.h>

#include "shm/ledger.h"
#include "symbolizer/files.h"
#include "symbolizer/lang/lang.h"

/* What is found of them; of a worker. */
struct runtimes {
	struct ledger *ledger;	 /* where those that nobody understands are told; NULL: nowhere */
	uint64_t found, unknown; /* counters, added up by the worker */
};

/* Might there be one in this file? False: there is none. */
bool runtimes_may_be(struct elffile *elf, const char *module);

/* Look into the file, which is open. */
void runtimes_look(struct runtimes *runtimes, struct file *file, struct elffile *elf);
/* The file's runtime, for which it is looked into if nobody did. NULL: none, or it is not here. */
const struct lang_runtime *runtimes_get(struct runtimes *runtimes, struct files *files,
					struct file *file);
void runtimes_forget(struct file *file);

/* The table with the runtime behind it. It stays as it is where there is no memory for that. */
void runtimes_append(const struct lang_runtime *runtime, struct table_header **table,
		     size_t *bytes);

#endif
