/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What our BPF maps and programs cost, as the kernel counts it. The maps are found among the
 * descriptors of the supervisor, the programs by the maps that they use.
 */
#ifndef SCONCE_CLI_BPFSTAT_H
#define SCONCE_CLI_BPFSTAT_H

#include <stdint.h>

struct bpfstat {
	uint64_t map_bytes;
	uint64_t run_ns, run_count; /* of the sampling program; 0 unless kernel.bpf_stats_enabled */
};

/* What cannot be read stays 0. */
void bpfstat_read(struct bpfstat *bpfstat, int supervisor_pid);

#endif
