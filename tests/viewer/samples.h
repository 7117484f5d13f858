/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles made by hand: a stack is written as "leaf;caller;root", a resource as
 * "key=value,key=value".
 */
#ifndef SCONCE_TESTS_VIEWER_SAMPLES_H
#define SCONCE_TESTS_VIEWER_SAMPLES_H

#include "profile/profile.h"

#define SAMPLES_PERIOD_NS 50000000ull

/* Add `count` samples of this stack; "name+outer" is a frame inlined into `outer`. */
void samples_add(struct profile *profile, const char *resource, const char *stack, const char *stop,
		 uint64_t count);

#endif
