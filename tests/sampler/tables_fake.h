/* SPDX-License-Identifier: Apache-2.0 */
/* BPF's process map, kept in memory for tests. */
#ifndef SCONCE_TESTS_SAMPLER_TABLES_FAKE_H
#define SCONCE_TESTS_SAMPLER_TABLES_FAKE_H

#include "sampler/tables.h"

/* What BPF would find for a pid; NULL = nothing. */
const struct bpf_process *tables_fake_find(uint32_t pid);

#endif
