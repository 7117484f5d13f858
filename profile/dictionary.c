/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/dictionary.h"

#include <errno.h>
#include <string.h>

#include "profile/otlp.h"

#define DICTIONARY_MAPPING_ATTRIBUTES 3

/* An entry of the attribute table, as it is interned. */
struct dictionary_entry {
	uint32_t key;  /* string of the output */
	uint32_t text; /* of `texts` */
	int64_t number;
	uint32_t is_number, unused;
};

void *dictionary_alloc(struct dictionary *d, size_t n, size_t size)
{
	void *p = arena_alloc(&d->arena, n ? n : 1, size);

	if (!p)
		d->err = -ENOMEM;
	return p;
}

static uint32_t dictionary_intern(struct dictionary *d, struct table *table, const char *text)
{
	uint32_t id;

	if (!*text)
		return 0;
	id = table_intern(table, &d->budget, text, strlen(text) + 1);
	if (!id)
		d->err = -ENOMEM;
	return id;
}

int32_t dictionary_string(struct dictionary *d, const char *text)
{
	return (int32_t)dictionary_intern(d, &d->strings, text);
}

static int32_t dictionary_text(struct dictionary *d, uint32_t string)
{
	return dictionary_string(d, profile_text(d->profile, string));
}

int32_t dictionary_attribute(struct dictionary *d, const char *key, const char *text,
			     int64_t number)
{
	struct dictionary_entry attribute = {.key = (uint32_t)dictionary_string(d, key),
					     .text =
						 text ? dictionary_intern(d, &d->texts, text) : 0,
					     .number = number,
					     .is_number = !text};
	uint32_t id = table_intern(&d->attributes, &d->budget, &attribute, sizeof(attribute));

	if (!id)
		d->err = -ENOMEM;
	return (int32_t)id;
}

static void dictionary_map_init(struct dictionary *d, struct dictionary_map *map, uint32_t n)
{
	map->number = dictionary_alloc(d, (size_t)n + 1, sizeof(*map->number));
	map->order = dictionary_alloc(d, (size_t)n + 1, sizeof(*map->order));
}

/* Index of an entry in the output; 0 stays 0. */
static int32_t dictionary_number(struct dictionary_map *map, uint32_t id)
{
	if (id && !map->number[id]) {
		map->order[map->n++] = id;
		map->number[id] = map->n;
	}
	return (int32_t)(id ? map->number[id] : 0);
}

int32_t dictionary_stack(struct dictionary *d, uint32_t stack)
{
	return dictionary_number(&d->stacks, stack);
}

WIRE_COMMON(AnyValue) * dictionary_value(struct dictionary *d, const char *text, int64_t number)
{
	WIRE_COMMON(AnyValue) *value = dictionary_alloc(d, 1, sizeof(*value));

	if (!value)
		return NULL;
	WIRE_COMMON_INIT(any_value)(value);
	value->value_case = text ? WIRE_VALUE(STRING_VALUE) : WIRE_VALUE(INT_VALUE);
	if (text)
		value->string_value = (char *)text;
	else
		value->int_value = number;
	return value;
}

/*
 * Tables. Each is an array of pointers to an array of messages; entry 0 is the zero value. Stacks
 * number locations, locations number mappings and functions, so the order of the calls matters.
 */
#define DICTIONARY_TABLE(d, kind, Type, init, n)                                                   \
	WIRE_PROFILES(Type) *items = dictionary_alloc(d, (n) + 1, sizeof(*items));                 \
	d->message.kind = dictionary_alloc(d, (n) + 1, sizeof(*d->message.kind));                  \
	d->message.n_##kind = (n) + 1;                                                             \
	for (size_t k = 0; k < (n) + 1 && !d->err; k++) {                                          \
		WIRE_PROFILES_INIT(init)(&items[k]);                                               \
		d->message.kind[k] = &items[k];                                                    \
	}                                                                                          \
	if (d->err)                                                                                \
		return;                                                                            \
	items++

static void dictionary_stacks(struct dictionary *d)
{
	size_t total = d->stacks.n;

	DICTIONARY_TABLE(d, stack_table, Stack, stack, total);
	for (size_t i = 0; i < total; i++) {
		size_t n;
		const uint32_t *from = profile_stack_at(d->profile, d->stacks.order[i], &n);
		int32_t *indices = dictionary_alloc(d, n, sizeof(*indices));

		if (!indices)
			return;
		for (size_t j = 0; j < n; j++)
			indices[j] = dictionary_number(&d->locations, from[j]);
		items[i].location_indices = indices;
		items[i].n_location_indices = n;
	}
}

static void dictionary_lines(struct dictionary *d, const struct profile_location *from,
			     WIRE_PROFILES(Location) * to)
{
	WIRE_PROFILES(Line) *lines = dictionary_alloc(d, from->lines_n, sizeof(*lines));

	to->lines = dictionary_alloc(d, from->lines_n, sizeof(*to->lines));
	if (d->err)
		return;
	for (uint32_t i = 0; i < from->lines_n; i++) {
		WIRE_PROFILES_INIT(line)(&lines[i]);
		lines[i].function_index = dictionary_number(&d->functions, from->lines[i].function);
		lines[i].line = from->lines[i].line;
		to->lines[i] = &lines[i];
	}
	to->n_lines = from->lines_n;
}

static void dictionary_locations(struct dictionary *d)
{
	size_t total = d->locations.n;

	DICTIONARY_TABLE(d, location_table, Location, location, total);
	for (size_t i = 0; i < total && !d->err; i++) {
		const struct profile_location *from =
		    profile_location_at(d->profile, d->locations.order[i]);

		items[i].mapping_index = dictionary_number(&d->mappings, from->mapping);
		items[i].address = from->address;
		dictionary_lines(d, from, &items[i]);
		if (!from->frame_type)
			continue;
		items[i].attribute_indices = dictionary_alloc(d, 1, sizeof(int32_t));
		if (!items[i].attribute_indices)
			return;
		items[i].attribute_indices[0] = dictionary_attribute(
		    d, OTLP_FRAME_TYPE, profile_text(d->profile, from->frame_type), 0);
		items[i].n_attribute_indices = 1;
	}
}

static void dictionary_mapping(struct dictionary *d, const struct profile_mapping *from,
			       WIRE_PROFILES(Mapping) * to)
{
	const struct {
		const char *key;
		uint32_t text;
	} ids[DICTIONARY_MAPPING_ATTRIBUTES] = {
	    {"process.executable.build_id.gnu", from->gnu_build_id},
	    {"process.executable.build_id.go", from->go_build_id},
	    {"process.executable.build_id.htlhash", from->htlhash},
	};

	/* Both 0 or start < limit, says the format. */
	if (from->start < from->limit) {
		to->memory_start = from->start;
		to->memory_limit = from->limit;
	}
	to->file_offset = from->offset;
	to->filename_strindex = dictionary_text(d, from->file);
	to->attribute_indices = dictionary_alloc(d, DICTIONARY_MAPPING_ATTRIBUTES, sizeof(int32_t));
	for (size_t i = 0; i < DICTIONARY_MAPPING_ATTRIBUTES && !d->err; i++)
		if (ids[i].text)
			to->attribute_indices[to->n_attribute_indices++] = dictionary_attribute(
			    d, ids[i].key, profile_text(d->profile, ids[i].text), 0);
}

static void dictionary_mappings(struct dictionary *d)
{
	size_t total = d->mappings.n;

	DICTIONARY_TABLE(d, mapping_table, Mapping, mapping, total);
	for (size_t i = 0; i < total && !d->err; i++)
		dictionary_mapping(d, profile_mapping_at(d->profile, d->mappings.order[i]),
				   &items[i]);
}

static void dictionary_functions(struct dictionary *d)
{
	size_t total = d->functions.n;

	DICTIONARY_TABLE(d, function_table, Function, function, total);
	for (size_t i = 0; i < total && !d->err; i++) {
		const struct profile_function *from =
		    profile_function_at(d->profile, d->functions.order[i]);

		items[i].name_strindex = dictionary_text(d, from->name);
		items[i].system_name_strindex = dictionary_text(d, from->system_name);
		items[i].filename_strindex = dictionary_text(d, from->file);
		items[i].start_line = from->start_line;
	}
}

static void dictionary_attributes(struct dictionary *d)
{
	size_t total = d->attributes.n;

	DICTIONARY_TABLE(d, attribute_table, KeyValueAndUnit, key_value_and_unit, total);
	for (size_t i = 0; i < total && !d->err; i++) {
		const struct dictionary_entry *from =
		    table_at(&d->attributes, (uint32_t)i + 1, NULL);
		const char *text = from->text ? table_at(&d->texts, from->text, NULL) : "";

		items[i].key_strindex = (int32_t)from->key;
		items[i].value = dictionary_value(d, from->is_number ? NULL : text, from->number);
	}
}

/* No sample has a link, but the table must be there; an empty Link is what checkers want. */
static void dictionary_links(struct dictionary *d)
{
	size_t none = 0;

	DICTIONARY_TABLE(d, link_table, Link, link, none);
	(void)items;
}

static void dictionary_strings(struct dictionary *d)
{
	char **strings = dictionary_alloc(d, (size_t)d->strings.n + 1, sizeof(*strings));

	if (!strings)
		return;
	strings[0] = (char *)"";
	for (uint32_t i = 1; i <= d->strings.n; i++)
		strings[i] = (char *)table_at(&d->strings, i, NULL);
	d->message.string_table = strings;
	d->message.n_string_table = (size_t)d->strings.n + 1;
}

void dictionary_finish(struct dictionary *d)
{
	/* Each numbers what the next ones write; strings come last because everybody adds some. */
	void (*const parts[])(struct dictionary *) = {
	    dictionary_stacks,	   dictionary_locations, dictionary_mappings, dictionary_functions,
	    dictionary_attributes, dictionary_links,	 dictionary_strings,
	};

	WIRE_PROFILES_INIT(profiles_dictionary)(&d->message);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && !d->err; i++)
		parts[i](d);
}

void dictionary_init(struct dictionary *d, const struct profile *profile, size_t limit_bytes)
{
	memset(d, 0, sizeof(*d));
	d->profile = profile;
	d->arena.limit_bytes = d->budget.limit_bytes = limit_bytes;
	dictionary_map_init(d, &d->functions, profile_functions_n(profile));
	dictionary_map_init(d, &d->mappings, profile_mappings_n(profile));
	dictionary_map_init(d, &d->locations, profile_locations_n(profile));
	dictionary_map_init(d, &d->stacks, profile_stacks_n(profile));
}

void dictionary_fini(struct dictionary *d)
{
	table_clear(&d->strings, &d->budget);
	table_clear(&d->attributes, &d->budget);
	table_clear(&d->texts, &d->budget);
	arena_free(&d->arena);
}
