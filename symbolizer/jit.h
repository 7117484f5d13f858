/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code that processes make at run time, as far as they tell: in /tmp/perf-PID.map, which
 * is asked for (NEED_OTHER), or in a jitdump, which they map and which therefore comes by itself,
 * as every file does. Both grow while they are read: once a second while samples need them, a
 * little sooner after one that found no name.
 *
 * Most processes that make code tell nobody. They cost a question now and then, less and less
 * often, and a look at each frame whether it is time for one.
 *
 * What is known of a process belongs to that program of that process: pid, start and exec_id.
 * Memory and open files are bounded; the process that was not asked for longest goes first.
 */
#ifndef SCONCE_SYMBOLIZER_JIT_H
#define SCONCE_SYMBOLIZER_JIT_H

#include "proto/messages.h"
#include "symbolizer/files.h"
#include "symbolizer/jitdump.h"
#include "symbolizer/lru.h"
#include "symbolizer/perfmap.h"
#include "symbolizer/process.h"

#define JIT_PROCESSES_MAX 4096
#define JIT_MAPS_MAX	  128 /* open ones; the reader has room for 512 files */
#define JIT_DUMPS_MAX	  128
#define JIT_PROCESS_DUMPS 4 /* of one process: what it inherits by fork is still mapped */
#define JIT_SHARE	  2 /* of --symbol-memory */
/* Of the maps of a program, or of a dump: more is not read, or who writes fast keeps us busy. */
#define JIT_READ_MAX (1ull << 30)
#define JIT_LOOK_NS  1000000000ull

struct jit_map {
	struct perfmap map;
	struct file_key key; /* as it was when it was looked at last */
	int slot;	     /* in the reader */
	uint64_t at;	     /* taken up to here */
};

struct jit_dump {
	struct lru_node node; /* key = file id; first */
	struct jitdump dump;
	uint64_t device, inode, size_bytes, at, read_bytes, look_ns;
};

struct jit_process {
	struct lru_node node; /* key = pid; first */
	uint64_t start_lo_ns, start_hi_ns, exec_id;
	uint64_t look_ns;	/* when it is time to look whether there is more */
	uint64_t ask_ns;	/* when its map may be asked for again, and ... */
	uint32_t ask_ms;	/* ... for how long not after that */
	bool answered;		/* the first question was */
	bool waited;		/* a sample has waited for that as long as it may */
	uint64_t wait_until_ns; /* 0 = no sample has waited yet */
	uint64_t read_bytes;	/* of all its maps */
	struct jit_map *map;	/* NULL = there is none */
	struct file_key stale;	/* the map of the program before; inode 0 = none */
	uint32_t dumps[JIT_PROCESS_DUMPS], dumps_n; /* file ids */
	uint64_t files_seen;			    /* when its mappings were looked through */
	uint32_t ranges_seen;
};

struct jit {
	struct lru processes, dumps;
	struct files *files;
	struct channel *sampler;
	uint64_t now_ns, sweep_ns; /* CLOCK_BOOTTIME */
	uint64_t bytes, bytes_max;
	uint32_t maps;
	uint64_t window_ns; /* in which so many questions were sent */
	uint32_t sent;
	uint64_t names, refused, evictions; /* counters, added up by the worker */
};

/* Borrows files (for its reader too) and the channel. 0 or -ENOMEM. */
int jit_open(struct jit *jit, struct files *files, struct channel *sampler, uint64_t bytes_max);
void jit_close(struct jit *jit);

/* Once a turn: what time it is, and who is not there any more. */
void jit_turn(struct jit *jit, struct processes *processes, uint64_t now_ns);
/* The answer of kind OTHER_PERF_MAP. Takes the fd; -1 when there is none. */
void jit_message(struct jit *jit, const struct message_other *message, int fd);
/* A sample has frames in code that the process made: ask, if nobody has. The process, if the first
 * answer is still to come, or NULL. */
struct jit_process *jit_begin(struct jit *jit, const struct process *process);
/* What was at this address of the process at that time; lines->n = 0: nothing is known. */
void jit_find(struct jit *jit, const struct process *process, uint64_t address, uint64_t time_ns,
	      struct lines *lines);

#endif
