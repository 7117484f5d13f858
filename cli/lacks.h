/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before anything starts: what makes profiling impossible ends it, with one line; what only costs
 * something is said once, here, in `sconce status` and in the viewer, and it goes on with less.
 */
#ifndef SCONCE_CLI_LACKS_H
#define SCONCE_CLI_LACKS_H

#include <stdbool.h>

#include "cli/options.h"

/* False when it has said what is missing. Lowers what does not fit, fills config.runtime.lacks. */
bool lacks_check(struct options *options);

#endif
