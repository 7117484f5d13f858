/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration file: a YAML mapping of options (see options.h), nested or not.
 */
#ifndef SCONCE_CLI_YAML_H
#define SCONCE_CLI_YAML_H

#include "cli/options.h"

/* 0, or -1 with error set to "file:line: what". */
int yaml_load(struct options *options, const char *path, char error[OPTIONS_ERROR_BYTES]);

#endif
