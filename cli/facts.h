/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has to be known about the machine before anything starts.
 */
#ifndef SCONCE_CLI_FACTS_H
#define SCONCE_CLI_FACTS_H

#include <stdbool.h>

#include "proto/config.h"

/* Fill config->runtime, from the machine and from the rest of the configuration. */
void facts_find(struct config *config);

/* Can we profile here at all? NULL, or one line that says what is missing and what to do. */
const char *facts_missing(const char *command, bool unsafe_kernel);

#endif
