/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's own report of forks, execs, mappings and exits: one perf ring per cpu, read in the
 * order of time over all of them.
 *
 * The events are opened by the loader with sample_id_all and sample_type = PERF_SAMPLE_TIME, so
 * that the last 8 bytes of every record are its time.
 */
#ifndef SCONCE_SAMPLER_SIDEBAND_H
#define SCONCE_SAMPLER_SIDEBAND_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/config.h"

#define SIDEBAND_RECORD_MAX 8192u /* MMAP2 with the longest path is half of it */

/* The kernel's layouts (linux/perf_event.h gives them in comments). The time follows. */
union sideband_record {
	struct perf_event_header header;
	struct {
		struct perf_event_header header;
		uint32_t pid, parent_pid, tid, parent_tid;
	} task; /* FORK, EXIT */
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
	} comm;
	struct {
		struct perf_event_header header;
		uint64_t id, records;
	} lost;
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		uint64_t start, len, offset;
		uint32_t dev_major, dev_minor;
		uint64_t inode, generation;
		uint32_t prot, flags;
		char path[]; /* ends in NUL */
	} mmap2;
	uint64_t word[SIDEBAND_RECORD_MAX / 8];
};

struct sideband_ring {
	struct perf_event_mmap_page *meta;
	const char *data;
	uint64_t size_bytes, cursor, end;
	uint64_t next_ns; /* time of the next record, if there is one */
};

struct sideband {
	struct sideband_ring ring[CONFIG_CPUS_MAX];
	uint32_t n;
	struct sideband_ring *oldest; /* whose next record comes first; NULL = all are empty */
	uint64_t horizon_ns;
	/* record is as long as its type needs; one that cannot be read comes as LOST */
	void (*handle)(void *arg, const union sideband_record *record, uint64_t time_ns);
	void *arg;
};

/* One ring more, of so many data pages. 0 or -errno. */
int sideband_open(struct sideband *sideband, int fd, uint32_t pages);
/*
 * See what is there; now_ns was read before. Later records wait for the next turn, because an older
 * one may still be missing in a ring that was looked at before. False when all are empty.
 */
bool sideband_begin(struct sideband *sideband, uint64_t now_ns);
/* Handle every record up to until_ns, oldest first. */
void sideband_apply(struct sideband *sideband, uint64_t until_ns);

#endif
