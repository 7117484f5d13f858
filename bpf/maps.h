/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The maps and settings that our programs share, declared for all and defined once in maps.bpf.c.
 * What they hold is in bpf/tables.h. Sizes written as 1 are set by the loader from the
 * configuration before it loads.
 */
#ifndef SCONCE_BPF_MAPS_H
#define SCONCE_BPF_MAPS_H

#include "bpf/kernel.h"
#include "bpf/tables.h"

/* By pid; preallocated, as a program that runs in an interrupt needs it on kernels before 6.1. */
struct map_procs {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bpf_process);
};

struct map_ranges {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct record_range);
};

struct map_cpus {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bpf_cpu);
};

struct map_files {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TABLES_FILES_MAX + 1);
	__type(key, __u32);
	__type(value, struct bpf_file);
};

/* Without BPF_F_INNER_MAP: then lookups in a chunk are a few instructions and no call. */
struct map_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, TABLES_CHUNK_BYTES);
};

struct map_chunks {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct map_chunk);
};

struct map_targets {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
};

struct map_events {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

extern struct map_procs procs SEC(".maps");
extern struct map_ranges ranges SEC(".maps");
extern struct map_cpus cpus SEC(".maps");
extern struct map_files files SEC(".maps");
extern struct map_chunks chunks SEC(".maps");
extern struct map_targets targets SEC(".maps");
extern struct map_events events SEC(".maps");

/* Settings; constants by the time the verifier looks. */
extern const volatile __u32 setting_all;	  /* every process, not only targets */
extern const volatile __u64 setting_wakeup_bytes; /* fuller than this, the ring wakes its reader */

#endif
