/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What leaves a symbolizer: definitions, and samples that refer to them.
 *
 * Who writes, who reads
 *   One symbolizer writes, the exporter reads. Definitions go to a definition log (two memfds per
 *   worker, `a` and `b`), samples to the worker's output queue (shm/queue.h).
 *
 * Layout of a definition log
 *
 *   offset 0      struct symbol_log (one page; only the producer writes it)
 *   offset 4096   records, each with struct symbol_header, in the order in which they were defined
 *
 *   The log is append only within an epoch and is never consumed. That is what makes both sides
 *   restartable: a new exporter reads the log again from its start; a new symbolizer goes on behind
 *   the last record and defines again, under new ids, what it has forgotten.
 *
 * Life of an epoch
 *   Epoch e lives in log e % 2. When the log is full, the symbolizer starts epoch e + 1 in the other
 *   log, provided that the exporter has released every sample of epoch e - 1 (its tail has passed
 *   the place in the queue where epoch e began). Until then samples that need a new definition are
 *   dropped and counted (lost_symbolizer_log_full).
 *
 * What each side may assume
 *   A definition refers only to definitions of the same log with a smaller position. Ids of a kind
 *   are dense and start at 1; 0 means none. A sample refers to definitions that stand before it:
 *   the producer publishes the log before the sample. The exporter trusts none of this: ids are
 *   looked up with a bound, lengths are checked, a bad record ends the worker.
 *
 * How it may change
 *   Append kinds and, at the end of a record, fields; anything else raises SYMBOL_VERSION.
 */
#ifndef SCONCE_SHM_SYMBOL_H
#define SCONCE_SHM_SYMBOL_H

#include <stdint.h>

#include "shm/record.h"

#define SYMBOL_MAGIC 0x4c4f4253u /* "SBOL" */
#define SYMBOL_VERSION 1
#define SYMBOL_LOG_HEADER_BYTES 4096

#define SYMBOL_STRING_BYTES_MAX 4096 /* longer names are cut by the symbolizer */
#define SYMBOL_LINES_MAX 64	     /* inlined frames of one location */
#define SYMBOL_STACK_FRAMES_MAX (RECORD_KERNEL_FRAMES_MAX + RECORD_USER_FRAMES_MAX)

enum symbol_kind {
	SYMBOL_STRING = 1,
	SYMBOL_FUNCTION,
	SYMBOL_MAPPING,
	SYMBOL_LOCATION,
	SYMBOL_STACK,
	SYMBOL_PROCESS,
	SYMBOL_SAMPLE, /* output queue only */
	SYMBOL_KIND_COUNT
};

struct symbol_log {
	uint32_t magic, version;
	uint64_t capacity;		      /* bytes behind the header page */
	uint32_t epoch;			      /* written before len_bytes goes back to 0 */
	uint32_t unused;
	_Atomic uint64_t len_bytes;	      /* store-release by the producer, load-acquire by the exporter */
	uint64_t next_id[SYMBOL_KIND_COUNT]; /* the producer's own memory over a restart */
};

struct symbol_header {
	uint32_t len_bytes; /* of the whole record, multiple of 8 */
	uint16_t kind;	    /* enum symbol_kind */
	uint16_t unused;
	uint32_t id; /* 0 for samples */
	uint32_t unused2;
};

struct symbol_string {
	struct symbol_header header;
	uint32_t bytes; /* without the NUL, which follows all the same */
	char text[];
};

struct symbol_function {
	struct symbol_header header;
	uint32_t name, system_name, file; /* strings; name is never 0 */
	uint32_t start_line;
};

/* Frame types: TYPE(NAME, text as the semantic conventions have it in profile.frame.type). Append. */
#define SYMBOL_FRAME_TYPES(TYPE)                                                                   \
	TYPE(NATIVE, "native")                                                                     \
	TYPE(KERNEL, "kernel")                                                                     \
	TYPE(CPYTHON, "cpython")                                                                   \
	TYPE(PHP, "php")                                                                           \
	TYPE(RUBY, "ruby")                                                                         \
	TYPE(PERL, "perl")

enum symbol_frame_type {
#define TYPE(NAME, text) SYMBOL_FRAME_##NAME,
	SYMBOL_FRAME_TYPES(TYPE)
#undef TYPE
	    SYMBOL_FRAME_TYPE_COUNT
};

struct symbol_mapping {
	struct symbol_header header;
	uint32_t file; /* string: path, "[kernel]", "[vdso]" */
	uint32_t gnu_build_id, go_build_id, htlhash; /* strings, Go's not in hex; 0 = none */
	uint64_t start, limit, offset; /* of the file's text, as the OTLP mapping wants them */
};

struct symbol_line {
	uint32_t function;
	uint32_t line;
};

struct symbol_location {
	struct symbol_header header;
	uint32_t mapping;
	uint8_t frame_type; /* enum symbol_frame_type */
	uint8_t unused[3];
	/*
	 * Of a native frame: address in the ELF file, within [start, limit) of its mapping; the file
	 * offset where the mapping has start = limit = 0. Of a kernel frame: offset from the start of
	 * the text of the kernel or module. 0 of a script's, whose mapping is the file of its runtime.
	 */
	uint64_t address;
	uint32_t lines_n;
	uint32_t unused2;
	struct symbol_line lines[]; /* innermost first; more than one = inlined */
};

struct symbol_stack {
	struct symbol_header header;
	uint32_t locations_n;
	uint32_t locations[]; /* leaf first */
};

/* One process as the exporter groups it. Defined again, under a new id, when more gets known. */
struct symbol_process {
	struct symbol_header header;
	uint32_t pid;
	uint32_t executable;   /* string: path, 0 = not known */
	uint32_t cgroup;       /* string: path in the hierarchy that names the workload */
	uint32_t container_id; /* string: bare id, 0 = not in a container */
	uint32_t unit;	       /* string: systemd unit, 0 = none */
	uint32_t comm;	       /* string: of the thread group leader or the first thread seen */
	uint64_t start_ns;
};

struct symbol_sample {
	struct symbol_header header;
	uint32_t epoch;
	uint32_t cpu;
	uint64_t seq;
	uint64_t time_ns; /* CLOCK_BOOTTIME */
	uint64_t period_ns;
	uint32_t process, stack; /* ids; a stack may be empty but not 0 */
	uint32_t pid, tid;
	uint8_t stop; /* enum record_stop */
	uint8_t unused[7];
	char comm[RECORD_COMM_BYTES]; /* thread name */
};

_Static_assert(sizeof(struct symbol_header) == 16, "symbol header");
_Static_assert(sizeof(struct symbol_log) <= SYMBOL_LOG_HEADER_BYTES, "log header");
_Static_assert(sizeof(struct symbol_function) == 32, "function");
_Static_assert(sizeof(struct symbol_mapping) == 56, "mapping");
_Static_assert(sizeof(struct symbol_location) == 40, "location");
_Static_assert(sizeof(struct symbol_process) == 48, "process");
_Static_assert(sizeof(struct symbol_sample) == 88, "sample");

#endif
