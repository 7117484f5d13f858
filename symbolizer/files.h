/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that frames point into: file id -> what is known of it. Open files and entries are bounded;
 * the one not used for longest goes first. A file that is needed and not here is asked for (NEED_FILE),
 * less and less often when it does not come. What its frames are called is symbolizer/filenames.
 */
#ifndef SCONCE_SYMBOLIZER_FILES_H
#define SCONCE_SYMBOLIZER_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/channel.h"
#include "shm/blame.h"
#include "symbolizer/dwarf.h"
#include "symbolizer/elffile.h"
#include "symbolizer/golines.h"
#include "symbolizer/lru.h"
#include "symbolizer/others.h"
#include "symbolizer/reader.h"
#include "symbolizer/symbols.h"

#define FILES_MAX     16384
#define FILES_WAIT_NS 200000000ull
/* Of the memory for names: what is known of debug files, 1.4 KB for each file. */
#define FILES_OTHERS_SHARE 8

struct file {
	struct lru_node node; /* key = file id; first */
	uint64_t generation;  /* changes with everything that changes what its frames are called */
	struct file_key key;
	bool announced, received; /* RECORD_FILE came; FILE came */
	bool refused;		  /* FILE came, but without the file */
	bool examined;		  /* segments and identities were looked at */
	bool bad;		  /* no ELF file, or no names in it: not to be tried again */
	bool waited;		  /* a sample has waited for it as long as it may */
	uint64_t wait_until_ns;	  /* 0 = no sample has waited yet */
	uint64_t need_ns;	  /* when it may be asked for again */
	uint32_t need_ms;	  /* back-off */
	uint32_t dev_major, dev_minor;
	uint64_t inode;
	int slot; /* in the reader; -1 = not open */
	char *path;
	struct elffile_ids *ids;
	struct elffile_segment *segments;
	uint32_t segments_n;
	struct symbols *symbols;
	struct golines *go;  /* NULL = no Go program, or not looked at yet */
	struct dwarf *dwarf; /* NULL = there is none; it goes when the file is closed */
	bool lines_gone;     /* ... and it was there */
	size_t bytes;	     /* what its names take */
	uint64_t most;	     /* what they might when it was opened */
	struct others *others; /* files that belong to it; NULL = it lacks nothing */
	bool others_begun;     /* that was found out */
	struct lang_runtime *runtime; /* symbolizer/runtimes; NULL = none, or not looked for */
	bool runtime_sought;
	struct table_header *table; /* from here on symbolizer/filetable's */
	size_t table_bytes;
	bool table_none;	  /* there is none: by frame pointers */
	uint64_t table_sent_ns;	  /* 0 = the sampler was not told yet */
	uint32_t lender;	  /* worker k made the table: k + 1; 0 = this one */
	bool own_table;		  /* nobody else can make it */
	uint64_t borrow_until_ns; /* its owner was asked for it; 0 = it was not */
	uint32_t mapping[ELFFILE_SEGMENTS_MAX + 1]; /* definition ids of mapping_epoch */
	uint32_t mapping_epoch;
};

struct filetables;
struct lang_runtime;
struct table_header;

struct files {
	struct lru table;
	struct filetables *tables; /* told when content is forgotten; may be NULL */
	struct reader *reader;
	struct channel *sampler;
	struct blame *blame; /* where the file at work is written down */
	uint64_t generations, arrivals;
	uint64_t symbol_bytes, symbol_bytes_max;
	uint64_t jit_bytes; /* what symbolizer/jit holds, within the same limit, and ... */
	uint64_t scripts_bytes; /* ... symbolizer/scripts */
	uint64_t indexed, bad, evictions; /* counters, added up by the worker */
	uint64_t large; /* files without lines: what is packed of them takes too much */
	uint64_t need_window_ns;
	uint32_t need_sent;
	struct others_all others;
};

/*
 * Around everything that looks into the file, or asks its filesystem: it may end us, or hold us up.
 */
void files_begin(struct files *files, const struct file *file);
void files_end(struct files *files);

/* Borrows reader and channel. */
int files_open(struct files *files, struct reader *reader, struct channel *sampler,
	       uint64_t symbol_bytes_max);
void files_close(struct files *files);

/* A slot of the reader for a file that is none of these; where none is free, one is closed. Takes the
 * fd. Or -errno. */
int files_slot(struct files *files, int fd);

void files_record(struct files *files, const struct record_file *record);
/* A process maps it: look whether it still is what it was. */
void files_mapped(struct files *files, uint32_t file_id);
/* Takes the fd; -1 when the broker had none. */
void files_message(struct files *files, const struct message_file *message, int fd);

/* And of what belongs to a file. */
void files_other(struct files *files, const struct message_other *message, int fd);

/* Memory for names, of whatever kind. */
uint64_t files_symbol_bytes(const struct files *files);

/* The entry of this id, made when there is none; the vdso's is open. */
struct file *files_get(struct files *files, uint32_t file_id);
/* Whether all that can be known of its names is at hand. */
bool file_is_known(const struct file *file);
/* Ask the sampler for the file, if it is not here and it is time. */
void files_need(struct files *files, struct file *file, uint64_t now_ns);
/* The last component of its path. */
const char *file_module(const struct file *file);

#endif
