/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/viewer/samples.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static uint32_t samples_string(struct profile *profile, const char *text)
{
	return profile_string(profile, text, strlen(text));
}

static uint32_t samples_location(struct profile *profile, char *names)
{
	struct profile_line lines[PROFILE_LINES_MAX];
	struct profile_mapping mapping = {.file = samples_string(profile, "/usr/bin/example"),
					  .limit = 4096};
	struct profile_location location = {.frame_type = samples_string(profile, "native")};
	char *rest;

	for (char *name = strtok_r(names, "+", &rest); name; name = strtok_r(NULL, "+", &rest)) {
		struct profile_function function = {.name = samples_string(profile, name)};

		lines[location.lines_n++] =
		    (struct profile_line){profile_function(profile, &function), 0};
	}
	location.mapping = profile_mapping(profile, &mapping);
	return profile_location(profile, &location, lines);
}

static uint32_t samples_stack(struct profile *profile, const char *stack)
{
	uint32_t locations[64];
	char text[1024], *rest;
	size_t n = 0;

	snprintf(text, sizeof(text), "%s", stack);
	for (char *f = strtok_r(text, ";", &rest); f; f = strtok_r(NULL, ";", &rest))
		locations[n++] = samples_location(profile, f);
	return profile_stack(profile, locations, n);
}

static uint32_t samples_resource(struct profile *profile, const char *resource)
{
	struct profile_attribute attributes[16];
	char text[1024], *rest;
	size_t n = 0;

	snprintf(text, sizeof(text), "%s", resource);
	for (char *a = strtok_r(text, ",", &rest); a; a = strtok_r(NULL, ",", &rest)) {
		char *value = strchr(a, '=');

		*value++ = '\0';
		attributes[n].key = samples_string(profile, a);
		attributes[n++].value = samples_string(profile, value);
	}
	return profile_resource(profile, attributes, n);
}

void samples_add(struct profile *profile, const char *resource, const char *stack, const char *stop,
		 uint64_t count)
{
	struct profile_sample sample = {.period_ns = SAMPLES_PERIOD_NS};
	int err;

	sample.resource = samples_resource(profile, resource);
	sample.stack = samples_stack(profile, stack);
	sample.stop = samples_string(profile, stop);
	err = profile_add(profile, &sample, count);
	assert(!err);
	profile_cover(profile, 1000000000ull * 1700000000, 1000000000ull * 1700000005);
}
