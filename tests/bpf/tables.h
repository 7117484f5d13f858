/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables for the rig: compiled by the symbolizer's code, installed by the sampler's. */
#ifndef SCONCE_TESTS_BPF_TABLES_H
#define SCONCE_TESTS_BPF_TABLES_H

#include <sys/types.h>

#include "sampler/store.h"
#include "shm/table.h"
#include "tests/bpf/rig.h"

/*
 * The tables of all files that a process has mapped. Returns that of its first range, for the
 * caller to free(); runtime: what it tells, or NULL. Failures end the program.
 */
struct table_header *tables_install(struct store *store, const struct rig_process *process,
				    pid_t pid, const struct table_runtime *runtime);

#endif
