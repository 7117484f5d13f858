/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flags, environment and YAML into one struct config. One table describes every option; each is a
 * flag --some-name, a variable SCONCE_SOME_NAME and a YAML key some_name (nested keys are joined:
 * `some: {name: 1}` is the same). Flags win over the environment, the environment over the file.
 *
 * Nothing is opened but the YAML file, nothing is printed: what is wrong comes back as one line.
 */
#ifndef SCONCE_CLI_OPTIONS_H
#define SCONCE_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/config.h"

enum options_command {
	COMMAND_RUN = 1,
	COMMAND_RECORD = 2,
	COMMAND_STATUS = 4,
	COMMAND_DOCTOR = 8,
	COMMAND_SECCOMP = 16
};

struct options {
	struct config config;
	enum options_command command;
	uint64_t duration_ms; /* 0 = until something ends it */
	char config_file[1024];
	char output[1024];
	bool json, verbose, help, unsafe_kernel;
	const char *argument; /* of seccomp-profile, NULL if none */
	char **program; /* what follows "--", NULL if nothing */
};

#define OPTIONS_ERROR_BYTES 512

/* argv without the name of the program and of the command. 0, or -1 with error set. */
int options_parse(struct options *options, enum options_command command, int argc, char **argv,
		  char error[OPTIONS_ERROR_BYTES]);

/* One option by its key (as in YAML), `origin` is what errors begin with. For yaml.c. */
int options_set_key(struct options *options, const char *key, const char *value,
		    const char *origin, char *error);

/* The list of options of a command, at most 80 columns wide. */
void options_help(enum options_command command);

/* Every option of every command: its flag without "--", NULL behind the last. For tests. */
const char *options_name(size_t i);

#endif
