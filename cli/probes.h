/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only the kernel itself can tell: whether it does something when it is asked to. Sysctls do
 * not know of seccomp profiles around us, versions do not know of what was backported. Nothing that
 * is made for it outlives the question.
 */
#ifndef SCONCE_CLI_PROBES_H
#define SCONCE_CLI_PROBES_H

#include <stdint.h>

enum probe {
	PROBE_RING_BUFFER,   /* BPF's */
	PROBE_BPF_LOOP,	     /* the helper bpf_loop() */
	PROBE_PERF_EVENT,    /* system-wide, with the kernel */
	PROBE_PERF_MEMORY,   /* a ring of so many data pages on each cpu */
	PROBE_IO_URING,	     /* a ring that can be restricted */
	PROBE_SECCOMP,	     /* filters that end a process */
	PROBE_LANDLOCK,	     /* its ABI */
	PROBE_MDWE,	     /* memory that stays not executable */
	PROBE_NAMESPACES,    /* these CLONE_NEW bits, together; one of a user as a user */
	PROBE_PROCMAP_QUERY, /* mappings without text */
	PROBE_MAP_FILES,     /* /proc/PID/map_files, of ourselves */
};

/* >= 0: it works. Otherwise -errno. */
int probes_ask(enum probe probe, uint32_t argument);

#endif
