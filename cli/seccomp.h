/* SPDX-License-Identifier: Apache-2.0 */
/* `sconce seccomp-profile ROLE`: the filter of a role's container, as the runtimes want it. */
#ifndef SCONCE_CLI_SECCOMP_H
#define SCONCE_CLI_SECCOMP_H

#include "cli/options.h"

int seccomp_main(struct options *options);

#endif
