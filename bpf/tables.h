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
 */
#ifndef SCONCE_BPF_TABLES_H
#define SCONCE_BPF_TABLES_H

#include <linux/types.h>

#include "shm/record.h"

#define TABLES_GRACE_NS 2000000000ull
#define TABLES_TARGETS_MAX 16384

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
	__u32 unused;
};

struct bpf_cpu {
	__u64 taken;	 /* the seq of the newest sample */
	__u64 ring_full; /* samples that found no room */
	__u64 filtered;
	__u64 unused[5];
};

_Static_assert(sizeof(struct sideband_trailer) == 16, "trailer");
_Static_assert(sizeof(struct bpf_process) == 40, "process");
_Static_assert(sizeof(struct bpf_cpu) == 64, "one cache line");

#endif
