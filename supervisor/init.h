/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small init of a role's container: `sconce-supervisor --role X [--worker K] [--run-dir DIR]`,
 * in the directory with the binary of the role, with the uid and the capabilities of the role.
 *
 * One connection to the supervisor's control socket is one life of the process:
 *
 *   connect; fork; OFFER the child's pidfd; the child waits
 *   the supervisor sends START; the child puts the descriptors at their numbers and becomes the role,
 *   and the connection its channel
 *   the supervisor shuts its end, or is gone: the init kills the child
 *   the child has ended: the init closes the connection, and begins anew
 *
 * The supervisor trusts no word of it: who it is says SO_PEERCRED, that the process has ended says the
 * pidfd, which works across pid namespaces where signals do not.
 */
#ifndef SCONCE_SUPERVISOR_INIT_H
#define SCONCE_SUPERVISOR_INIT_H

#include "proto/channel.h"
#include "supervisor/wiring.h"

/* Never returns but for wrong arguments. */
int init_main(int argc, char **argv);

/* The supervisor's half: start the process that was offered on this channel. 0 or -errno. */
int init_send(struct channel *channel, const struct wire *wires, size_t wires_n);

#endif
