/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF object in the kernel with a throw-away consumer: loads by the loader's own code, samples,
 * collects.
 */
#ifndef SCONCE_TESTS_BPF_RIG_H
#define SCONCE_TESTS_BPF_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/tables.h"
#include "proto/config.h"
#include "shm/record.h"
#include "supervisor/loader_bpf.h"

#define RIG_CPUS_MAX	64
#define RIG_SAMPLES_MAX 4096

extern uint32_t rig_rate_hz; /* of rigs that are opened from now on; 99 */

struct rig {
	struct config config;
	struct loader_bpf bpf;
	int events[RIG_CPUS_MAX];
	struct record_range *ranges;			/* BPF's array */
	struct bpf_cpu *cpus;				/* BPF's array */
	struct record_sample *samples[RIG_SAMPLES_MAX]; /* copies, in order of arrival */
	size_t samples_n;
	uint64_t last_seq[RIG_CPUS_MAX];
	bool malformed; /* a record broke a rule that holds for all */
};

/* Who owns this address space, as /proc tells. */
struct rig_process {
	uint64_t start_ticks; /* 10 ms */
	struct record_range ranges[64];
	uint32_t ranges_n;
};

/* Load for one target (0 = all processes) with a ring of this size; events open, not running. */
void rig_open(struct rig *rig, pid_t target, uint64_t ring_bytes);
void rig_close(struct rig *rig);

/* Sample for so long; with `collect`, consume all the while, and to the end. */
void rig_sample(struct rig *rig, int ms, bool collect);
/* Consume what is in the ring. */
void rig_collect(struct rig *rig);
void rig_forget(struct rig *rig);

uint64_t rig_taken(const struct rig *rig);
uint64_t rig_ring_full(const struct rig *rig);

void rig_read_process(struct rig_process *process, pid_t pid);
/* Tell BPF of a process: its ranges, from index `first` on, and its entry. */
void rig_install(struct rig *rig, pid_t pid, const struct rig_process *process, uint64_t exec_id,
		 uint32_t first, uint32_t flags);

const struct record_regs *rig_regs(const struct record_sample *sample);

#endif
