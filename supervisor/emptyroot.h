/* SPDX-License-Identifier: Apache-2.0 */
/* A root directory in which nothing is, not even /proc. */
#ifndef SCONCE_SUPERVISOR_EMPTYROOT_H
#define SCONCE_SUPERVISOR_EMPTYROOT_H

/*
 * Move the calling process, which has one thread, into a user and a mount namespace of its own
 * whose root is empty and read-only. It holds no capability afterwards, whether it worked or not. 0
 * or -errno.
 */
int emptyroot_enter(void);

#endif
