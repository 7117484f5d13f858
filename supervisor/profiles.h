/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each role is confined by, and which system calls it may make, as data: one list, read by
 * sandbox_enter() for the filter of the process itself, and by `sconce seccomp-profile` for the
 * filter of its container, so that the two cannot drift apart.
 *
 * What is on no list is refused with EPERM, because libraries try things and go on without. What
 * only an attacker tries ends the process. clone3 is answered with ENOSYS: its flags lie in memory
 * where no filter sees them, and the C library then takes clone.
 */
#ifndef SCONCE_SUPERVISOR_PROFILES_H
#define SCONCE_SUPERVISOR_PROFILES_H

#include <stddef.h>
#include <stdint.h>

#include "proto/role.h"

/* What a process is confined by; LAYER(NAME, name). Bits by this order. */
#define PROFILE_LAYERS(LAYER)                                                                      \
	LAYER(SECCOMP, seccomp)                                                                    \
	LAYER(LANDLOCK, landlock)                                                                  \
	LAYER(ROOT, root) /* an empty one */                                                       \
	LAYER(PIDS, pids) /* a pid namespace of its own, and with it net, ipc and uts */           \
	LAYER(MDWE, mdwe) /* memory never becomes executable */

enum profile_layer {
#define LAYER(NAME, name) LAYER_##NAME,
	PROFILE_LAYERS(LAYER)
#undef LAYER
	    LAYER_COUNT
};

/* The layers that this role is meant to have, as bits. */
uint32_t profiles_layers(enum role role);

#define PROFILE_CONDITIONS_MAX 2

/* Holds when (argument & mask) == value; a mask of 0 is no condition. */
struct profile_condition {
	unsigned argument;
	uint64_t mask, value;
};

/* A call that may be made when all conditions hold. Several rules of one call: any of them. */
struct profile_rule {
	const char *name;
	struct profile_condition condition[PROFILE_CONDITIONS_MAX];
};

struct profile_part {
	const struct profile_rule *rules;
	size_t n;
};

/* Who asks: a process for itself, or a container, in which the process has to be started first. */
enum profile_for { PROFILE_PROCESS, PROFILE_CONTAINER };

#define PROFILE_PARTS_MAX 16

/*
 * The lists that together make up what the role may do. Returns how many; 0 for a role without a
 * filter (the cli; the supervisor, whose children would inherit it, except as a container).
 */
size_t profiles_allowed(enum role role, enum profile_for whom, struct profile_part *parts);

/* Calls that end the process, where profiles_allowed() does not have them. Ends in NULL. */
extern const char *const profiles_attacks[];

/* Is this name in any of the parts? */
int profiles_has(const struct profile_part *parts, size_t n, const char *name);

#endif
