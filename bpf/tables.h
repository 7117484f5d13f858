/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * What BPF reads and the sampler writes, and the other way round. Shared by bpf/ and sampler/.
 *
 *   procs   hash, pid -> struct bpf_process. The sampler writes.
 *   ranges  mmapable array of struct record_range. A process has one slice of it, sorted by start,
 *           not overlapping. The sampler writes a slice, then publishes it through procs. A slice
 *           that was given up is not written again for TABLES_GRACE_NS, because a program on another
 *           cpu may still be looking at it.
 *   cpus    mmapable array of struct bpf_cpu, by cpu number. BPF writes.
 *   targets hash, pid -> u32 1: the processes to sample when settings.all is 0. BPF adds children.
 *   chunks  array of maps; each is one chunk of unwind table memory, an mmapable array of one value
 *           of TABLES_CHUNK_BYTES. All chunks together are numbered as one array of words. The
 *           loader makes a chunk, the sampler writes tables into it (shm/table.h, without header).
 *   files   mmapable array of struct bpf_file: the table of file id f is at index f % TABLES_FILES_MAX,
 *           if the file_id there says so. The sampler writes it, but for used_ns. Room that an entry
 *           named is not written again for TABLES_GRACE_NS after the entry has gone. The entry
 *           behind the last one stands for all files that have none.
 */
#ifndef SCONCE_BPF_TABLES_H
#define SCONCE_BPF_TABLES_H

#include <linux/types.h>

#include "shm/record.h"

#define TABLES_GRACE_NS 2000000000ull
#define TABLES_TARGETS_MAX 16384
#define TABLES_FILES_MAX   16384u
#define TABLES_CHUNK_BYTES 4194304u /* the largest value that kernels before 6.11 allow */
#define TABLES_CHUNK_WORDS (TABLES_CHUNK_BYTES / 4)
#define TABLES_CHUNKS_MAX  64u
#define TABLES_USED_NS	   100000000ull /* used_ns is renewed no more often */

/*
 * What ends every record of a side-band ring: sample_id_all with
 * PERF_SAMPLE_TID | PERF_SAMPLE_TIME, the time on CLOCK_BOOTTIME. The loader opens the events so.
 */
struct sideband_trailer {
	__u32 pid, tid;
	__u64 time_ns;
};

enum bpf_process_flag {
	BPF_PROCESS_EXEC_KNOWN = 1, /* exec_id holds; without it the slice is not used */
	BPF_PROCESS_NO_STACK = 2,   /* do not copy stack bytes: the ranges will not come */
};

/*
 * Valid for a task whose group leader started in [start_lo_ns, start_hi_ns] (CLOCK_BOOTTIME) and
 * whose self_exec_id is exec_id. Otherwise the task is treated as not known: the record carries
 * registers and stack bytes, and no user frames.
 */
struct bpf_process {
	__u64 start_lo_ns, start_hi_ns;
	__u64 exec_id;
	__u32 first, count; /* slice of ranges */
	__u32 flags;
	__u32 made_by; /* 1 + the index in the slice of a range whose file has a runtime; 0 = none */
};

/* How to walk out of a file. With none of these flags: by frame pointers. */
enum bpf_file_flag {
	BPF_FILE_TABLE = 1, /* by its table */
	BPF_FILE_DEFER = 2, /* not here: its table is being made */
	BPF_FILE_RUNTIME = 4, /* its table tells of a runtime */
};

struct bpf_file {
	__u64 used_ns; /* the time of a sample that needed it; BPF writes */
	__u32 file_id; /* 0 = none; written last, cleared first */
	__u32 flags;
	__u32 first;			       /* word of its first page entry */
	__u32 first_page, pages, rows, rules; /* as in the header of the table */
	__u32 worker;			       /* whose work it is */
};

struct bpf_cpu {
	__u64 taken;	 /* the seq of the newest sample */
	__u64 ring_full; /* samples that found no room */
	__u64 filtered;
	__u64 unused[5];
};

_Static_assert(sizeof(struct sideband_trailer) == 16, "trailer");
_Static_assert(sizeof(struct bpf_process) == 40, "process");
_Static_assert(sizeof(struct bpf_file) == 40, "file");
_Static_assert(sizeof(struct bpf_cpu) == 64, "one cache line");

#endif
