/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every workload that was heard of, and the CPU time it used in the last minute. A workload is a
 * key (viewer/workload_key.h). No stacks are kept here.
 *
 * The table holds WORKLOADS_MAX; a new one replaces the one not heard of for longest.
 */
#ifndef SCONCE_VIEWER_WORKLOADS_H
#define SCONCE_VIEWER_WORKLOADS_H

#include <stddef.h>
#include <stdint.h>

#include "viewer/workload_key.h"

#define WORKLOADS_MAX	   4096
#define WORKLOADS_WINDOW_S 60

struct workloads;

/* Over the last WORKLOADS_WINDOW_S. */
struct workload_use {
	const char *key; /* until the next workloads_seen() */
	uint64_t samples, cpu_ns;
	double cpus; /* CPU seconds per second */
	uint64_t last_seen_ns;
};

/* NULL with ENOMEM. now_ns is CLOCK_BOOTTIME, here and below. */
struct workloads *workloads_new(uint64_t now_ns);
void workloads_free(struct workloads *workloads);

void workloads_seen(struct workloads *workloads, const char *key, uint64_t samples, uint64_t cpu_ns,
		    uint64_t now_ns);
size_t workloads_n(const struct workloads *workloads);

/* The `max` busiest, busiest first, into `uses`; returns how many were written. */
size_t workloads_list(const struct workloads *workloads, uint64_t now_ns, struct workload_use *uses,
		      size_t max);
/* CPU seconds per second of all of them together. */
double workloads_cpus(const struct workloads *workloads, uint64_t now_ns);

#endif
