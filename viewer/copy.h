/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of one profile, defined again in another: what a slot keeps refers to nothing outside of
 * it. Each location, stack and resource is translated once per pair of profiles.
 */
#ifndef SCONCE_VIEWER_COPY_H
#define SCONCE_VIEWER_COPY_H

#include <stdint.h>

#include "profile/profile.h"

struct copy {
	const struct profile *from;
	struct profile *to;
	uint32_t *locations, *stacks, *resources; /* id in from -> id in to, 0 = not yet */
};

/* from must not change until copy_fini(). 0 or -ENOMEM. */
int copy_init(struct copy *copy, const struct profile *from);
void copy_fini(struct copy *copy);

/* Where the next samples go; what was translated for another profile is forgotten. */
void copy_to(struct copy *copy, struct profile *to);
/* Add sample `id` of from. 0 or -errno, -ENOSPC when the profile is full. */
int copy_sample(struct copy *copy, uint32_t id);

#endif
