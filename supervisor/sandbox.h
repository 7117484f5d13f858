/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line in every main: above it a process opens what it needs, below it it can get nothing more.
 */
#ifndef SCONCE_SUPERVISOR_SANDBOX_H
#define SCONCE_SUPERVISOR_SANDBOX_H

#include <stdint.h>

#include "proto/role.h"

/*
 * Confine the calling process, which has one thread, for the rest of its life: no_new_privs, not
 * dumpable (so that a process of the same uid cannot read it), no core file, and the layers of its
 * role (supervisor/profiles.h). readable: directories that it may still read
 * (supervisor/landlock.h). A layer that kernel or container forbid is done without, with a line in
 * the log. Returns those that are there. Dies when no_new_privs cannot be set.
 */
uint32_t sandbox_enter(enum role role, const char *const *readable);

#endif
