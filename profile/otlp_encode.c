/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile/otlp.h, the writing half.
 *
 * Samples are sorted into groups of one (resource, period), which become one Profile each. From
 * them everything that they refer to is numbered in the order in which it is met, so that the
 * dictionary holds nothing else. Strings and attributes are interned once more, by text, because
 * the keys and units that the format adds may be the same text as a name of the profile.
 */
#include "profile/otlp.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/table.h"
#include "profile/wire.h"

#define ENCODE_ARENA_MAX	  ((size_t)1 << 30)
#define ENCODE_SAMPLE_ATTRIBUTES  4
#define ENCODE_MAPPING_ATTRIBUTES 3

struct encode_sample {
	struct profile_sample key;
	uint64_t count;
};

/* Ids of the profile in the order in which they were met; number[id] is the index in the output. */
struct encode_map {
	uint32_t *number, *order;
	uint32_t n;
};

/* An entry of the attribute table, as it is interned. */
struct encode_attribute {
	uint32_t key, text; /* strings of the output */
	int64_t number;
	uint32_t is_number, unused;
};

struct encode {
	const struct profile *profile;
	const struct otlp_encode_options *options;
	struct arena arena;
	struct table_budget budget;
	struct table strings, attributes;
	struct encode_map functions, mappings, locations, stacks;
	struct encode_sample *samples;
	size_t samples_n;
	int err; /* the first failure; everything after it is for nothing */
	WIRE_PROFILES(ProfilesDictionary) dictionary;
	WIRE_COLLECTOR(ExportProfilesServiceRequest) request;
};

static void *encode_alloc(struct encode *e, size_t n, size_t size)
{
	void *p = arena_alloc(&e->arena, n ? n : 1, size);

	if (!p)
		e->err = -ENOMEM;
	return p;
}

static int32_t encode_string(struct encode *e, const char *text)
{
	uint32_t id;

	if (!*text)
		return 0;
	id = table_intern(&e->strings, &e->budget, text, strlen(text) + 1);
	if (!id)
		e->err = -ENOMEM;
	return (int32_t)id;
}

static int32_t encode_text(struct encode *e, uint32_t string)
{
	return encode_string(e, profile_text(e->profile, string));
}

static int32_t encode_attribute(struct encode *e, const char *key, const char *text, int64_t number)
{
	struct encode_attribute attribute = {.key = (uint32_t)encode_string(e, key),
					     .text = text ? (uint32_t)encode_string(e, text) : 0,
					     .number = number,
					     .is_number = !text};
	uint32_t id = table_intern(&e->attributes, &e->budget, &attribute, sizeof(attribute));

	if (!id)
		e->err = -ENOMEM;
	return (int32_t)id;
}

static void encode_map_init(struct encode *e, struct encode_map *map, uint32_t n)
{
	map->number = encode_alloc(e, (size_t)n + 1, sizeof(*map->number));
	map->order = encode_alloc(e, (size_t)n + 1, sizeof(*map->order));
}

/* Index of an entry in the output; 0 stays 0. */
static int32_t encode_number(struct encode_map *map, uint32_t id)
{
	if (id && !map->number[id]) {
		map->order[map->n++] = id;
		map->number[id] = map->n;
	}
	return (int32_t)(id ? map->number[id] : 0);
}

static int encode_compare(const void *a, const void *b)
{
	const struct profile_sample *x = &((const struct encode_sample *)a)->key;
	const struct profile_sample *y = &((const struct encode_sample *)b)->key;

#define ENCODE_ORDER(field)                                                                        \
	if (x->field != y->field)                                                                  \
	return x->field < y->field ? -1 : 1
	ENCODE_ORDER(resource);
	ENCODE_ORDER(period_ns);
	ENCODE_ORDER(stack);
	ENCODE_ORDER(thread_name);
	ENCODE_ORDER(stop);
	ENCODE_ORDER(pid);
	ENCODE_ORDER(tid);
#undef ENCODE_ORDER
	return 0;
}

/* Copy, leave out what is not to be told, sort, merge what has become equal. */
static void encode_collect(struct encode *e)
{
	uint32_t n = profile_samples_n(e->profile);
	size_t kept = 0;

	e->samples = encode_alloc(e, n, sizeof(*e->samples));
	if (!e->samples)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct encode_sample *s = &e->samples[i];

		s->key = *profile_sample_at(e->profile, i + 1, &s->count);
		if (!s->key.period_ns)
			s->key.period_ns = 1;
		if (!e->options->with_process_ids)
			s->key.pid = s->key.tid = 0;
	}
	qsort(e->samples, n, sizeof(*e->samples), encode_compare);
	for (uint32_t i = 0; i < n; i++) {
		if (kept && !encode_compare(&e->samples[kept - 1], &e->samples[i]))
			e->samples[kept - 1].count += e->samples[i].count;
		else
			e->samples[kept++] = e->samples[i];
	}
	e->samples_n = kept;
}

static WIRE_PROFILES(Sample) * encode_sample(struct encode *e, const struct encode_sample *from)
{
	WIRE_PROFILES(Sample) *sample = encode_alloc(e, 1, sizeof(*sample));
	int32_t *attributes = encode_alloc(e, ENCODE_SAMPLE_ATTRIBUTES, sizeof(*attributes));
	int64_t *value = encode_alloc(e, 1, sizeof(*value));
	size_t n = 0;

	if (e->err)
		return NULL;
	WIRE_PROFILES_INIT(sample)(sample);
	if (from->key.thread_name)
		attributes[n++] = encode_attribute(
		    e, OTLP_THREAD_NAME, profile_text(e->profile, from->key.thread_name), 0);
	if (from->key.stop)
		attributes[n++] = encode_attribute(e, OTLP_STACK_STOP,
						   profile_text(e->profile, from->key.stop), 0);
	if (from->key.pid)
		attributes[n++] = encode_attribute(e, OTLP_PROCESS_PID, NULL, from->key.pid);
	if (from->key.tid)
		attributes[n++] = encode_attribute(e, OTLP_THREAD_ID, NULL, from->key.tid);
	assert(n <= ENCODE_SAMPLE_ATTRIBUTES);
	*value = (int64_t)from->count;
	sample->stack_index = encode_number(&e->stacks, from->key.stack);
	sample->attribute_indices = attributes;
	sample->n_attribute_indices = n;
	sample->values = value;
	sample->n_values = 1;
	return sample;
}

static WIRE_PROFILES(ValueType) * encode_type(struct encode *e, const char *type, const char *unit)
{
	WIRE_PROFILES(ValueType) *value = encode_alloc(e, 1, sizeof(*value));

	if (!value)
		return NULL;
	WIRE_PROFILES_INIT(value_type)(value);
	value->type_strindex = encode_string(e, type);
	value->unit_strindex = encode_string(e, unit);
	return value;
}

/* A bijection, so that different batches and profiles never get the same id. */
static uint64_t encode_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static ProtobufCBinaryData encode_profile_id(struct encode *e, uint64_t index)
{
	uint64_t *id = encode_alloc(e, 2, sizeof(*id));

	if (!id)
		return (ProtobufCBinaryData){0, NULL};
	memcpy(id, e->options->instance, OTLP_PROFILE_ID_BYTES);
	id[0] ^= encode_mix(e->options->batch + 1);
	id[1] ^= encode_mix(index + 1);
	/* All zero would mean "none". */
	if (!id[0] && !id[1])
		id[1] = 1;
	return (ProtobufCBinaryData){OTLP_PROFILE_ID_BYTES, (uint8_t *)id};
}

static WIRE_PROFILES(Profile) *
    encode_profile(struct encode *e, const struct encode_sample *samples, size_t n, uint64_t index)
{
	WIRE_PROFILES(Profile) *profile = encode_alloc(e, 1, sizeof(*profile));
	uint64_t start = profile_start_unix_ns(e->profile), end = profile_end_unix_ns(e->profile);

	if (!profile)
		return NULL;
	WIRE_PROFILES_INIT(profile)(profile);
	profile->sample_type = encode_type(e, "samples", "count");
	profile->period_type = encode_type(e, "cpu", "nanoseconds");
	profile->period = (int64_t)samples->key.period_ns;
	profile->time_unix_nano = start;
	profile->duration_nano = end > start ? end - start : 1;
	profile->profile_id = encode_profile_id(e, index);
	profile->samples = encode_alloc(e, n, sizeof(*profile->samples));
	for (size_t i = 0; i < n && !e->err; i++)
		profile->samples[i] = encode_sample(e, &samples[i]);
	profile->n_samples = n;
	return profile;
}

static WIRE_COMMON(AnyValue) * encode_value(struct encode *e, const char *text, int64_t number)
{
	WIRE_COMMON(AnyValue) *value = encode_alloc(e, 1, sizeof(*value));

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

static WIRE_RESOURCE(Resource) * encode_resource(struct encode *e, uint32_t id)
{
	WIRE_RESOURCE(Resource) *resource = encode_alloc(e, 1, sizeof(*resource));
	const struct profile_attribute *attributes;
	WIRE_COMMON(KeyValue) * pairs;
	size_t n;

	attributes = profile_resource_at(e->profile, id, &n);
	pairs = encode_alloc(e, n, sizeof(*pairs));
	if (e->err)
		return NULL;
	WIRE_RESOURCE_INIT(resource)(resource);
	resource->attributes = encode_alloc(e, n, sizeof(*resource->attributes));
	for (size_t i = 0; i < n && !e->err; i++) {
		WIRE_COMMON_INIT(key_value)(&pairs[i]);
		pairs[i].key = (char *)profile_text(e->profile, attributes[i].key);
		pairs[i].value = encode_value(e, profile_text(e->profile, attributes[i].value), 0);
		resource->attributes[i] = &pairs[i];
	}
	resource->n_attributes = n;
	return resource;
}

/* Length of the run of samples that share resource (and period). */
static size_t encode_run(const struct encode_sample *samples, size_t n, bool with_period)
{
	size_t i = 1;

	while (i < n && samples[i].key.resource == samples->key.resource &&
	       (!with_period || samples[i].key.period_ns == samples->key.period_ns))
		i++;
	return i;
}

/* One resource: its attributes, one scope (us), a Profile per period. */
static WIRE_PROFILES(ResourceProfiles) *
    encode_resource_profiles(struct encode *e, const struct encode_sample *samples, size_t n,
			     uint64_t *index)
{
	WIRE_PROFILES(ResourceProfiles) *rp = encode_alloc(e, 1, sizeof(*rp));
	WIRE_PROFILES(ScopeProfiles) *scope = encode_alloc(e, 1, sizeof(*scope));
	WIRE_COMMON(InstrumentationScope) *us = encode_alloc(e, 1, sizeof(*us));
	size_t profiles = 0, run;

	if (e->err)
		return NULL;
	WIRE_PROFILES_INIT(resource_profiles)(rp);
	WIRE_PROFILES_INIT(scope_profiles)(scope);
	WIRE_COMMON_INIT(instrumentation_scope)(us);
	us->name = (char *)"sconce";
	us->version = (char *)SCONCE_VERSION;
	scope->scope = us;
	for (size_t i = 0; i < n; i += encode_run(samples + i, n - i, true))
		profiles++;
	scope->profiles = encode_alloc(e, profiles, sizeof(*scope->profiles));
	for (size_t i = 0; i < n && !e->err; i += run) {
		run = encode_run(samples + i, n - i, true);
		scope->profiles[scope->n_profiles++] =
		    encode_profile(e, samples + i, run, (*index)++);
	}
	rp->resource = encode_resource(e, samples->key.resource);
	rp->scope_profiles = encode_alloc(e, 1, sizeof(*rp->scope_profiles));
	if (e->err)
		return NULL;
	rp->scope_profiles[0] = scope;
	rp->n_scope_profiles = 1;
	return rp;
}

static void encode_resources(struct encode *e)
{
	size_t resources = 0, run;
	uint64_t index = 0;

	for (size_t i = 0; i < e->samples_n;
	     i += encode_run(e->samples + i, e->samples_n - i, false))
		resources++;
	if (resources > OTLP_RESOURCES_MAX) {
		e->err = -E2BIG;
		return;
	}
	e->request.resource_profiles =
	    encode_alloc(e, resources, sizeof(*e->request.resource_profiles));
	for (size_t i = 0; i < e->samples_n && !e->err; i += run) {
		run = encode_run(e->samples + i, e->samples_n - i, false);
		e->request.resource_profiles[e->request.n_resource_profiles++] =
		    encode_resource_profiles(e, e->samples + i, run, &index);
	}
}

/*
 * Tables. Each is an array of pointers to an array of messages; entry 0 is the zero value. Stacks
 * number locations, locations number mappings and functions, so the order of the calls matters.
 */
#define ENCODE_TABLE(e, kind, Type, init, n)                                                       \
	WIRE_PROFILES(Type) *items = encode_alloc(e, (n) + 1, sizeof(*items));                     \
	e->dictionary.kind = encode_alloc(e, (n) + 1, sizeof(*e->dictionary.kind));                \
	e->dictionary.n_##kind = (n) + 1;                                                          \
	for (size_t k = 0; k < (n) + 1 && !e->err; k++) {                                          \
		WIRE_PROFILES_INIT(init)(&items[k]);                                               \
		e->dictionary.kind[k] = &items[k];                                                 \
	}                                                                                          \
	if (e->err)                                                                                \
		return;                                                                            \
	items++

static void encode_stacks(struct encode *e)
{
	size_t total = e->stacks.n;

	ENCODE_TABLE(e, stack_table, Stack, stack, total);
	for (size_t i = 0; i < total; i++) {
		size_t n;
		const uint32_t *from = profile_stack_at(e->profile, e->stacks.order[i], &n);
		int32_t *indices = encode_alloc(e, n, sizeof(*indices));

		if (!indices)
			return;
		for (size_t j = 0; j < n; j++)
			indices[j] = encode_number(&e->locations, from[j]);
		items[i].location_indices = indices;
		items[i].n_location_indices = n;
	}
}

static void encode_lines(struct encode *e, const struct profile_location *from,
			 WIRE_PROFILES(Location) * to)
{
	WIRE_PROFILES(Line) *lines = encode_alloc(e, from->lines_n, sizeof(*lines));

	to->lines = encode_alloc(e, from->lines_n, sizeof(*to->lines));
	if (e->err)
		return;
	for (uint32_t i = 0; i < from->lines_n; i++) {
		WIRE_PROFILES_INIT(line)(&lines[i]);
		lines[i].function_index = encode_number(&e->functions, from->lines[i].function);
		lines[i].line = from->lines[i].line;
		to->lines[i] = &lines[i];
	}
	to->n_lines = from->lines_n;
}

static void encode_locations(struct encode *e)
{
	size_t total = e->locations.n;

	ENCODE_TABLE(e, location_table, Location, location, total);
	for (size_t i = 0; i < total && !e->err; i++) {
		const struct profile_location *from =
		    profile_location_at(e->profile, e->locations.order[i]);

		items[i].mapping_index = encode_number(&e->mappings, from->mapping);
		items[i].address = from->address;
		encode_lines(e, from, &items[i]);
		if (!from->frame_type)
			continue;
		items[i].attribute_indices = encode_alloc(e, 1, sizeof(int32_t));
		if (!items[i].attribute_indices)
			return;
		items[i].attribute_indices[0] = encode_attribute(
		    e, OTLP_FRAME_TYPE, profile_text(e->profile, from->frame_type), 0);
		items[i].n_attribute_indices = 1;
	}
}

static void encode_mapping(struct encode *e, const struct profile_mapping *from,
			   WIRE_PROFILES(Mapping) * to)
{
	const struct {
		const char *key;
		uint32_t text;
	} ids[ENCODE_MAPPING_ATTRIBUTES] = {
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
	to->filename_strindex = encode_text(e, from->file);
	to->attribute_indices = encode_alloc(e, ENCODE_MAPPING_ATTRIBUTES, sizeof(int32_t));
	for (size_t i = 0; i < ENCODE_MAPPING_ATTRIBUTES && !e->err; i++)
		if (ids[i].text)
			to->attribute_indices[to->n_attribute_indices++] = encode_attribute(
			    e, ids[i].key, profile_text(e->profile, ids[i].text), 0);
}

static void encode_mappings(struct encode *e)
{
	size_t total = e->mappings.n;

	ENCODE_TABLE(e, mapping_table, Mapping, mapping, total);
	for (size_t i = 0; i < total && !e->err; i++)
		encode_mapping(e, profile_mapping_at(e->profile, e->mappings.order[i]), &items[i]);
}

static void encode_functions(struct encode *e)
{
	size_t total = e->functions.n;

	ENCODE_TABLE(e, function_table, Function, function, total);
	for (size_t i = 0; i < total && !e->err; i++) {
		const struct profile_function *from =
		    profile_function_at(e->profile, e->functions.order[i]);

		items[i].name_strindex = encode_text(e, from->name);
		items[i].system_name_strindex = encode_text(e, from->system_name);
		items[i].filename_strindex = encode_text(e, from->file);
		items[i].start_line = from->start_line;
	}
}

static void encode_attributes(struct encode *e)
{
	size_t total = e->attributes.n;

	ENCODE_TABLE(e, attribute_table, KeyValueAndUnit, key_value_and_unit, total);
	for (size_t i = 0; i < total && !e->err; i++) {
		const struct encode_attribute *from =
		    table_at(&e->attributes, (uint32_t)i + 1, NULL);
		const char *text = from->text ? table_at(&e->strings, from->text, NULL) : "";

		items[i].key_strindex = (int32_t)from->key;
		items[i].value = encode_value(e, from->is_number ? NULL : text, from->number);
	}
}

/* No sample has a link, but the table must be there; an empty Link is what checkers want. */
static void encode_links(struct encode *e)
{
	size_t none = 0;

	ENCODE_TABLE(e, link_table, Link, link, none);
	(void)items;
}

static void encode_strings(struct encode *e)
{
	char **strings = encode_alloc(e, (size_t)e->strings.n + 1, sizeof(*strings));

	if (!strings)
		return;
	strings[0] = (char *)"";
	for (uint32_t i = 1; i <= e->strings.n; i++)
		strings[i] = (char *)table_at(&e->strings, i, NULL);
	e->dictionary.string_table = strings;
	e->dictionary.n_string_table = (size_t)e->strings.n + 1;
}

static void encode_dictionary(struct encode *e)
{
	/* Each numbers what the next ones write; strings come last because everybody adds some. */
	void (*const parts[])(struct encode *) = {
	    encode_stacks,     encode_locations, encode_mappings, encode_functions,
	    encode_attributes, encode_links,	 encode_strings,
	};

	WIRE_PROFILES_INIT(profiles_dictionary)(&e->dictionary);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && !e->err; i++)
		parts[i](e);
	e->request.dictionary = &e->dictionary;
}

static int encode_pack(struct encode *e, uint8_t **bytes, size_t *len_bytes)
{
	size_t size = protobuf_c_message_get_packed_size(&e->request.base);

	if (size > OTLP_REQUEST_BYTES_MAX)
		return -E2BIG;
	*bytes = malloc(size);
	if (!*bytes)
		return -ENOMEM;
	*len_bytes = protobuf_c_message_pack(&e->request.base, *bytes);
	return 0;
}

int otlp_encode(const struct profile *profile, const struct otlp_encode_options *options,
		uint8_t **bytes, size_t *len_bytes)
{
	struct encode e = {.profile = profile,
			   .options = options,
			   .arena = {.limit_bytes = ENCODE_ARENA_MAX},
			   .budget = {.limit_bytes = ENCODE_ARENA_MAX}};

	if (!profile_samples_n(profile))
		return -ENODATA;
	WIRE_COLLECTOR_INIT(export_profiles_service_request)(&e.request);
	encode_map_init(&e, &e.functions, profile_functions_n(profile));
	encode_map_init(&e, &e.mappings, profile_mappings_n(profile));
	encode_map_init(&e, &e.locations, profile_locations_n(profile));
	encode_map_init(&e, &e.stacks, profile_stacks_n(profile));
	encode_collect(&e);
	if (!e.err)
		encode_resources(&e);
	if (!e.err)
		encode_dictionary(&e);
	if (!e.err)
		e.err = encode_pack(&e, bytes, len_bytes);
	table_clear(&e.strings, &e.budget);
	table_clear(&e.attributes, &e.budget);
	arena_free(&e.arena);
	return e.err;
}

size_t otlp_encode_response(int64_t rejected, const char *text, uint8_t *buf, size_t size)
{
	WIRE_COLLECTOR(ExportProfilesServiceResponse) response;
	WIRE_COLLECTOR(ExportProfilesPartialSuccess) partial;
	size_t len;

	WIRE_COLLECTOR_INIT(export_profiles_service_response)(&response);
	WIRE_COLLECTOR_INIT(export_profiles_partial_success)(&partial);
	partial.rejected_profiles = rejected;
	if (text)
		partial.error_message = (char *)text;
	if (rejected || text)
		response.partial_success = &partial;
	len = protobuf_c_message_get_packed_size(&response.base);
	return len <= size ? protobuf_c_message_pack(&response.base, buf) : 0;
}
