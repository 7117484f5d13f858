/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the functions of scripts are called: FRAME_SCRIPT and its cookie -> name, file and line,
 * read by the runtime's language (symbolizer/lang/) out of the memory of the process, through a
 * descriptor that the broker is asked for (NEED_OTHER) when the first such frame of a process
 * comes, and again as long as there is none, or nothing was read through it.
 *
 * Life of a frame
 *   met for the first time: read, kept in a table of fixed size, found there from then on.
 *   not to be read, or not what it was when the sample was taken: shown as "[python]", tried again
 *   after a second, then less and less often.
 *
 * The process goes on while it is read and may be anybody's. What is known of it belongs to that
 * program of that process: pid, start and exec_id. It gets a share of the time, so that memory that
 * comes slowly (a page of a file on a server, of a userfaultfd) takes the names of that process and
 * of no other; memory that never comes holds the worker up until it is ended, and then the process
 * is blamed (shm/blame.h).
 */
#ifndef SCONCE_SYMBOLIZER_SCRIPTS_H
#define SCONCE_SYMBOLIZER_SCRIPTS_H

#include "proto/messages.h"
#include "symbolizer/files.h"
#include "symbolizer/lru.h"
#include "symbolizer/process.h"
#include "symbolizer/runtimes.h"

#define SCRIPTS_PROCESSES_MAX 4096
#define SCRIPTS_MEMORIES_MAX                                                                       \
	256 /* open descriptors; the process not met for longest gives up its own */
#define SCRIPTS_SHARE	  32 /* of --symbol-memory, for the table */
#define SCRIPTS_SLOTS_MAX 65536

/* A frame that was met. */
struct scripts_slot {
	uint64_t process; /* struct scripts_process.serial; 0 = free */
	uint64_t object, cookie;
	uint64_t generation; /* of the file */
	uint64_t retry_ns;   /* when it may be read again; 0 = it has its name */
	uint32_t where, file_id;
	uint32_t location, epoch; /* its definition; the owner's (symbolizer/symbolize.c) */
	uint32_t retry_ms;
	uint32_t unused;
};

/* What time there is to read. */
struct scripts_time {
	int64_t left_ns;
	uint64_t counted_ns;
};

struct scripts_process {
	struct lru_node node; /* key = pid; first */
	uint64_t start_lo_ns, start_hi_ns, exec_id;
	uint64_t serial;	/* never given twice */
	uint64_t ask_ns;	/* when its memory may be asked for again, and ... */
	uint32_t ask_ms;	/* ... for how long not after that */
	int fd;			/* -1 = not to be read */
	uint64_t blamed;	/* it goes by this number in shm/blame.h */
	bool answered;		/* the first question was */
	bool proved;		/* by a name that was read there, fd is of this program */
	bool waited;		/* a sample has waited for that as long as it may */
	uint64_t wait_until_ns; /* 0 = no sample has waited yet */
	struct scripts_time time;
};

struct scripts {
	struct runtimes *runtimes;
	struct files *files;
	struct channel *sampler;
	struct lru processes;
	struct scripts_slot *slots;
	uint32_t slots_n, hand;
	uint64_t serials, now_ns, sweep_ns;
	uint64_t window_ns; /* in which so many questions were sent */
	uint32_t sent, memories;
	struct scripts_time time;
	uint8_t frame_types[LANG_COUNT];      /* enum symbol_frame_type */
	uint64_t named, unnamed, read, reads, read_ns; /* counters, added up by the worker */
};

/* Borrows all of it. 0 or -ENOMEM. */
int scripts_open(struct scripts *scripts, struct runtimes *runtimes, struct files *files,
		 struct channel *sampler, uint64_t bytes_max);
void scripts_close(struct scripts *scripts);

/* Once a turn: what time it is, and who is not there any more. */
void scripts_turn(struct scripts *scripts, const struct processes *processes, uint64_t now_ns);
/* The answer of kind OTHER_MEM. Takes the fd; -1 when there is none. */
void scripts_message(struct scripts *scripts, const struct message_other *message, int fd);
/* A sample has frames of scripts: ask for the memory, if nobody has. The process, if the first
 * answer is still to come, or NULL. */
struct scripts_process *scripts_begin(struct scripts *scripts, const struct process *process,
				      uint32_t file_id);

/* The place of a frame, which is at work until the next one is asked for; NULL: it has none.
 * cookie: the slot behind it. */
struct scripts_slot *scripts_find(struct scripts *scripts, const struct process *process,
				  const struct file *file, const struct frame *frame,
				  const struct frame *cookie);
/* Is it to be read (again)? */
bool scripts_is_due(const struct scripts *scripts, const struct scripts_slot *slot);
/* Read what it is called; false: it cannot be told. Valid until the next call. */
const struct lang_function *scripts_read(struct scripts *scripts, const struct process *process,
					 struct file *file, struct scripts_slot *slot,
					 const struct frame *frame);

#endif
