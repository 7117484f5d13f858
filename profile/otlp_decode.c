/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile/otlp.h, the reading half. In three steps: unpack within a budget (profile/wire.h), check
 * every index of the message (profile/otlp_check.h), then translate. After the second step nothing
 * in the third can point outside of a table.
 */
#include "profile/otlp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/otlp_check.h"
#include "profile/translate.h"
#include "profile/wire.h"

#define DECODE_COUNT_MAX (1ull << 40) /* of one sample: no request is long enough to overflow */

struct decode {
	const struct otlp_sink *sink;
	struct otlp_result *result;
	WIRE_COLLECTOR(ExportProfilesServiceRequest) * request;
	struct arena arena;
	struct translate translate;
	uint32_t resource; /* in the target */
};

static uint32_t decode_sample_number(struct decode *d, const WIRE_PROFILES(Sample) * s,
				     const char *key)
{
	const WIRE_PROFILES(KeyValueAndUnit) *a =
	    translate_attribute(&d->translate, s->attribute_indices, s->n_attribute_indices, key);

	if (!a || !a->value || a->value->value_case != WIRE_VALUE(INT_VALUE) ||
	    a->value->int_value < 0 || a->value->int_value > UINT32_MAX)
		return 0;
	return (uint32_t)a->value->int_value;
}

static uint32_t decode_sample_string(struct decode *d, const WIRE_PROFILES(Sample) * s,
				     const char *key)
{
	const WIRE_PROFILES(KeyValueAndUnit) *a =
	    translate_attribute(&d->translate, s->attribute_indices, s->n_attribute_indices, key);

	return a ? translate_attribute_string(&d->translate, a) : 0;
}

/* How a profile counts; the divisor turns CPU time into samples. */
enum decode_kind { DECODE_IGNORED, DECODE_COUNT, DECODE_TIME };

static enum decode_kind decode_kind(const struct decode *d, const WIRE_PROFILES(Profile) * p)
{
	const char *type, *unit;

	if (!p->sample_type)
		return DECODE_IGNORED;
	type = translate_text(&d->translate, p->sample_type->type_strindex);
	unit = translate_text(&d->translate, p->sample_type->unit_strindex);
	if (!strcmp(type, "samples") && !strcmp(unit, "count"))
		return DECODE_COUNT;
	return !strcmp(type, "cpu") && !strcmp(unit, "nanoseconds") ? DECODE_TIME : DECODE_IGNORED;
}

static uint64_t decode_count(const WIRE_PROFILES(Profile) * p, const WIRE_PROFILES(Sample) * s,
			     enum decode_kind kind)
{
	uint64_t sum = 0, period = p->period > 0 ? (uint64_t)p->period : 1;

	if (!s->n_values)
		return s->n_timestamps_unix_nano;
	for (size_t i = 0; i < s->n_values; i++)
		if (s->values[i] > 0 && __builtin_add_overflow(sum, (uint64_t)s->values[i], &sum))
			sum = UINT64_MAX;
	/* CPU time as samples, rounded, but never to nothing. */
	if (kind == DECODE_TIME && sum)
		sum = sum / period + (sum % period >= period / 2 || sum < period);
	return sum < DECODE_COUNT_MAX ? sum : DECODE_COUNT_MAX;
}

static bool decode_named(const struct decode *d, int32_t stack)
{
	const WIRE_PROFILES(ProfilesDictionary) *dictionary = d->translate.dictionary;
	const WIRE_PROFILES(Stack) * from;
	const WIRE_PROFILES(Location) * leaf;
	const char *name;

	from = stack ? dictionary->stack_table[stack] : NULL;
	if (!from || !from->n_location_indices || !from->location_indices[0])
		return false;
	leaf = dictionary->location_table[from->location_indices[0]];
	if (!leaf->n_lines || !leaf->lines[0]->function_index)
		return false;
	name = translate_text(
	    &d->translate,
	    dictionary->function_table[leaf->lines[0]->function_index]->name_strindex);
	return *name && *name != '[';
}

static void decode_sample(struct decode *d, const WIRE_PROFILES(Profile) * p,
			  const WIRE_PROFILES(Sample) * s, uint64_t count)
{
	struct profile_sample sample = {.resource = d->resource};

	if (!count)
		return;
	d->result->samples += count;
	if (decode_named(d, s->stack_index))
		d->result->samples_named += count;
	if (!d->translate.target)
		return;
	sample.period_ns = p->period > 0 ? (uint64_t)p->period : 1;
	sample.thread_name = decode_sample_string(d, s, OTLP_THREAD_NAME);
	sample.stop = decode_sample_string(d, s, OTLP_STACK_STOP);
	sample.pid = decode_sample_number(d, s, OTLP_PROCESS_PID);
	sample.tid = decode_sample_number(d, s, OTLP_THREAD_ID);
	if (!translate_stack(&d->translate, s->stack_index, &sample.stack) || !d->resource ||
	    profile_add(d->translate.target, &sample, count))
		d->result->samples_dropped += count;
}

static size_t decode_attributes(const struct decode *d, const WIRE_PROFILES(ResourceProfiles) * rp,
				struct otlp_attribute attributes[PROFILE_ATTRIBUTES_MAX],
				char numbers[PROFILE_ATTRIBUTES_MAX][TRANSLATE_NUMBER_BYTES])
{
	size_t n = 0;

	for (size_t i = 0; rp->resource && i < rp->resource->n_attributes; i++) {
		const WIRE_COMMON(KeyValue) *kv = rp->resource->attributes[i];
		const char *key =
		    *kv->key ? kv->key : translate_text(&d->translate, kv->key_strindex);

		if (!*key || n == PROFILE_ATTRIBUTES_MAX)
			continue;
		attributes[n].key = key;
		attributes[n].value = translate_value_text(&d->translate, kv->value, numbers[n]);
		n++;
	}
	return n;
}

static void decode_target(struct decode *d, struct profile *target,
			  const struct otlp_attribute *attributes, size_t n)
{
	struct profile_attribute ids[PROFILE_ATTRIBUTES_MAX];

	translate_target(&d->translate, target);
	d->resource = 0;
	if (!target)
		return;
	for (size_t i = 0; i < n; i++) {
		ids[i].key = translate_add(&d->translate, attributes[i].key);
		ids[i].value = translate_add(&d->translate, attributes[i].value);
	}
	if (!d->translate.full)
		d->resource = profile_resource(target, ids, n);
}

static uint64_t decode_total(const WIRE_PROFILES(Profile) * p, enum decode_kind kind)
{
	uint64_t total = 0;

	for (size_t i = 0; i < p->n_samples; i++)
		total += decode_count(p, p->samples[i], kind);
	return total;
}

/* The same samples may come twice, as samples/count and as cpu/nanoseconds: then the counts are
 * read. */
static bool decode_scope_counts(const struct decode *d, const WIRE_PROFILES(ScopeProfiles) * scope)
{
	for (size_t i = 0; i < scope->n_profiles; i++)
		if (decode_kind(d, scope->profiles[i]) == DECODE_COUNT)
			return true;
	return false;
}

static uint64_t decode_cpu_ns(const WIRE_PROFILES(Profile) * p, uint64_t samples)
{
	uint64_t cpu_ns;

	if (__builtin_mul_overflow(samples, p->period > 0 ? (uint64_t)p->period : 1, &cpu_ns))
		return UINT64_MAX;
	return cpu_ns;
}

/* Decide which profiles of a scope are read, the others become IGNORED. The samples that will be;
 * their CPU time is added to *cpu_ns.
 */
static uint64_t decode_select(struct decode *d, const WIRE_PROFILES(ScopeProfiles) * scope,
			      enum decode_kind *kinds, uint64_t *cpu_ns)
{
	bool counts = decode_scope_counts(d, scope);
	uint64_t total = 0, samples;

	for (size_t i = 0; i < scope->n_profiles; i++) {
		const WIRE_PROFILES(Profile) *p = scope->profiles[i];

		kinds[i] = decode_kind(d, p);
		if (kinds[i] == DECODE_TIME && counts)
			kinds[i] = DECODE_IGNORED;
		if (kinds[i] == DECODE_IGNORED) {
			d->result->profiles_ignored++;
			continue;
		}
		samples = decode_total(p, kinds[i]);
		if (p->profile_id.len && d->sink->seen &&
		    d->sink->seen(d->sink->arg, p->profile_id.data)) {
			kinds[i] = DECODE_IGNORED;
			d->result->profiles_duplicate++;
			d->result->samples_duplicate += samples;
			continue;
		}
		d->result->profiles++;
		total += samples;
		*cpu_ns += decode_cpu_ns(p, samples);
	}
	return total;
}

static void decode_scope(struct decode *d, const WIRE_PROFILES(ScopeProfiles) * scope,
			 const enum decode_kind *kinds)
{
	for (size_t i = 0; i < scope->n_profiles; i++) {
		const WIRE_PROFILES(Profile) *p = scope->profiles[i];

		if (kinds[i] == DECODE_IGNORED)
			continue;
		if (d->translate.target && p->n_samples && p->time_unix_nano)
			profile_cover(d->translate.target, p->time_unix_nano,
				      p->duration_nano < UINT64_MAX - p->time_unix_nano
					  ? p->time_unix_nano + p->duration_nano
					  : p->time_unix_nano);
		for (size_t j = 0; j < p->n_samples; j++)
			decode_sample(d, p, p->samples[j],
				      decode_count(p, p->samples[j], kinds[i]));
	}
}

static int decode_resource(struct decode *d, const WIRE_PROFILES(ResourceProfiles) * rp)
{
	struct otlp_attribute attributes[PROFILE_ATTRIBUTES_MAX];
	char numbers[PROFILE_ATTRIBUTES_MAX][TRANSLATE_NUMBER_BYTES];
	size_t n = decode_attributes(d, rp, attributes, numbers), profiles = 0, first = 0;
	enum decode_kind *kinds;
	uint64_t samples = 0, cpu_ns = 0;

	for (size_t i = 0; i < rp->n_scope_profiles; i++)
		profiles += rp->scope_profiles[i]->n_profiles;
	kinds = calloc(profiles ? profiles : 1, sizeof(*kinds));
	if (!kinds)
		return -ENOMEM;
	for (size_t i = 0; i < rp->n_scope_profiles; i++) {
		samples += decode_select(d, rp->scope_profiles[i], kinds + first, &cpu_ns);
		first += rp->scope_profiles[i]->n_profiles;
	}
	if (samples && d->sink->tally)
		d->sink->tally(d->sink->arg, attributes, n, samples, cpu_ns);
	if (samples) {
		decode_target(d,
			      d->sink->target
				  ? d->sink->target(d->sink->arg, attributes, n, samples)
				  : d->sink->into,
			      attributes, n);
		first = 0;
		for (size_t i = 0; i < rp->n_scope_profiles; i++) {
			decode_scope(d, rp->scope_profiles[i], kinds + first);
			first += rp->scope_profiles[i]->n_profiles;
		}
	}
	free(kinds);
	return 0;
}

static int decode_all(struct decode *d)
{
	int err = 0;

	if (!d->request->n_resource_profiles)
		return 0;
	if (!translate_init(&d->translate, &d->arena, d->request->dictionary))
		return -ENOMEM;
	for (size_t i = 0; i < d->request->n_resource_profiles && !err; i++)
		err = decode_resource(d, d->request->resource_profiles[i]);
	return err;
}

int otlp_decode(const void *bytes, size_t len_bytes, const struct otlp_sink *sink,
		struct otlp_result *result)
{
	size_t memory = sink->memory_bytes ? sink->memory_bytes : 32 * len_bytes + (1u << 20);
	struct decode d = {.sink = sink, .result = result, .arena = {.limit_bytes = memory}};
	ProtobufCMessage *message;
	int err = -EPROTO;

	memset(result, 0, sizeof(*result));
	if (len_bytes > OTLP_REQUEST_BYTES_MAX)
		return -E2BIG;
	message = wire_unpack(&WIRE_COLLECTOR_DESCRIPTOR(export_profiles_service_request), bytes,
			      len_bytes, memory);
	if (!message)
		return -errno;
	d.request = (WIRE_COLLECTOR(ExportProfilesServiceRequest) *)message;
	if (otlp_check(d.request))
		err = decode_all(&d);
	wire_free(message);
	arena_free(&d.arena);
	return err;
}

int otlp_decode_response(const void *bytes, size_t len_bytes, int64_t *rejected, char *text,
			 size_t text_size)
{
	ProtobufCMessage *message =
	    wire_unpack(&WIRE_COLLECTOR_DESCRIPTOR(export_profiles_service_response), bytes,
			len_bytes, len_bytes + 4096);
	const WIRE_COLLECTOR(ExportProfilesServiceResponse) * response;

	*rejected = 0;
	*text = '\0';
	if (!message)
		return -EPROTO;
	response = (const WIRE_COLLECTOR(ExportProfilesServiceResponse) *)message;
	if (response->partial_success) {
		*rejected = response->partial_success->rejected_profiles;
		snprintf(text, text_size, "%s", response->partial_success->error_message);
	}
	wire_free(message);
	return 0;
}
