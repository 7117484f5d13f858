/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the machine has to give, thing by thing: each check looks at one of them and changes
 * nothing.
 */
#ifndef SCONCE_CLI_CHECKS_H
#define SCONCE_CLI_CHECKS_H

#include <stddef.h>
#include <stdint.h>

enum check_state {
	CHECK_OK,
	CHECK_LACKS, /* it works, with less */
	CHECK_FATAL, /* it does not work without */
};

#define CHECK_TEXT_BYTES 200

struct check_result {
	enum check_state state;
	char found[CHECK_TEXT_BYTES]; /* what there is */
	char lost[CHECK_TEXT_BYTES];  /* what that costs, and what to do; "" when nothing */
};

/* From where things are read; "" on a real machine, a directory in tests. */
struct checks_world {
	const char *root;
	uint64_t capabilities; /* permitted: bit by CAP_ number */
	uint32_t uid;
	const char *release, *version; /* as uname() has them */
};

/* What this process may do, on this machine. */
void checks_here(struct checks_world *world);

size_t checks_count(void);
const char *checks_name(size_t i);
void checks_run(size_t i, const struct checks_world *world, struct check_result *result);

#endif
