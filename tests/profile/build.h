/* SPDX-License-Identifier: Apache-2.0 */
/* Small profiles for the tests, with what each format has to cope with. */
#ifndef SCONCE_TESTS_PROFILE_BUILD_H
#define SCONCE_TESTS_PROFILE_BUILD_H

#include "profile/profile.h"

uint32_t build_string(struct profile *profile, const char *text);
uint32_t build_function(struct profile *profile, const char *name, const char *file);
/* A resource with service.name and process.executable.name. */
uint32_t build_resource(struct profile *profile, const char *service);
/*
 * Five samples of two resources: main -> work -> (leaf inlined into work's callee) and a kernel
 * stack above it, an unnamed frame, a truncated stack, two periods; 17 counts in all.
 */
struct profile *build_profile(void);
#define BUILD_TOTAL 17

#endif
