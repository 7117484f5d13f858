/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has to be known about the machine before anything starts.
 */
#ifndef SCONCE_CLI_FACTS_H
#define SCONCE_CLI_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/config.h"

/* Fill config->runtime, from the machine and from the rest of the configuration. */
void facts_find(struct config *config);

/* What the GNU linker called the file that has these notes, in hex; false: it did not. */
bool facts_build_id(const void *notes, size_t n, char *text, size_t size);

#endif
