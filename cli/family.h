/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The children that a process has already. BPF follows those that are forked while it looks; these
 * it has to be told of.
 */
#ifndef SCONCE_CLI_FAMILY_H
#define SCONCE_CLI_FAMILY_H

#include <stdint.h>

/* Add all descendants of pids[0 .. n-1] behind them, as many as there is room for. The new n. */
uint32_t family_add(int32_t *pids, uint32_t n, uint32_t max);

#endif
