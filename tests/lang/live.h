/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All of a sample as an ordinary program, on a process that lives: stop one of its threads wherever
 * it is (ptrace), walk it as BPF does (hostwalk.h), name the frames as a worker does, let it go on.
 */
#ifndef SCONCE_TESTS_LANG_LIVE_H
#define SCONCE_TESTS_LANG_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbolizer/lang/lang.h"
#include "tests/lang/snapshot.h"

enum live_kind {
	LIVE_NATIVE,
	LIVE_SCRIPT,
	LIVE_UNNAMED, /* of a script, but nothing is sure; name is "[python]" */
};

struct live_frame {
	enum live_kind kind;
	uint32_t language;	    /* 0 in native frames */
	char name[LANG_NAME_BYTES]; /* never "" */
	char file[LANG_FILE_BYTES]; /* native: the path of the program or library */
	uint32_t line, start_line;
};

struct live_stack {
	uint32_t frames_n;
	enum record_stop stop;
	uint64_t walk_reads, name_reads;
	struct live_frame frames[RECORD_USER_FRAMES_MAX]; /* leaf first */
};

struct live {
	pid_t pid;
	int mem;   /* /proc/PID/mem */
	bool late; /* name the frames when the process goes on again, as a worker does */
	struct snapshot snapshot; /* of the sample before */
	struct live_stack stack;
};

/* NULL with errno. */
struct live *live_open(pid_t pid);
void live_close(struct live *live);
/* tid: a thread of it. Valid until the next one; NULL: the thread has ended. */
const struct live_stack *live_sample(struct live *live, pid_t tid);

/* The same of a snapshot that was taken before. */
void live_replay(struct snapshot *snapshot, struct live_stack *stack);
/* Its files by their paths, after snapshot_load(); file ids are set anew. False: one is not there.
 */
bool live_resolve(struct snapshot *snapshot);

/* The threads that there are; how many, at most max. */
uint32_t live_threads(pid_t pid, pid_t *tids, uint32_t max);
/* A random time up to max_us, by *seed (not 0). */
void live_pause(uint64_t *seed, uint32_t max_us);

#endif
