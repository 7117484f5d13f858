/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line in every main: above it a process opens what it needs, below it it can get nothing more.
 */
#ifndef SCONCE_SUPERVISOR_SANDBOX_H
#define SCONCE_SUPERVISOR_SANDBOX_H

#include "proto/role.h"

/*
 * Confine the calling process for the rest of its life: no_new_privs, not dumpable (so that a process
 * of the same uid cannot read it), no core file, no writable and executable memory where the kernel
 * can refuse it. Dies when no_new_privs cannot be set.
 */
void sandbox_enter(enum role role);

#endif
