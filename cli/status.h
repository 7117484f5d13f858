/* SPDX-License-Identifier: Apache-2.0 */
/* `sconce status`: every process and every counter of a running `sconce run`. */
#ifndef SCONCE_CLI_STATUS_H
#define SCONCE_CLI_STATUS_H

#include "cli/options.h"

int status_main(struct options *options);

#endif
