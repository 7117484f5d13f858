/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary of an OTLP request that is being written (profile/otlp.h). Whatever is asked for
 * gets an index in the order in which it is met, so that the dictionary holds nothing else; at the
 * end dictionary_finish() writes the tables. Strings and attributes are interned once more, by
 * text, because the keys and units that the format adds may be the same text as a name of the
 * profile.
 *
 * The first failure is kept in `err`; what comes after it does nothing and need not be looked at.
 */
#ifndef SCONCE_PROFILE_DICTIONARY_H
#define SCONCE_PROFILE_DICTIONARY_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "profile/table.h"
#include "profile/wire.h"

/* Ids of the profile in the order in which they were met; number[id] is the index in the output. */
struct dictionary_map {
	uint32_t *number, *order;
	uint32_t n;
};

struct dictionary {
	const struct profile *profile;
	struct arena arena; /* of the whole request */
	struct table_budget budget;
	struct table strings, attributes;
	struct table texts; /* values of attributes: they stand in place, not in the string table */
	struct dictionary_map functions, mappings, locations, stacks;
	int err;
	WIRE_PROFILES(ProfilesDictionary) message;
};

/* Look at err afterwards; free with dictionary_fini in any case. */
void dictionary_init(struct dictionary *dictionary, const struct profile *profile,
		     size_t limit_bytes);
void dictionary_fini(struct dictionary *dictionary);

/* Zeroed memory that lives as long as the dictionary; NULL sets err. */
void *dictionary_alloc(struct dictionary *dictionary, size_t n, size_t size);
int32_t dictionary_string(struct dictionary *dictionary, const char *text);
/* A text, or a number where text is NULL. */
int32_t dictionary_attribute(struct dictionary *dictionary, const char *key, const char *text,
			     int64_t number);
int32_t dictionary_stack(struct dictionary *dictionary, uint32_t stack);
/* As dictionary_attribute, but a value on its own. */
WIRE_COMMON(AnyValue) *
    dictionary_value(struct dictionary *dictionary, const char *text, int64_t number);

/* Write the tables of everything that was asked for into `message`. */
void dictionary_finish(struct dictionary *dictionary);

#endif
