/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's definitions as entries of a profile. Each definition is translated once per batch,
 * however many samples refer to it.
 */
#ifndef SCONCE_EXPORTER_TRANSLATE_H
#define SCONCE_EXPORTER_TRANSLATE_H

#include <stdint.h>

#include "exporter/definitions.h"
#include "profile/profile.h"
#include "proto/config.h"

struct translate {
	struct definitions *definitions; /* of the sample's worker and epoch */
	struct profile *profile;
	const struct config *config;
	uint32_t generation; /* number of the batch, never 0 */
	/* The first failure: -EPROTO (the worker's definition is bad) or -ENOSPC (profile full). */
	int err;
};

/* The key of a sample, from a record whose length has been checked. 0 or translate.err. */
int translate_sample(struct translate *translate, const struct symbol_sample *from,
		     struct profile_sample *to);

#endif
