/* SPDX-License-Identifier: Apache-2.0 */
/* From a role's lists (supervisor/profiles.h) to a seccomp filter of the calling process. */
#ifndef SCONCE_SUPERVISOR_FILTER_H
#define SCONCE_SUPERVISOR_FILTER_H

#include "proto/role.h"

/*
 * For the rest of the life of this process and its threads. Needs no_new_privs. 0, or -errno: then
 * there is no filter.
 */
int filter_load(enum role role);

#endif
