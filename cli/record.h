/* SPDX-License-Identifier: Apache-2.0 */
/* `sconce record`: a profile of something, for a while, into a file. */
#ifndef SCONCE_CLI_RECORD_H
#define SCONCE_CLI_RECORD_H

#include "cli/options.h"

/* Exit code: that of the recorded program if there is one, else 0 or 1. */
int record_main(struct options *options);

#endif
