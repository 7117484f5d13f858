/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the entries of a received dictionary to entries of a profile. Every index was checked before
 * (profile/otlp_check.h).
 *
 * The surprise: an entry is translated once per target, however often it is referred to, so that a
 * small message cannot make us do much work.
 */
#ifndef SCONCE_PROFILE_TRANSLATE_H
#define SCONCE_PROFILE_TRANSLATE_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"
#include "profile/wire.h"

#define TRANSLATE_NUMBER_BYTES 32

/* Entries of one dictionary table in the target: id[i] holds when generation[i] is the current one.
 */
struct translate_map {
	uint32_t *generation, *id;
};

struct translate {
	const WIRE_PROFILES(ProfilesDictionary) * dictionary;
	struct arena *arena;
	struct profile *target;
	bool full; /* the target: nothing new is translated any more */
	uint32_t generation;
	struct translate_map strings, functions, mappings, locations, stacks;
	uint32_t *scratch; /* PROFILE_LOCATIONS_MAX */
};

/* False when the arena is exhausted. Borrows both. */
bool translate_init(struct translate *translate, struct arena *arena,
		    const WIRE_PROFILES(ProfilesDictionary) * dictionary);
/* From here on into this profile; what was translated for another one does not hold in it. */
void translate_target(struct translate *translate, struct profile *target);

/* A string of the dictionary. */
const char *translate_text(const struct translate *translate, int32_t index);
/* Text of a value, "" for lists and bytes. `number` is room for digits. */
const char *translate_value_text(const struct translate *translate,
				 const WIRE_COMMON(AnyValue) * value,
				 char number[TRANSLATE_NUMBER_BYTES]);
/* An attribute by name among indices; NULL when it is not there. */
const WIRE_PROFILES(KeyValueAndUnit) * translate_attribute(const struct translate *translate,
							   const int32_t *indices, size_t n,
							   const char *key);
/* The text, or that of an attribute, as a string of the target; 0 = none, or no room. */
uint32_t translate_add(struct translate *translate, const char *text);
uint32_t translate_attribute_string(struct translate *translate,
				    const WIRE_PROFILES(KeyValueAndUnit) * attribute);
/* A stack as one of the target's; *id 0 = none. False when the target is full. */
bool translate_stack(struct translate *translate, int32_t index, uint32_t *id);

#endif
