/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/profile.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/table.h"
#include "profile/utf8.h"

struct profile {
	struct table_budget budget;
	struct table strings, functions, mappings, locations, stacks, resources, samples;
	uint64_t *counts; /* counts[sample id - 1] */
	size_t counts_cap;
	uint64_t total;
	uint64_t start_unix_ns, end_unix_ns;
};

struct profile *profile_new(size_t limit_bytes)
{
	struct profile *profile = calloc(1, sizeof(*profile));

	if (profile)
		profile->budget.limit_bytes = limit_bytes;
	return profile;
}

void profile_clear(struct profile *profile)
{
	struct table *tables[] = {&profile->strings,   &profile->functions, &profile->mappings,
				  &profile->locations, &profile->stacks,    &profile->resources,
				  &profile->samples};

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		table_clear(tables[i], &profile->budget);
	profile->budget.used_bytes -= profile->counts_cap * sizeof(*profile->counts);
	assert(profile->budget.used_bytes == 0);
	free(profile->counts);
	profile->counts = NULL;
	profile->counts_cap = 0;
	profile->total = profile->start_unix_ns = profile->end_unix_ns = 0;
}

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	profile_clear(profile);
	free(profile);
}

size_t profile_bytes(const struct profile *profile)
{
	return profile->budget.used_bytes;
}

static uint32_t profile_invalid(void)
{
	errno = EINVAL;
	return 0;
}

uint32_t profile_string(struct profile *profile, const char *text, size_t len_bytes)
{
	char clean[PROFILE_STRING_MAX + 1];
	size_t len = utf8_clean(clean, sizeof(clean), text, len_bytes);

	/* The NUL is part of the entry, so that profile_text() needs no copy. */
	return len ? table_intern(&profile->strings, &profile->budget, clean, len + 1) : 0;
}

uint32_t profile_function(struct profile *profile, const struct profile_function *function)
{
	uint32_t strings = profile->strings.n;

	if (!function->name || function->name > strings || function->system_name > strings ||
	    function->file > strings)
		return profile_invalid();
	return table_intern(&profile->functions, &profile->budget, function, sizeof(*function));
}

uint32_t profile_mapping(struct profile *profile, const struct profile_mapping *mapping)
{
	uint32_t strings = profile->strings.n;

	if (mapping->file > strings || mapping->gnu_build_id > strings ||
	    mapping->go_build_id > strings || mapping->htlhash > strings)
		return profile_invalid();
	return table_intern(&profile->mappings, &profile->budget, mapping, sizeof(*mapping));
}

/* The line of a location that has none: "[basename+0xaddress]", or "[unknown]". */
static int profile_placeholder(struct profile *profile, const struct profile_location *location,
			       struct profile_line *line)
{
	char name[320] = "[unknown]";
	const char *file, *slash;
	uint32_t mapped =
	    location->mapping ? profile_mapping_at(profile, location->mapping)->file : 0;

	file = profile_text(profile, mapped);
	slash = strrchr(file, '/');
	if (slash && slash[1])
		file = slash + 1;
	/* "[kernel]" brings brackets of its own. */
	if (*file == '[' && strlen(file) > 2)
		snprintf(name, sizeof(name), "[%.*s+0x%" PRIx64 "]",
			 (int)(strcspn(file + 1, "]") % 256), file + 1, location->address);
	else if (*file)
		snprintf(name, sizeof(name), "[%.255s+0x%" PRIx64 "]", file, location->address);
	*line = (struct profile_line){.line = 0};
	line->function = profile_function(
	    profile,
	    &(struct profile_function){.name = profile_string(profile, name, strlen(name))});
	return line->function ? 0 : -ENOSPC;
}

uint32_t profile_location(struct profile *profile, const struct profile_location *location,
			  const struct profile_line *lines)
{
	_Alignas(8) char bytes[sizeof(*location) + PROFILE_LINES_MAX * sizeof(*lines)];
	struct profile_location *key = (struct profile_location *)bytes;
	struct profile_line placeholder;
	uint32_t n = location->lines_n;

	if (n > PROFILE_LINES_MAX || location->mapping > profile->mappings.n ||
	    location->frame_type > profile->strings.n)
		return profile_invalid();
	for (uint32_t i = 0; i < n; i++)
		if (!lines[i].function || lines[i].function > profile->functions.n)
			return profile_invalid();
	if (!n) {
		if (profile_placeholder(profile, location, &placeholder)) {
			errno = ENOSPC;
			return 0;
		}
		lines = &placeholder;
		n = 1;
	}
	*key = *location;
	key->lines_n = n;
	key->unused = 0;
	memcpy(key->lines, lines, n * sizeof(*lines));
	return table_intern(&profile->locations, &profile->budget, bytes,
			    sizeof(*key) + n * sizeof(*lines));
}

uint32_t profile_stack(struct profile *profile, const uint32_t *locations, size_t n)
{
	if (n > PROFILE_LOCATIONS_MAX)
		return profile_invalid();
	for (size_t i = 0; i < n; i++)
		if (!locations[i] || locations[i] > profile->locations.n)
			return profile_invalid();
	if (!n) {
		errno = 0;
		return 0;
	}
	return table_intern(&profile->stacks, &profile->budget, locations, n * sizeof(*locations));
}

/* Insert by key text, the first of equal keys stays: lists are short, and usually sorted. */
static size_t profile_insert(const struct profile *profile, struct profile_attribute *sorted,
			     size_t n, struct profile_attribute attribute)
{
	const char *key = profile_text(profile, attribute.key);
	size_t i = n;
	int order;

	while (i) {
		order = strcmp(profile_text(profile, sorted[i - 1].key), key);
		if (order == 0)
			return n;
		if (order < 0)
			break;
		i--;
	}
	memmove(sorted + i + 1, sorted + i, (n - i) * sizeof(*sorted));
	sorted[i] = attribute;
	return n + 1;
}

uint32_t profile_resource(struct profile *profile, const struct profile_attribute *attributes,
			  size_t n)
{
	struct profile_attribute sorted[PROFILE_ATTRIBUTES_MAX];
	size_t kept = 0;

	if (n > PROFILE_ATTRIBUTES_MAX)
		return profile_invalid();
	for (size_t i = 0; i < n; i++) {
		if (attributes[i].key > profile->strings.n ||
		    attributes[i].value > profile->strings.n)
			return profile_invalid();
		if (attributes[i].key)
			kept = profile_insert(profile, sorted, kept, attributes[i]);
	}
	return table_intern(&profile->resources, &profile->budget, sorted, kept * sizeof(*sorted));
}

int profile_add(struct profile *profile, const struct profile_sample *sample, uint64_t count)
{
	void *counts = profile->counts;
	uint32_t id;
	int err;

	if (!sample->resource || sample->resource > profile->resources.n ||
	    sample->stack > profile->stacks.n || sample->thread_name > profile->strings.n ||
	    sample->stop > profile->strings.n)
		return -EINVAL;
	id = table_find(&profile->samples, sample, sizeof(*sample));
	if (!id) {
		/* Room for the count first: a key without a count must not exist. */
		err = table_grow(&profile->budget, &counts, &profile->counts_cap,
				 (size_t)profile->samples.n + 1, sizeof(*profile->counts));
		profile->counts = counts;
		if (err)
			return err;
		id = table_intern(&profile->samples, &profile->budget, sample, sizeof(*sample));
		if (!id)
			return -errno;
		profile->counts[id - 1] = 0;
	}
	profile->counts[id - 1] += count;
	profile->total += count;
	return 0;
}

void profile_cover(struct profile *profile, uint64_t start_unix_ns, uint64_t end_unix_ns)
{
	if (!profile->start_unix_ns || start_unix_ns < profile->start_unix_ns)
		profile->start_unix_ns = start_unix_ns;
	if (end_unix_ns > profile->end_unix_ns)
		profile->end_unix_ns = end_unix_ns;
}

uint64_t profile_start_unix_ns(const struct profile *profile)
{
	return profile->start_unix_ns;
}

uint64_t profile_end_unix_ns(const struct profile *profile)
{
	return profile->end_unix_ns;
}

#define PROFILE_N(kind)                                                                            \
	uint32_t profile_##kind##_n(const struct profile *profile)                                 \
	{                                                                                          \
		return profile->kind.n;                                                            \
	}
PROFILE_N(strings)
PROFILE_N(functions)
PROFILE_N(mappings)
PROFILE_N(locations)
PROFILE_N(stacks)
PROFILE_N(resources)
PROFILE_N(samples)

uint64_t profile_samples_total(const struct profile *profile)
{
	return profile->total;
}

const char *profile_text(const struct profile *profile, uint32_t string)
{
	return string ? table_at(&profile->strings, string, NULL) : "";
}

const struct profile_function *profile_function_at(const struct profile *profile, uint32_t id)
{
	return table_at(&profile->functions, id, NULL);
}

const struct profile_mapping *profile_mapping_at(const struct profile *profile, uint32_t id)
{
	return table_at(&profile->mappings, id, NULL);
}

const struct profile_location *profile_location_at(const struct profile *profile, uint32_t id)
{
	return table_at(&profile->locations, id, NULL);
}

const uint32_t *profile_stack_at(const struct profile *profile, uint32_t id, size_t *n)
{
	const uint32_t *locations;

	*n = 0;
	if (!id)
		return NULL;
	locations = table_at(&profile->stacks, id, n);
	*n /= sizeof(*locations);
	return locations;
}

const struct profile_attribute *profile_resource_at(const struct profile *profile, uint32_t id,
						    size_t *n)
{
	const struct profile_attribute *attributes;

	*n = 0;
	if (!id)
		return NULL;
	attributes = table_at(&profile->resources, id, n);
	*n /= sizeof(*attributes);
	return attributes;
}

const char *profile_resource_text(const struct profile *profile, uint32_t id, const char *key)
{
	const struct profile_attribute *attributes;
	size_t n;

	attributes = profile_resource_at(profile, id, &n);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(profile_text(profile, attributes[i].key), key))
			return profile_text(profile, attributes[i].value);
	return NULL;
}

const struct profile_sample *profile_sample_at(const struct profile *profile, uint32_t id,
					       uint64_t *count)
{
	const struct profile_sample *sample = table_at(&profile->samples, id, NULL);

	if (count)
		*count = profile->counts[id - 1];
	return sample;
}

static void profile_frame_of(const struct profile *profile, const struct profile_location *location,
			     uint32_t i, struct profile_frame *frame)
{
	const struct profile_line *line = &location->lines[i];
	const struct profile_function *function = profile_function_at(profile, line->function);
	uint32_t module =
	    location->mapping ? profile_mapping_at(profile, location->mapping)->file : 0;

	frame->function = line->function;
	frame->line = line->line;
	frame->address = location->address;
	frame->name = profile_text(profile, function->name);
	frame->file = profile_text(profile, function->file);
	frame->module = profile_text(profile, module);
	frame->frame_type = profile_text(profile, location->frame_type);
	frame->inlined = i + 1 < location->lines_n;
	frame->kernel = !strcmp(frame->frame_type, "kernel");
}

size_t profile_frames(const struct profile *profile, uint32_t stack, struct profile_frame *frames,
		      size_t max)
{
	const uint32_t *locations;
	size_t n, used = 0;

	locations = profile_stack_at(profile, stack, &n);
	for (size_t i = 0; i < n; i++) {
		const struct profile_location *location =
		    profile_location_at(profile, locations[i]);

		for (uint32_t j = 0; j < location->lines_n; j++, used++)
			if (used < max)
				profile_frame_of(profile, location, j, &frames[used]);
	}
	return used;
}
