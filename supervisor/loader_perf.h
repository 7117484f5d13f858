/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two perf events of a cpu: the clock that samples, and the side-band that tells of mappings,
 * forks, execs and exits. Both functions return an fd or -errno; -ENODEV: the cpu is not online.
 */
#ifndef SCONCE_SUPERVISOR_LOADER_PERF_H
#define SCONCE_SUPERVISOR_LOADER_PERF_H

#include <stdint.h>

/* Not running yet: the supervisor enables it when somebody reads. */
int loader_sampling_open(uint32_t cpu, uint32_t rate_hz, int program_fd);

/* Running; what happens before its ring is mapped is not kept. pages: of data, in the ring. */
int loader_sideband_open(uint32_t cpu, uint32_t pages);

#endif
