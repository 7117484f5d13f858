/* SPDX-License-Identifier: Apache-2.0 */
/* Where the exporter may read files once it is confined: names of hosts, and certificates. */
#ifndef SCONCE_EXPORTER_PLACES_H
#define SCONCE_EXPORTER_PLACES_H

#include "proto/config.h"

/*
 * Directories, ends in NULL; valid until the next call. Host names come from files and DNS only
 * from here on: every other source of nsswitch.conf is a module, code that would have to be loaded.
 */
const char *const *places_readable(const struct config *config);

#endif
