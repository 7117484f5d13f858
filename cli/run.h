/* SPDX-License-Identifier: Apache-2.0 */
/* `sconce run`: the node agent. */
#ifndef SCONCE_CLI_RUN_H
#define SCONCE_CLI_RUN_H

#include "cli/options.h"

/* Runs until it is told to stop. Exit code. */
int run_main(struct options *options);

#endif
