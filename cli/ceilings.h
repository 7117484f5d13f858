/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory everything may take, computed from the configuration and from nothing else.
 *
 *   own memory   of each process: what it may write to and shares with nobody (RLIMIT_DATA, and
 *                RLIMIT_STACK for its first thread); set between fork and exec
 *   shared       sealed segments, which have their size from the start
 *   kernel       BPF maps have theirs too, and chunks of table memory are counted
 *
 * Not the address space is limited: it holds room that is only reserved (the chunks of table
 * memory, an ELF image, 64 MiB for each of malloc's arenas), shared memory twice over, and code.
 *
 * What is given up first, long before a limit of a process is reached: symbol indexes
 * (--symbol-memory) and unwind tables (--unwind-memory) that were not used for longest, and made
 * again when they are needed; processes and ranges beyond --processes-max and --ranges-max; then
 * samples, at full queues. Each is counted. A file that would take more than is left is shown
 * without names. Who has nothing left for what it cannot do without ends, says so, and is replaced:
 * its samples wait in its queue.
 */
#ifndef SCONCE_CLI_CEILINGS_H
#define SCONCE_CLI_CEILINGS_H

#include <stddef.h>

#include "proto/config.h"

#define CEILINGS_DATA 0 /* which of the limits is RLIMIT_DATA */

/* Set config->runtime.memory and .limits; everything else in it is there. */
void ceilings_set(struct config *config);

/* "1234 MiB: sampler 24, ..., shared memory 60, kernel 120" */
void ceilings_text(const struct config *config, char *text, size_t size);

#endif
