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

#include <stdbool.h>
#include <stdint.h>

#include "proto/config.h"

struct perf_event_mmap_page;

enum sideband_kind { SIDEBAND_FORK, SIDEBAND_EXEC, SIDEBAND_MAP, SIDEBAND_EXIT, SIDEBAND_LOST };

struct sideband_event {
	enum sideband_kind kind;
	uint32_t pid, tid, parent_pid;
	uint64_t time_ns;
	uint64_t lost; /* records */
	/* SIDEBAND_MAP */
	uint64_t start, end, offset, inode, generation;
	uint32_t dev_major, dev_minor;
	const char *path; /* ends in NUL; until the next event */
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
	void (*handle)(void *arg, const struct sideband_event *event);
	void *arg;
};

/* One ring more, of so many data pages. 0 or -errno. */
int sideband_open(struct sideband *sideband, int fd, uint32_t pages);
/*
 * See what is there; now_ns was read before. Later records wait for the next turn, because an older
 * one may still be missing in a ring that was looked at before.
 */
void sideband_begin(struct sideband *sideband, uint64_t now_ns);
/* Handle every record up to until_ns, oldest first. */
void sideband_apply(struct sideband *sideband, uint64_t until_ns);
/* Nothing is left of what sideband_begin() saw. */
bool sideband_empty(const struct sideband *sideband);

/* One record, already in one piece. False when it is of no interest or malformed. For tests too. */
bool sideband_parse(const void *record, uint32_t len_bytes, struct sideband_event *event);

#endif
