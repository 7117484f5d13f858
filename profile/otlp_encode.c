/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile/otlp.h, the writing half.
 *
 * Samples are sorted into groups of one (resource, period), which become one Profile each. What
 * they refer to goes into the dictionary of the request (profile/dictionary.h).
 */
#include "profile/otlp.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profile/dictionary.h"
#include "profile/wire.h"

#define ENCODE_BYTES_MAX	 ((size_t)1 << 30) /* of the tree of messages */
#define ENCODE_SAMPLE_ATTRIBUTES 4

struct encode_sample {
	struct profile_sample key;
	uint64_t count;
};

struct encode {
	const struct profile *profile;
	const struct otlp_encode_options *options;
	struct dictionary dictionary;
	struct encode_sample *samples;
	size_t samples_n;
	int err; /* beside that of the dictionary */
	WIRE_COLLECTOR(ExportProfilesServiceRequest) request;
};

static void *encode_alloc(struct encode *e, size_t n, size_t size)
{
	return dictionary_alloc(&e->dictionary, n, size);
}

static bool encode_failed(const struct encode *e)
{
	return e->err || e->dictionary.err;
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

	if (encode_failed(e))
		return NULL;
	WIRE_PROFILES_INIT(sample)(sample);
	if (from->key.thread_name)
		attributes[n++] =
		    dictionary_attribute(&e->dictionary, OTLP_THREAD_NAME,
					 profile_text(e->profile, from->key.thread_name), 0);
	if (from->key.stop)
		attributes[n++] = dictionary_attribute(&e->dictionary, OTLP_STACK_STOP,
						       profile_text(e->profile, from->key.stop), 0);
	if (from->key.pid)
		attributes[n++] =
		    dictionary_attribute(&e->dictionary, OTLP_PROCESS_PID, NULL, from->key.pid);
	if (from->key.tid)
		attributes[n++] =
		    dictionary_attribute(&e->dictionary, OTLP_THREAD_ID, NULL, from->key.tid);
	assert(n <= ENCODE_SAMPLE_ATTRIBUTES);
	*value = (int64_t)from->count;
	sample->stack_index = dictionary_stack(&e->dictionary, from->key.stack);
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
	value->type_strindex = dictionary_string(&e->dictionary, type);
	value->unit_strindex = dictionary_string(&e->dictionary, unit);
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
	for (size_t i = 0; i < n && !encode_failed(e); i++)
		profile->samples[i] = encode_sample(e, &samples[i]);
	profile->n_samples = n;
	return profile;
}

static WIRE_RESOURCE(Resource) * encode_resource(struct encode *e, uint32_t id)
{
	WIRE_RESOURCE(Resource) *resource = encode_alloc(e, 1, sizeof(*resource));
	const struct profile_attribute *attributes;
	WIRE_COMMON(KeyValue) * pairs;
	size_t n;

	attributes = profile_resource_at(e->profile, id, &n);
	pairs = encode_alloc(e, n, sizeof(*pairs));
	if (encode_failed(e))
		return NULL;
	WIRE_RESOURCE_INIT(resource)(resource);
	resource->attributes = encode_alloc(e, n, sizeof(*resource->attributes));
	for (size_t i = 0; i < n && !encode_failed(e); i++) {
		WIRE_COMMON_INIT(key_value)(&pairs[i]);
		pairs[i].key = (char *)profile_text(e->profile, attributes[i].key);
		pairs[i].value = dictionary_value(&e->dictionary,
						  profile_text(e->profile, attributes[i].value), 0);
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

	if (encode_failed(e))
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
	for (size_t i = 0; i < n && !encode_failed(e); i += run) {
		run = encode_run(samples + i, n - i, true);
		scope->profiles[scope->n_profiles++] =
		    encode_profile(e, samples + i, run, (*index)++);
	}
	rp->resource = encode_resource(e, samples->key.resource);
	rp->scope_profiles = encode_alloc(e, 1, sizeof(*rp->scope_profiles));
	if (encode_failed(e))
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
	for (size_t i = 0; i < e->samples_n && !encode_failed(e); i += run) {
		run = encode_run(e->samples + i, e->samples_n - i, false);
		e->request.resource_profiles[e->request.n_resource_profiles++] =
		    encode_resource_profiles(e, e->samples + i, run, &index);
	}
}

static int encode_pack(struct encode *e, uint8_t **bytes, size_t *len_bytes)
{
	size_t size;

	e->request.dictionary = &e->dictionary.message;
	size = protobuf_c_message_get_packed_size(&e->request.base);
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
	struct encode e = {.profile = profile, .options = options};

	if (!profile_samples_n(profile))
		return -ENODATA;
	WIRE_COLLECTOR_INIT(export_profiles_service_request)(&e.request);
	dictionary_init(&e.dictionary, profile, ENCODE_BYTES_MAX);
	encode_collect(&e);
	if (!encode_failed(&e))
		encode_resources(&e);
	if (!encode_failed(&e))
		dictionary_finish(&e.dictionary);
	if (!encode_failed(&e))
		e.err = encode_pack(&e, bytes, len_bytes);
	if (!e.err)
		e.err = e.dictionary.err;
	dictionary_fini(&e.dictionary);
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
