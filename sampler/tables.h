/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF maps that the sampler writes (bpf/tables.h), as functions.
 */
#ifndef SCONCE_SAMPLER_TABLES_H
#define SCONCE_SAMPLER_TABLES_H

#include <stdint.h>

#include "bpf/tables.h"

/* What BPF knows of a pid. 0 or -errno. */
int tables_publish(uint32_t pid, const struct bpf_process *process);
void tables_remove(uint32_t pid);
/* Forget every process, as a sampler does that starts. How many there were. */
uint32_t tables_clear(void);

#endif
