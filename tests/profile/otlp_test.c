/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile/otlp.h: what is encoded keeps the rules of the format and comes back the same; bytes of
 * an attacker end in an error or in a profile within its limit. SCONCE_OTLP_OUT names a file for
 * one request, so that an independent decoder can look at it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profile/folded.h"
#include "profile/otlp.h"
#include "profile/wire.h"
#include "tests/profile/build.h"

#define MUTATIONS 20000

static const struct otlp_encode_options with_ids = {.with_process_ids = true,
						    .instance = {1, 2, 3}};

static uint8_t *encode(const struct profile *profile, const struct otlp_encode_options *options,
		       size_t *len)
{
	uint8_t *bytes = NULL;

	assert_int_equal(otlp_encode(profile, options, &bytes, len), 0);
	return bytes;
}

static WIRE_COLLECTOR(ExportProfilesServiceRequest) * unpack(const uint8_t *bytes, size_t len)
{
	ProtobufCMessage *message = wire_unpack(
	    &WIRE_COLLECTOR_DESCRIPTOR(export_profiles_service_request), bytes, len, 1 << 24);

	assert_non_null(message);
	return (void *)message;
}

static void check_folded_equal(const struct profile *a, const struct profile *b)
{
	char *x, *y;
	size_t x_len, y_len;

	assert_int_equal(folded_write(a, &x, &x_len), 0);
	assert_int_equal(folded_write(b, &y, &y_len), 0);
	assert_string_equal(x, y);
	free(x);
	free(y);
}

static void test_round_trip(void **state)
{
	struct profile *p = build_profile(), *back = profile_new(1 << 20);
	struct otlp_sink sink = {.into = back};
	struct otlp_result result;
	size_t len;
	uint8_t *bytes = encode(p, &with_ids, &len);

	(void)state;
	assert_int_equal(otlp_decode(bytes, len, &sink, &result), 0);
	assert_int_equal(result.samples, BUILD_TOTAL);
	assert_int_equal(result.samples_named, BUILD_TOTAL - 2);
	assert_int_equal(result.samples_dropped, 0);
	assert_int_equal(result.profiles, 3);
	assert_int_equal(profile_samples_n(back), profile_samples_n(p));
	assert_int_equal(profile_samples_total(back), BUILD_TOTAL);
	assert_int_equal(profile_functions_n(back), profile_functions_n(p));
	assert_int_equal(profile_mappings_n(back), profile_mappings_n(p));
	assert_int_equal(profile_locations_n(back), profile_locations_n(p));
	assert_int_equal(profile_stacks_n(back), profile_stacks_n(p));
	assert_int_equal(profile_resources_n(back), profile_resources_n(p));
	assert_true(profile_start_unix_ns(back) == profile_start_unix_ns(p));
	assert_true(profile_end_unix_ns(back) == profile_end_unix_ns(p));
	check_folded_equal(p, back);
	/* Once more into the same profile: everything doubles, nothing else is added. */
	assert_int_equal(otlp_decode(bytes, len, &sink, &result), 0);
	assert_int_equal(profile_samples_n(back), profile_samples_n(p));
	assert_int_equal(profile_samples_total(back), 2 * BUILD_TOTAL);
	free(bytes);
	profile_free(back);
	profile_free(p);
}

/* An order-independent look at the rules that the decoder would forgive. */
static void check_attribute_owner(const WIRE_PROFILES(ProfilesDictionary) * d,
				  const int32_t *indices, size_t n, bool *used)
{
	for (size_t i = 0; i < n; i++) {
		assert_in_range(indices[i], 1, d->n_attribute_table - 1);
		used[indices[i]] = true;
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(d->attribute_table[indices[i]]->key_strindex,
					     d->attribute_table[indices[j]]->key_strindex);
	}
}

static void check_no_duplicate_strings(const WIRE_PROFILES(ProfilesDictionary) * d)
{
	for (size_t i = 0; i < d->n_string_table; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(d->string_table[i], d->string_table[j]);
}

static void check_sample(const WIRE_PROFILES(ProfilesDictionary) * d,
			 const WIRE_PROFILES(Sample) * s, bool *stacks, bool *attributes)
{
	assert_in_range(s->stack_index, 0, d->n_stack_table - 1);
	stacks[s->stack_index] = true;
	assert_int_equal(s->n_values, 1);
	assert_true(s->values[0] > 0);
	assert_int_equal(s->n_timestamps_unix_nano, 0);
	assert_int_equal(s->link_index, 0);
	check_attribute_owner(d, s->attribute_indices, s->n_attribute_indices, attributes);
}

static void check_profile(const WIRE_PROFILES(ProfilesDictionary) * d,
			  const WIRE_PROFILES(Profile) * p, bool *stacks, bool *attributes)
{
	assert_string_equal(d->string_table[p->sample_type->type_strindex], "samples");
	assert_string_equal(d->string_table[p->sample_type->unit_strindex], "count");
	assert_string_equal(d->string_table[p->period_type->type_strindex], "cpu");
	assert_string_equal(d->string_table[p->period_type->unit_strindex], "nanoseconds");
	assert_true(p->period > 0 && p->time_unix_nano && p->duration_nano);
	assert_int_equal(p->profile_id.len, 16);
	assert_true(p->n_samples > 0);
	for (size_t i = 0; i < p->n_samples; i++)
		check_sample(d, p->samples[i], stacks, attributes);
}

static void test_invariants(void **state)
{
	struct profile *p = build_profile();
	WIRE_COLLECTOR(ExportProfilesServiceRequest) * r;
	const WIRE_PROFILES(ProfilesDictionary) * d;
	bool stacks[64] = {true}, attributes[64] = {true}, locations[64] = {true};
	const char *out = getenv("SCONCE_OTLP_OUT");
	size_t len;
	uint8_t *bytes;
	FILE *f;

	(void)state;
	/* Something that no sample refers to must not be written. */
	build_function(p, "nobody_calls_me", "x.c");
	bytes = encode(p, &with_ids, &len);
	r = unpack(bytes, len);
	d = r->dictionary;
	assert_true(d->n_mapping_table > 1 && d->n_location_table > 1 && d->n_function_table > 1 &&
		    d->n_stack_table > 1 && d->n_attribute_table > 1);
	assert_string_equal(d->string_table[0], "");
	assert_int_equal(d->n_link_table, 1);
	assert_int_equal(d->link_table[0]->trace_id.len + d->link_table[0]->span_id.len, 0);
	assert_null(d->attribute_table[0]->value);
	assert_int_equal(d->stack_table[0]->n_location_indices, 0);
	check_no_duplicate_strings(d);
	for (size_t i = 0; i < d->n_string_table; i++)
		assert_string_not_equal(d->string_table[i], "nobody_calls_me");
	assert_int_equal(r->n_resource_profiles, 2);
	for (size_t i = 0; i < 2; i++) {
		const WIRE_PROFILES(ScopeProfiles) *scope =
		    r->resource_profiles[i]->scope_profiles[0];

		for (size_t j = 0; j < r->resource_profiles[i]->resource->n_attributes; j++) {
			assert_int_equal(
			    r->resource_profiles[i]->resource->attributes[j]->key_strindex, 0);
			assert_int_equal(
			    r->resource_profiles[i]->resource->attributes[j]->value->value_case,
			    WIRE_VALUE(STRING_VALUE));
		}
		for (size_t j = 0; j < scope->n_profiles; j++)
			check_profile(d, scope->profiles[j], stacks, attributes);
	}
	/* No orphans. */
	for (size_t i = 0; i < d->n_stack_table; i++) {
		assert_true(stacks[i]);
		for (size_t j = 0; j < d->stack_table[i]->n_location_indices; j++)
			locations[d->stack_table[i]->location_indices[j]] = true;
	}
	for (size_t i = 0; i < d->n_location_table; i++) {
		assert_true(locations[i]);
		check_attribute_owner(d, d->location_table[i]->attribute_indices,
				      d->location_table[i]->n_attribute_indices, attributes);
	}
	for (size_t i = 0; i < d->n_mapping_table; i++)
		check_attribute_owner(d, d->mapping_table[i]->attribute_indices,
				      d->mapping_table[i]->n_attribute_indices, attributes);
	for (size_t i = 0; i < d->n_attribute_table; i++)
		assert_true(attributes[i]);
	if (out && (f = fopen(out, "wb"))) {
		assert_int_equal(fwrite(bytes, 1, len, f), len);
		fclose(f);
	}
	wire_free(&r->base);
	free(bytes);
	profile_free(p);
}

/* Without process ids, what is then equal is merged. */
static void test_without_process_ids(void **state)
{
	struct otlp_encode_options options = with_ids;
	struct profile *p = build_profile(), *back = profile_new(1 << 20);
	struct otlp_sink sink = {.into = back};
	struct otlp_result result;
	uint64_t count;
	size_t len;
	uint8_t *bytes;

	(void)state;
	options.with_process_ids = false;
	bytes = encode(p, &options, &len);
	assert_int_equal(otlp_decode(bytes, len, &sink, &result), 0);
	assert_int_equal(result.samples, BUILD_TOTAL);
	assert_int_equal(profile_samples_n(back), 4);
	assert_int_equal(profile_sample_at(back, 1, &count)->pid, 0);
	assert_int_equal(count, 7);
	free(bytes);
	profile_free(back);
	profile_free(p);
}

static struct {
	uint8_t ids[16][OTLP_PROFILE_ID_BYTES];
	size_t n;
} known;

static bool seen(void *arg, const uint8_t id[OTLP_PROFILE_ID_BYTES])
{
	(void)arg;
	for (size_t i = 0; i < known.n; i++)
		if (!memcmp(known.ids[i], id, OTLP_PROFILE_ID_BYTES))
			return true;
	assert_true(known.n < 16);
	memcpy(known.ids[known.n++], id, OTLP_PROFILE_ID_BYTES);
	return false;
}

static void test_profile_ids(void **state)
{
	struct otlp_encode_options options = with_ids;
	struct profile *p = build_profile(), *back = profile_new(1 << 20);
	struct otlp_sink sink = {.into = back, .seen = seen};
	struct otlp_result result;
	size_t len, again_len;
	uint8_t *bytes = encode(p, &options, &len), *again = encode(p, &options, &again_len);

	(void)state;
	known.n = 0;
	assert_int_equal(len, again_len);
	assert_memory_equal(bytes, again, len);
	assert_int_equal(otlp_decode(bytes, len, &sink, &result), 0);
	assert_int_equal(result.samples, BUILD_TOTAL);
	assert_int_equal(otlp_decode(again, len, &sink, &result), 0);
	assert_int_equal(result.samples, 0);
	assert_int_equal(result.samples_duplicate, BUILD_TOTAL);
	assert_int_equal(result.profiles_duplicate, 3);
	assert_int_equal(profile_samples_total(back), BUILD_TOTAL);
	free(again);
	options.batch++;
	again = encode(p, &options, &again_len);
	assert_int_equal(otlp_decode(again, again_len, &sink, &result), 0);
	assert_int_equal(result.samples, BUILD_TOTAL);
	free(bytes);
	free(again);
	profile_free(back);
	profile_free(p);
}

static struct {
	struct profile *web;
	uint64_t web_samples, other_samples;
} routed;

static struct profile *route(void *arg, const struct otlp_attribute *attributes, size_t n,
			     uint64_t samples)
{
	(void)arg;
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(attributes[i].key, "service.name") &&
		    !strcmp(attributes[i].value, "web")) {
			routed.web_samples += samples;
			return routed.web;
		}
	}
	routed.other_samples += samples;
	return NULL;
}

static void test_targets(void **state)
{
	struct profile *p = build_profile();
	struct otlp_sink sink = {.target = route};
	struct otlp_result result;
	size_t len;
	uint8_t *bytes = encode(p, &with_ids, &len);

	(void)state;
	routed.web = profile_new(1 << 20);
	assert_int_equal(otlp_decode(bytes, len, &sink, &result), 0);
	assert_int_equal(result.samples, BUILD_TOTAL);
	assert_int_equal(routed.web_samples, 7);
	assert_int_equal(routed.other_samples, 10);
	assert_int_equal(profile_samples_total(routed.web), 7);
	profile_free(routed.web);
	free(bytes);
	profile_free(p);
}

/* A target that is too small: everything is either in it or counted as dropped. */
static void test_small_target(void **state)
{
	struct profile *p = build_profile();
	struct otlp_result result;
	size_t len;
	uint8_t *bytes = encode(p, &with_ids, &len);

	(void)state;
	for (size_t limit = 0; limit < 12000; limit += 97) {
		struct profile *back = profile_new(limit);
		struct otlp_sink sink = {.into = back};

		assert_int_equal(otlp_decode(bytes, len, &sink, &result), 0);
		assert_int_equal(result.samples, BUILD_TOTAL);
		assert_int_equal(profile_samples_total(back) + result.samples_dropped, BUILD_TOTAL);
		assert_true(profile_bytes(back) <= limit);
		/* What is in it has its names. */
		for (uint32_t i = 1; i <= profile_samples_n(back); i++) {
			struct profile_frame frames[8];
			uint32_t stack = profile_sample_at(back, i, NULL)->stack;
			size_t n = profile_frames(back, stack, frames, 8);

			if (n > 1)
				assert_string_equal(frames[n - 1].name, "main");
		}
		profile_free(back);
	}
	free(bytes);
	profile_free(p);
}

static uint32_t random_state = 12345;

static uint32_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	return random_state ^= random_state << 5;
}

/* Bytes changed, cut out, doubled: never a crash, never more than was there can hold. */
static void test_mutations(void **state)
{
	struct profile *p = build_profile();
	struct otlp_result result;
	size_t len, accepted = 0;
	uint8_t *bytes = encode(p, &with_ids, &len), *copy = malloc(2 * len);

	(void)state;
	for (int i = 0; i < MUTATIONS; i++) {
		struct profile *back = profile_new(1 << 16);
		struct otlp_sink sink = {.into = back};
		size_t copy_len = len, changes = 1 + random_next() % 4;

		memcpy(copy, bytes, len);
		while (changes--)
			copy[random_next() % len] = (uint8_t)random_next();
		if (random_next() % 4 == 0)
			copy_len = random_next() % len;
		if (random_next() % 8 == 0) {
			memcpy(copy + copy_len, bytes, len);
			copy_len += len;
		}
		if (otlp_decode(copy, copy_len, &sink, &result) == 0)
			accepted++;
		else
			assert_int_equal(profile_samples_total(back), 0);
		assert_true(profile_bytes(back) <= 1 << 16);
		profile_free(back);
	}
	/* Most changes hit a text or a number, so that both ways are walked. */
	assert_in_range(accepted, MUTATIONS / 20, MUTATIONS - MUTATIONS / 20);
	free(copy);
	free(bytes);
	profile_free(p);
}

/* AnyValue in ArrayValue in AnyValue ... `depth` times, as a resource attribute. */
static size_t nested(uint8_t *buf, size_t size, unsigned depth)
{
	size_t at = size, len = 0;

	while (depth--) {
		const uint8_t tags[] = {0x0a, 0x2a}; /* ArrayValue.values, AnyValue.array_value */

		for (int k = 0; k < 2; k++) {
			uint8_t head[6] = {tags[k]};
			size_t n = 1, rest = len;

			do {
				head[n++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
				rest >>= 7;
			} while (rest);
			at -= n;
			memcpy(buf + at, head, n);
			len += n;
		}
	}
	memmove(buf, buf + at, len);
	return len;
}

static size_t wrap(uint8_t *buf, size_t len, uint8_t tag)
{
	uint8_t head[6] = {tag};
	size_t n = 1, rest = len;

	do {
		head[n++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
		rest >>= 7;
	} while (rest);
	memmove(buf + n, buf, len);
	memcpy(buf, head, n);
	return len + n;
}

static void test_hostile(void **state)
{
	struct profile *back = profile_new(1 << 16);
	struct otlp_sink sink = {.into = back};
	struct otlp_result result;
	size_t size = 1 << 20, len;
	uint8_t *buf = malloc(size);

	(void)state;
	for (unsigned depth = 1; depth < 100000; depth *= 10) {
		len = nested(buf, size - 64, depth);
		for (const char *tag = "\x12\x0a\x0a\x0a"; *tag; tag++)
			len = wrap(buf, len, (uint8_t)*tag);
		memcpy(buf + len, "\x12\x00", 2);
		assert_int_equal(otlp_decode(buf, len + 2, &sink, &result),
				 depth < 5 ? 0 : -EPROTO);
	}
	/* Very many empty messages: memory is refused before it is taken. */
	for (len = 0; len + 2 < size / 2; len += 2)
		memcpy(buf + len, "\x12\x00", 2);
	len = wrap(buf, len, 0x12);
	len = wrap(buf, len, 0x0a);
	sink.memory_bytes = 4 << 20;
	assert_int_equal(otlp_decode(buf, len, &sink, &result), -ENOMEM);
	/* A stack index without a table. */
	assert_int_equal(
	    otlp_decode("\x0a\x08\x12\x06\x12\x04\x12\x02\x08\x05\x12\x00", 12, &sink, &result),
	    -EPROTO);
	/* Index 0 where the tables are empty means none. */
	assert_int_equal(
	    otlp_decode("\x0a\x08\x12\x06\x12\x04\x12\x02\x08\x00\x12\x00", 12, &sink, &result), 0);
	assert_int_equal(result.profiles_ignored, 1);
	assert_int_equal(otlp_decode("", 0, &sink, &result), 0);
	assert_int_equal(profile_samples_total(back), 0);
	free(buf);
	profile_free(back);
}

static void test_responses(void **state)
{
	uint8_t buf[128];
	char text[16];
	int64_t rejected;
	size_t len;

	(void)state;
	assert_int_equal(otlp_decode_response("\x0a\x00", 2, &rejected, text, sizeof(text)), 0);
	assert_int_equal(rejected, 0);
	assert_int_equal(otlp_decode_response("", 0, &rejected, text, sizeof(text)), 0);
	len = otlp_encode_response(3, "too old for this place", buf, sizeof(buf));
	assert_int_equal(otlp_decode_response(buf, len, &rejected, text, sizeof(text)), 0);
	assert_int_equal(rejected, 3);
	assert_string_equal(text, "too old for thi");
	assert_int_equal(otlp_decode_response("garbage", 7, &rejected, text, sizeof(text)),
			 -EPROTO);
	assert_int_equal(otlp_encode_response(0, NULL, buf, sizeof(buf)), 0);
}

static void test_empty(void **state)
{
	struct profile *p = profile_new(1 << 16);
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_int_equal(otlp_encode(p, &with_ids, &bytes, &len), -ENODATA);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_round_trip),
	    cmocka_unit_test(test_invariants),
	    cmocka_unit_test(test_without_process_ids),
	    cmocka_unit_test(test_profile_ids),
	    cmocka_unit_test(test_targets),
	    cmocka_unit_test(test_small_target),
	    cmocka_unit_test(test_mutations),
	    cmocka_unit_test(test_hostile),
	    cmocka_unit_test(test_responses),
	    cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
