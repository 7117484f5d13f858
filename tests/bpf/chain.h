/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call chains: the walk of a deferred sample outside of BPF, and the comparison with the nest.
 */
#ifndef SCONCE_TESTS_BPF_CHAIN_H
#define SCONCE_TESTS_BPF_CHAIN_H

#include <stdbool.h>

#include "tests/bpf/rig.h"

struct chain {
	struct frame frames[RECORD_USER_FRAMES_MAX];
	uint32_t n;
	enum record_stop stop;
	/* Set by the caller: the table of one file, all 0 = none. */
	struct bpf_file file;
	const uint32_t *words;
	uint32_t words_n;
};

/* Walk over the registers and stack bytes of a sample, as the symbolizer does. */
void chain_walk(struct chain *chain, const struct record_sample *sample,
		const struct rig_process *process);

/*
 * Is this the nest of tests/bpf/busy.h, leaf first, and every return address in the function that
 * it must be in, by file id and file offset?
 */
bool chain_is_nest(const struct frame *frames, uint32_t n, const struct rig_process *process);

#endif
