/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/translate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "profile/otlp.h"

const char *translate_text(const struct translate *t, int32_t index)
{
	return index ? t->dictionary->string_table[index] : "";
}

/* Text of a value, "" for lists and bytes. `number` is room for digits. */
const char *translate_value_text(const struct translate *t, const WIRE_COMMON(AnyValue) * value,
				 char number[TRANSLATE_NUMBER_BYTES])
{
	switch (value ? value->value_case : WIRE_VALUE(_NOT_SET)) {
	case WIRE_VALUE(STRING_VALUE):
		return value->string_value;
	case WIRE_VALUE(STRING_VALUE_STRINDEX):
		return translate_text(t, value->string_value_strindex);
	case WIRE_VALUE(BOOL_VALUE):
		return value->bool_value ? "true" : "false";
	case WIRE_VALUE(INT_VALUE):
		snprintf(number, TRANSLATE_NUMBER_BYTES, "%" PRId64, value->int_value);
		return number;
	case WIRE_VALUE(DOUBLE_VALUE):
		snprintf(number, TRANSLATE_NUMBER_BYTES, "%.17g", value->double_value);
		return number;
	default:
		return "";
	}
}

/* True when id[index] is to be filled in; 0 is none. */
static bool translate_map_missing(const struct translate *t, struct translate_map *map,
				  int32_t index)
{
	if (!index || map->generation[index] == t->generation)
		return false;
	map->generation[index] = t->generation;
	map->id[index] = 0;
	return true;
}

uint32_t translate_add(struct translate *t, const char *text)
{
	uint32_t id = profile_string(t->target, text, strlen(text));

	if (!id && *text)
		t->full = true;
	return id;
}

/* All of these give the id in the target, 0 for none or when it is full. */
static uint32_t translate_string(struct translate *t, int32_t index)
{
	const char *text = translate_text(t, index);

	if (translate_map_missing(t, &t->strings, index))
		t->strings.id[index] = translate_add(t, text);
	return index ? t->strings.id[index] : 0;
}

/* The text value of an attribute as a string of the target. */
uint32_t translate_attribute_string(struct translate *t, const WIRE_PROFILES(KeyValueAndUnit) * a)
{
	char number[TRANSLATE_NUMBER_BYTES];
	const char *text;

	text = translate_value_text(t, a->value, number);
	return translate_add(t, text);
}

/* An attribute by name among indices; NULL when it is not there. */
const WIRE_PROFILES(KeyValueAndUnit) * translate_attribute(const struct translate *t,
							   const int32_t *indices, size_t n,
							   const char *key)
{
	for (size_t i = 0; i < n; i++) {
		const WIRE_PROFILES(KeyValueAndUnit) * a;

		if (!indices[i])
			continue;
		a = t->dictionary->attribute_table[indices[i]];
		if (!strcmp(translate_text(t, a->key_strindex), key))
			return a;
	}
	return NULL;
}

static uint32_t translate_function(struct translate *t, int32_t index)
{
	const WIRE_PROFILES(Function) * from;
	struct profile_function to = {0};

	if (!translate_map_missing(t, &t->functions, index))
		return index ? t->functions.id[index] : 0;
	from = t->dictionary->function_table[index];
	to.name = translate_string(t, from->name_strindex);
	to.system_name = translate_string(t, from->system_name_strindex);
	to.file = translate_string(t, from->filename_strindex);
	if (!to.name)
		to.name = to.system_name ? to.system_name : to.file;
	if (from->start_line > 0 && from->start_line <= UINT32_MAX)
		to.start_line = (uint32_t)from->start_line;
	if (!to.name)
		return 0;
	t->functions.id[index] = profile_function(t->target, &to);
	if (!t->functions.id[index])
		t->full = true;
	return t->functions.id[index];
}

static uint32_t translate_build_id(struct translate *t, const WIRE_PROFILES(Mapping) * from,
				   const char *key)
{
	const WIRE_PROFILES(KeyValueAndUnit) *a =
	    translate_attribute(t, from->attribute_indices, from->n_attribute_indices, key);

	return a ? translate_attribute_string(t, a) : 0;
}

static uint32_t translate_mapping(struct translate *t, int32_t index)
{
	const WIRE_PROFILES(Mapping) * from;
	struct profile_mapping to = {0};

	if (!translate_map_missing(t, &t->mappings, index))
		return index ? t->mappings.id[index] : 0;
	from = t->dictionary->mapping_table[index];
	to.file = translate_string(t, from->filename_strindex);
	to.gnu_build_id = translate_build_id(t, from, "process.executable.build_id.gnu");
	to.go_build_id = translate_build_id(t, from, "process.executable.build_id.go");
	to.htlhash = translate_build_id(t, from, "process.executable.build_id.htlhash");
	to.start = from->memory_start;
	to.limit = from->memory_limit;
	to.offset = from->file_offset;
	t->mappings.id[index] = profile_mapping(t->target, &to);
	if (!t->mappings.id[index])
		t->full = true;
	return t->mappings.id[index];
}

static uint32_t translate_location(struct translate *t, int32_t index)
{
	const WIRE_PROFILES(Location) * from;
	const WIRE_PROFILES(KeyValueAndUnit) * type;
	struct profile_location to = {0};
	struct profile_line lines[PROFILE_LINES_MAX];

	if (!translate_map_missing(t, &t->locations, index))
		return index ? t->locations.id[index] : 0;
	from = t->dictionary->location_table[index];
	to.mapping = translate_mapping(t, from->mapping_index);
	to.address = from->address;
	type = translate_attribute(t, from->attribute_indices, from->n_attribute_indices,
				   OTLP_FRAME_TYPE);
	to.frame_type = type ? translate_attribute_string(t, type) : 0;
	for (size_t i = 0; i < from->n_lines && to.lines_n < PROFILE_LINES_MAX; i++) {
		uint32_t function = translate_function(t, from->lines[i]->function_index);
		int64_t line = from->lines[i]->line;

		if (function)
			lines[to.lines_n++] = (struct profile_line){
			    function, line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0};
	}
	/* A location that lacks a name only for want of room must not be taken for one without. */
	if (!t->full)
		t->locations.id[index] = profile_location(t->target, &to, lines);
	return t->locations.id[index];
}

/* False when the target is full. */
bool translate_stack(struct translate *t, int32_t index, uint32_t *id)
{
	const WIRE_PROFILES(Stack) * from;
	size_t n = 0;

	*id = 0;
	if (!index)
		return true;
	from = t->dictionary->stack_table[index];
	if (translate_map_missing(t, &t->stacks, index)) {
		for (size_t i = 0; i < from->n_location_indices && n < PROFILE_LOCATIONS_MAX; i++) {
			if (!from->location_indices[i])
				continue;
			t->scratch[n] = translate_location(t, from->location_indices[i]);
			if (!t->scratch[n++])
				return false;
		}
		t->stacks.id[index] = profile_stack(t->target, t->scratch, n);
	}
	*id = t->stacks.id[index];
	return *id || !from->n_location_indices || !from->location_indices[0];
}

static bool translate_map_init(struct translate *t, struct translate_map *map, size_t n)
{
	map->generation = arena_alloc(t->arena, n ? n : 1, sizeof(*map->generation));
	map->id = arena_alloc(t->arena, n ? n : 1, sizeof(*map->id));
	return map->generation && map->id;
}

bool translate_init(struct translate *t, struct arena *arena,
		    const WIRE_PROFILES(ProfilesDictionary) * dictionary)
{
	*t = (struct translate){.dictionary = dictionary, .arena = arena, .generation = 1};
	t->scratch = arena_alloc(arena, PROFILE_LOCATIONS_MAX, sizeof(*t->scratch));
	return t->scratch && translate_map_init(t, &t->strings, dictionary->n_string_table) &&
	       translate_map_init(t, &t->functions, dictionary->n_function_table) &&
	       translate_map_init(t, &t->mappings, dictionary->n_mapping_table) &&
	       translate_map_init(t, &t->locations, dictionary->n_location_table) &&
	       translate_map_init(t, &t->stacks, dictionary->n_stack_table);
}

void translate_target(struct translate *t, struct profile *target)
{
	if (target != t->target) {
		t->generation++;
		t->full = false;
	}
	t->target = target;
}
