/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has to be known about the machine before anything starts.
 */
#ifndef SCONCE_CLI_FACTS_H
#define SCONCE_CLI_FACTS_H

#include "proto/config.h"

/* Fill config->runtime, from the machine and from the rest of the configuration. */
void facts_find(struct config *config);

#endif
