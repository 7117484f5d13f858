/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the machine has to give, thing by thing: each check looks at one of them and changes
 * nothing. This is the table, and the capabilities; features.c has the kernel's own, places.c files
 * and limits.
 */
#ifndef SCONCE_CLI_CHECKS_H
#define SCONCE_CLI_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/probes.h"
#include "proto/config.h"

enum check_state {
	CHECK_OK,
	CHECK_LACKS, /* it works, with less */
	CHECK_FATAL, /* it does not work without */
};

#define CHECK_TEXT_BYTES 200
#define CHECKS_MAX	 64

struct check_result {
	enum check_state state;
	char found[CHECK_TEXT_BYTES]; /* what there is */
	char lost[CHECK_TEXT_BYTES];  /* what that costs, and what to do; "" when nothing */
};

/* From where things are read and who is asked; the real ones, or a test's. */
struct checks_world {
	const char *root;      /* "" on a real machine, a directory in tests */
	uint64_t capabilities; /* permitted: bit by CAP_ number */
	uint32_t uid;
	const char *release, *version;	    /* as uname() has them */
	uint64_t files_max, file_bytes_max; /* the hard limits of open files and of a file's size */
	const struct config *config;
	bool unsafe_kernel; /* --unsafe-kernel */
	int (*probe)(enum probe probe, uint32_t argument);
};

/* What this process may do, on this machine, with this configuration. */
void checks_here(struct checks_world *world, const struct config *config);

size_t checks_count(void);
const char *checks_name(size_t i);
/* Is its lack seen in a profile, or only by who looks at the processes? */
bool checks_shows(size_t i);
void checks_run(size_t i, const struct checks_world *world, struct check_result *result);

/* For the checks themselves. */
typedef void check_fn(const struct checks_world *world, struct check_result *result);

bool checks_held(const struct checks_world *world, int capability);
__attribute__((format(printf, 2, 3))) void checks_found(struct check_result *result,
							const char *format, ...);
__attribute__((format(printf, 3, 4))) void
checks_lose(struct check_result *result, enum check_state state, const char *format, ...);
/* "works", or why not, which is returned. */
int checks_probe(const struct checks_world *world, struct check_result *result, enum probe probe,
		 uint32_t argument);
/* The first line of a file of the world, without its end. False when it cannot be read. */
bool checks_line(const struct checks_world *world, const char *path, char *line, size_t size);
bool checks_readable(const struct checks_world *world, const char *path,
		     struct check_result *result);
int checks_number(const struct checks_world *world, const char *path, int missing);

#endif
