/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sconce doctor`: what this machine gives, and what is lost without the rest. Exit code 0 when
 * profiling is possible, 1 when it is not.
 */
#ifndef SCONCE_CLI_DOCTOR_H
#define SCONCE_CLI_DOCTOR_H

#include "cli/options.h"

int doctor_main(struct options *options);

#endif
