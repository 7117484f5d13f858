/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rule of ours and what DWARF operations of libdw come to, with made-up registers and a
 * made-up memory: equal results for several such worlds mean that both say the same.
 */
#ifndef SCONCE_TESTS_SYMBOLIZER_CFA_WORLD_H
#define SCONCE_TESTS_SYMBOLIZER_CFA_WORLD_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "shm/table.h"

struct cfa_world {
	uint64_t seed, pc;
};

/* The caller's stack pointer, frame pointer, pc and rbx. */
struct cfa_result {
	bool valid, stop, fp_known, rbx_known;
	uint64_t sp, fp, ra, rbx;
};

struct cfa_result cfa_world_rule(const struct cfa_world *world, const struct table_rule *rule);
/* valid: libdw says where the caller's sp and pc are. */
struct cfa_result cfa_world_frame(const struct cfa_world *world, Dwarf_Frame *frame);

#endif
