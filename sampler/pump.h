/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the kernel's rings into the workers' queues, in batches that happen or do not happen.
 */
#ifndef SCONCE_SAMPLER_PUMP_H
#define SCONCE_SAMPLER_PUMP_H

#include <stdbool.h>

#include "bpf/tables.h"
#include "sampler/introduce.h"
#include "sampler/ring.h"
#include "sampler/sideband.h"

struct pump {
	struct ring ring;
	struct sideband sideband;
	struct introduce introduce;
	const struct bpf_cpu *cpus;
	uint32_t cpus_n;
	bool everyone; /* is sampled */
};

/*
 * Everything that the rings hold: samples up to the last ring_begin(), side-band records up to now_ns,
 * which is read behind it, so that no sample is newer than the side-band. True when the rings were
 * empty, so that nothing was to be done.
 */
bool pump_turn(struct pump *pump, uint64_t now_ns);
/* Handler of the side-band; arg is the pump. */
void pump_event(void *arg, const union sideband_record *record, uint64_t time_ns);
/* Write down what was done, then let the others see it. */
void pump_commit(struct pump *pump);

#endif
