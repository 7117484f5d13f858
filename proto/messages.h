/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that crosses one of our sockets, in one list.
 *
 * Who writes, who reads
 *   MESSAGE(NAME, FROM, TO, payload, fds, WHEN, per_second)
 *     payload     struct message_<payload>; its size is the only accepted length
 *     fds         number of file descriptors, exactly
 *     WHEN        START (once, before the sender's READY), RUN (after it), ANY
 *     per_second  what the receiver tolerates, with a burst of twice as many; 0 = no limit, only for
 *                 senders that are trusted
 *
 * Layout on the wire
 *   AF_UNIX SOCK_SEQPACKET; one message per packet: u32 type, u32 length, payload. fds by SCM_RIGHTS.
 *
 * What each side may assume
 *   channel_recv() has checked direction, length, number of fds, phase and frequency. Whatever is
 *   wrong there is -EPROTO, and the receiver reports the sender to the supervisor (VIOLATION), which
 *   replaces it. Meaning is checked by the handler: a symbolizer may send anything.
 *
 * How it may change
 *   Append. Both ends are built together, so there are no versions.
 */
#ifndef SCONCE_PROTO_MESSAGES_H
#define SCONCE_PROTO_MESSAGES_H

#include <stdint.h>

#include "proto/config.h"
#include "proto/role.h"
#include "shm/record.h"

#define MESSAGE_FDS_MAX 32
#define MESSAGE_RANGES_MAX 64
#define MESSAGE_RANGES_PROCESS 4096 /* the sampler keeps no more; one more is sent, and counted */
#define MESSAGE_CGROUP_BYTES 4096
#define MESSAGE_PATH_BYTES 512
#define MESSAGE_OTHER_BYTES 128

/* clang-format off */
#define MESSAGES(MESSAGE) \
	/* everyone to the supervisor and back */ \
	MESSAGE(READY,        ANY,        SUPERVISOR, empty,        0, START, 0) \
	MESSAGE(DRAIN,        SUPERVISOR, ANY,        empty,        0, ANY,   0) \
	MESSAGE(DRAINED,      ANY,        SUPERVISOR, empty,        0, RUN,   4) \
	/* once a second for each of whom one may complain */ \
	MESSAGE(VIOLATION,    ANY,        SUPERVISOR, violation,    0, RUN,   16) \
	/* from a role's container (supervisor/init.c): a process that waits, its pidfd, and no word more; \
	 * what it is to run on, in as many messages as it takes */ \
	MESSAGE(OFFER,        ANY,        SUPERVISOR, offer,        1, START, 4) \
	MESSAGE(START,        SUPERVISOR, ANY,        start,       -1, ANY,   0) \
	/* loader: one BPF_FD per object, then LOADED */ \
	MESSAGE(BPF_FD,       LOADER,     SUPERVISOR, bpf_fd,       1, ANY,   0) \
	MESSAGE(LOADED,       LOADER,     SUPERVISOR, loaded,       0, ANY,   0) \
	/* cli */ \
	MESSAGE(STARTED,      SUPERVISOR, CLI,        started,      0, ANY,   0) \
	MESSAGE(FINISH,       CLI,        SUPERVISOR, empty,        0, ANY,   4) \
	MESSAGE(STATUS,       CLI,        SUPERVISOR, empty,        0, ANY,   50) \
	MESSAGE(STATUS_REPLY, SUPERVISOR, CLI,        status,      -1, ANY,   0) \
	/* sampler and broker; the broker acts on what the sampler announced, and on nothing else */ \
	MESSAGE(ASK_PROCESS,  SAMPLER,    BROKER,     ask_process,  0, RUN,   0) \
	MESSAGE(ASK_FILE,     SAMPLER,    BROKER,     ask_file,     0, RUN,   0) \
	MESSAGE(ASK_OTHER,    SAMPLER,    BROKER,     ask_other,    0, RUN,   0) \
	MESSAGE(RANGES,       BROKER,     SAMPLER,    ranges,       0, RUN,   0) \
	MESSAGE(FILE_KEY,     BROKER,     SAMPLER,    file_key,     0, RUN,   0) \
	/* broker to worker */ \
	MESSAGE(PROCESS_INFO, BROKER,     SYMBOLIZER, process_info, 0, RUN,   0) \
	MESSAGE(FILE,         BROKER,     SYMBOLIZER, file,        -1, RUN,   0) \
	MESSAGE(OTHER,        BROKER,     SYMBOLIZER, other,       -1, RUN,   0) \
	/* worker to sampler; a file of its processes, or to compile, is all that it can ask for ... */ \
	MESSAGE(NEED_FILE,    SYMBOLIZER, SAMPLER,    need_file,    0, RUN,   200) \
	/* ... and what lies beside it, or belongs to a process, at places that the broker knows */ \
	MESSAGE(NEED_OTHER,   SYMBOLIZER, SAMPLER,    need_other,   0, RUN,   200) \
	/* how to walk out of a file, once for each file; what does not fit is dropped in silence */ \
	MESSAGE(TABLE,        SYMBOLIZER, SAMPLER,    table,        1, RUN,   200) \
	MESSAGE(NO_TABLE,     SYMBOLIZER, SAMPLER,    table,        0, RUN,   1000) \
	/* between workers (symbolizer/peers.h) */ \
	MESSAGE(WANT_TABLE,   SYMBOLIZER, SYMBOLIZER, need_file,    0, RUN,   200) \
	MESSAGE(LEND_TABLE,   SYMBOLIZER, SYMBOLIZER, table,        1, RUN,   200) \
	MESSAGE(LEND_NONE,    SYMBOLIZER, SYMBOLIZER, table,        0, RUN,   200) \
	MESSAGE(LEND_REFUSED, SYMBOLIZER, SYMBOLIZER, table,        0, RUN,   200) \
	/* table memory grows; when it is full, the supervisor does not answer */ \
	MESSAGE(WANT_CHUNK,   SAMPLER,    SUPERVISOR, empty,        0, RUN,   4) \
	MESSAGE(CHUNK,        SUPERVISOR, SAMPLER,    chunk,        1, ANY,   0)
/* clang-format on */

enum message_type {
	MESSAGE_NONE,
#define MESSAGE(NAME, from, to, payload, fds, when, rate) MESSAGE_##NAME,
	MESSAGES(MESSAGE)
#undef MESSAGE
		MESSAGE_COUNT
};

struct message_empty {
	uint32_t unused;
};

/* The reporter saw this slot break the protocol. */
struct message_violation {
	uint32_t slot;
	uint32_t error; /* errno value */
};

struct message_offer {
	int32_t pid; /* as its container counts; for show */
	uint32_t unused;
};

/* The descriptors of this message belong to those of its numbers that are given, in this order. */
struct message_start {
	uint32_t n;
	uint32_t last; /* 1 = that is all */
	struct {
		int32_t number;
		uint32_t given; /* 0 = there is none: /dev/null */
	} wire[MESSAGE_FDS_MAX];
};

enum kernel_object {
	BPF_EVENTS,   /* ring buffer map */
	BPF_PROCS,    /* hash map */
	BPF_RANGES,   /* mmapable array */
	BPF_CPUS,     /* mmapable array */
	BPF_TARGETS,  /* hash map */
	BPF_SAMPLING, /* perf event with the program attached, one per cpu */
	BPF_SIDEBAND, /* perf event with a ring, one per cpu */
	BPF_LINK,     /* raw tracepoint link: held, never used */
	BPF_FILES,    /* mmapable array */
	BPF_CHUNKS,   /* array of maps */
	BPF_CHUNK,    /* mmapable array, one per chunk, in the order of their numbers */
	BPF_OBJECT_COUNT
};

struct message_bpf_fd {
	uint32_t object; /* enum kernel_object */
	uint32_t cpu;	 /* for BPF_SAMPLING and BPF_SIDEBAND */
};

struct message_loaded {
	int32_t error; /* 0, or an errno value; then text says what to do */
	uint32_t program_insns;
	char text[240];
};

/* Sampling has begun (error 0), or cannot. */
struct message_started {
	int32_t error;
	uint32_t pid; /* of the supervisor */
	char text[240];
};

struct message_status_process {
	uint32_t role, slot;
	int32_t pid; /* 0 = not running */
	uint32_t uid;
	uint32_t restarts;  /* since start */
	uint32_t abandoned; /* killed but never ended */
	uint32_t ledger;    /* index of its ledger among the fds of this message; 0 = none */
	uint32_t unused;
};

/* The first descriptor is the configuration. */
struct message_status {
	uint32_t processes_n;
	uint32_t unused;
	struct message_status_process processes[SLOT_COUNT];
};

/* Tell me the executable ranges of pid, and tell the worker who it is. */
struct message_ask_process {
	uint32_t pid;
	uint32_t worker;
	uint64_t start_lo_ns, start_hi_ns; /* answer only if it started in between */
	uint64_t exec_id;		   /* given back in the answer */
	uint32_t ranges; /* 1 = ranges and identity, 0 = identity only */
	uint32_t unused;
};

/* Open what pid has mapped at [start, end) and hand it to the worker under this file id. */
struct message_ask_file {
	uint32_t pid;
	uint32_t worker;
	uint64_t start_lo_ns, start_hi_ns;
	uint64_t start, end;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	uint32_t file_id;
	uint32_t unused;
};

/* Files that belong to a mapped one, or to a process; where they may lie: broker/other.c. */
enum other_kind {
	OTHER_BUILD_ID, /* debug information of the file with this build id (its bytes are the name) */
	OTHER_LINK,	/* the same, as .gnu_debuglink names it */
	OTHER_ALT,	/* what several such files share, as the last part of .gnu_debugaltlink names it */
	OTHER_DWP,	/* NAME.dwp; without a name that of the mapped file */
	OTHER_DWO,	/* the last part of what DW_AT_dwo_name says */
	OTHER_PERF_MAP, /* of the process; no name */
	OTHER_MEM,	/* the memory of the process, which has a runtime mapped as this file */
	OTHER_KINDS
};

/* Each place has a number: who was given the wrong file asks for the next one. */
struct message_need_other {
	uint32_t file_id; /* which was announced to the worker; PERF_MAP: 0 */
	uint32_t pid;	  /* PERF_MAP, MEM: of which process; else of no meaning */
	uint32_t kind;	  /* enum other_kind */
	uint32_t place;	  /* where to begin to look; in the answer: where it was */
	uint32_t bytes;	  /* of name */
	uint8_t name[MESSAGE_OTHER_BYTES]; /* bytes of a build id, or one component of a path */
};

/* need.file_id as mapped at file.start by the process; PERF_MAP: only pid, worker and times hold. */
struct message_ask_other {
	struct message_ask_file file;
	struct message_need_other need;
	uint32_t unused;
};

struct message_range {
	uint64_t start, end, offset, inode;
	uint32_t dev_major, dev_minor;
	uint32_t flags; /* RANGE_* */
	uint32_t unused;
};

/* The answer to ASK_PROCESS with ranges, in as many messages as it takes. */
struct message_ranges {
	uint32_t pid;
	int32_t error; /* 0, or an errno value: ESRCH = gone */
	uint64_t start_lo_ns, start_hi_ns, exec_id; /* as asked */
	uint64_t time_ns; /* CLOCK_BOOTTIME when reading began: newer side-band records win */
	uint32_t first; /* 1 = forget what came before */
	uint32_t last;	/* 1 = complete */
	uint32_t n;
	uint32_t unused;
	struct message_range range[MESSAGE_RANGES_MAX];
};

/* What makes a file the same file: a change of any of these is another file. */
struct file_key {
	uint64_t device, inode, size_bytes;
	uint64_t mtime_ns;
};

/* Which of so many workers compiles its table. */
static inline uint32_t file_key_owner(const struct file_key *key, uint32_t workers)
{
	uint64_t sum = key->device + key->inode + key->size_bytes + key->mtime_ns;

	return (uint32_t)((sum * 0x9e3779b97f4a7c15ull >> 32) * workers >> 32);
}

struct message_file_key {
	uint32_t file_id, worker, unused; /* as asked for */
	int32_t error; /* errno value when it could not be opened */
	struct file_key key;
};

struct message_process_info {
	uint32_t pid;
	uint32_t cgroup_bytes; /* used of cgroup */
	uint64_t start_lo_ns, start_hi_ns;
	uint64_t exec_id; /* as asked for */
	char executable[MESSAGE_PATH_BYTES]; /* link text of /proc/PID/exe, cut; ends in NUL */
	char cgroup[MESSAGE_CGROUP_BYTES];   /* bytes of /proc/PID/cgroup, not looked at */
};

/* With one fd when error is 0. */
struct message_file {
	uint32_t file_id;
	int32_t error;
	struct file_key key;
	char path[MESSAGE_PATH_BYTES]; /* link text of map_files, for show, also with an error; ends in NUL */
};

/* With one fd when file.error is 0; ENOENT: there is none at any place. */
struct message_other {
	struct message_need_other need;
	uint32_t unused;
	uint64_t start_lo_ns; /* of the process, as asked */
	struct message_file file;
};

/* file_id 0: this worker was just started and knows nothing; what it said before does not hold. */
struct message_need_file {
	uint32_t file_id;
	uint32_t unused;
};

/*
 * TABLE: with a memfd, sealed against shrinking, that holds a table (shm/table.h) from its beginning
 * and nothing else. NO_TABLE: this file is walked by frame pointers; with bytes other than 0: what was
 * said of it does not hold any more, because somebody has overwritten it.
 * LEND_TABLE, LEND_NONE: the same, in answer to WANT_TABLE. LEND_REFUSED: make it yourself.
 * Ids are never given twice. When the sampler was restarted every file has a new one and is handed
 * over again under that, so tables are sent again because the files come again.
 */
struct message_table {
	uint32_t file_id;
	uint32_t bytes; /* of the table, header included */
};

/* One that was started meanwhile has it already. */
struct message_chunk {
	uint32_t number;
	uint32_t unused;
};

struct message {
	uint32_t type, len_bytes;
	union {
#define MESSAGE_PAYLOAD(name) struct message_##name name;
		MESSAGE_PAYLOAD(empty)
		MESSAGE_PAYLOAD(violation)
		MESSAGE_PAYLOAD(offer)
		MESSAGE_PAYLOAD(start)
		MESSAGE_PAYLOAD(bpf_fd)
		MESSAGE_PAYLOAD(loaded)
		MESSAGE_PAYLOAD(started)
		MESSAGE_PAYLOAD(status)
		MESSAGE_PAYLOAD(ask_process)
		MESSAGE_PAYLOAD(ask_file)
		MESSAGE_PAYLOAD(ask_other)
		MESSAGE_PAYLOAD(ranges)
		MESSAGE_PAYLOAD(file_key)
		MESSAGE_PAYLOAD(process_info)
		MESSAGE_PAYLOAD(file)
		MESSAGE_PAYLOAD(other)
		MESSAGE_PAYLOAD(need_file)
		MESSAGE_PAYLOAD(need_other)
		MESSAGE_PAYLOAD(table)
		MESSAGE_PAYLOAD(chunk)
#undef MESSAGE_PAYLOAD
	};
};

#endif
