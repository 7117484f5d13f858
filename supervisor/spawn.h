/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start one process: fork, descriptors to their numbers, uid, capabilities, exec of the binary.
 *
 * The binary is opened by descriptor before the uid changes, so that it may lie in a home directory
 * that its uid cannot enter.
 */
#ifndef SCONCE_SUPERVISOR_SPAWN_H
#define SCONCE_SUPERVISOR_SPAWN_H

#include <stdnoreturn.h>
#include <sys/types.h>

#include "supervisor/wiring.h"

/* Start the process of a slot, from FD_SUPERVISOR_BINARIES, under its own uid, on these
 * descriptors. Its pid, or -errno. */
pid_t spawn_process(int slot, const struct config *config, const struct wire *wires,
		    size_t wires_n);

/* The two halves of it, for who has the uid and its capabilities already (config = NULL): a container's
 * init. parent is who it dies with. */
int spawn_binary(int folder, int slot);
noreturn void spawn_enter(int slot, const struct config *config, const struct wire *wires,
			  size_t wires_n, int binary, pid_t parent);

#endif
