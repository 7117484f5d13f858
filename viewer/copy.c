/* SPDX-License-Identifier: Apache-2.0 */
#include "viewer/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int copy_init(struct copy *copy, const struct profile *from)
{
	*copy = (struct copy){.from = from};
	copy->locations = calloc(profile_locations_n(from) + 1, sizeof(uint32_t));
	copy->stacks = calloc(profile_stacks_n(from) + 1, sizeof(uint32_t));
	copy->resources = calloc(profile_resources_n(from) + 1, sizeof(uint32_t));
	if (copy->locations && copy->stacks && copy->resources)
		return 0;
	copy_fini(copy);
	return -ENOMEM;
}

void copy_fini(struct copy *copy)
{
	free(copy->locations);
	free(copy->stacks);
	free(copy->resources);
	*copy = (struct copy){0};
}

void copy_to(struct copy *copy, struct profile *to)
{
	if (copy->to == to)
		return;
	copy->to = to;
	memset(copy->locations, 0, (profile_locations_n(copy->from) + 1) * sizeof(uint32_t));
	memset(copy->stacks, 0, (profile_stacks_n(copy->from) + 1) * sizeof(uint32_t));
	memset(copy->resources, 0, (profile_resources_n(copy->from) + 1) * sizeof(uint32_t));
}

/* False with errno when it found no room; an empty string is 0 and fine. */
static bool copy_string(struct copy *copy, uint32_t from, uint32_t *to)
{
	const char *text = profile_text(copy->from, from);

	*to = profile_string(copy->to, text, strlen(text));
	return *to || !text[0];
}

static uint32_t copy_function(struct copy *copy, uint32_t id)
{
	const struct profile_function *from = profile_function_at(copy->from, id);
	struct profile_function to = {.start_line = from->start_line};

	if (!copy_string(copy, from->name, &to.name) ||
	    !copy_string(copy, from->system_name, &to.system_name) ||
	    !copy_string(copy, from->file, &to.file))
		return 0;
	return profile_function(copy->to, &to);
}

/* 0 is a mapping that is not known: *ok tells the failure apart. */
static uint32_t copy_mapping(struct copy *copy, uint32_t id, bool *ok)
{
	const struct profile_mapping *from;
	struct profile_mapping to;
	uint32_t mapping;

	*ok = true;
	if (!id)
		return 0;
	from = profile_mapping_at(copy->from, id);
	to = *from;
	*ok = copy_string(copy, from->file, &to.file) &&
	      copy_string(copy, from->gnu_build_id, &to.gnu_build_id) &&
	      copy_string(copy, from->go_build_id, &to.go_build_id) &&
	      copy_string(copy, from->htlhash, &to.htlhash);
	if (!*ok)
		return 0;
	mapping = profile_mapping(copy->to, &to);
	*ok = mapping != 0;
	return mapping;
}

static uint32_t copy_location(struct copy *copy, uint32_t id)
{
	const struct profile_location *from = profile_location_at(copy->from, id);
	struct profile_location to = {.address = from->address, .lines_n = from->lines_n};
	struct profile_line lines[PROFILE_LINES_MAX];
	bool ok;

	to.mapping = copy_mapping(copy, from->mapping, &ok);
	if (!ok || !copy_string(copy, from->frame_type, &to.frame_type))
		return 0;
	for (uint32_t i = 0; i < from->lines_n; i++) {
		lines[i].line = from->lines[i].line;
		lines[i].function = copy_function(copy, from->lines[i].function);
		if (!lines[i].function)
			return 0;
	}
	return profile_location(copy->to, &to, lines);
}

static uint32_t copy_stack(struct copy *copy, uint32_t id)
{
	uint32_t to[PROFILE_LOCATIONS_MAX];
	const uint32_t *from;
	size_t n;

	from = profile_stack_at(copy->from, id, &n);
	for (size_t i = 0; i < n; i++) {
		uint32_t *known = &copy->locations[from[i]];

		if (!*known)
			*known = copy_location(copy, from[i]);
		if (!*known)
			return 0;
		to[i] = *known;
	}
	return profile_stack(copy->to, to, n);
}

static uint32_t copy_resource(struct copy *copy, uint32_t id)
{
	struct profile_attribute to[PROFILE_ATTRIBUTES_MAX];
	const struct profile_attribute *from;
	size_t n;

	from = profile_resource_at(copy->from, id, &n);
	for (size_t i = 0; i < n; i++)
		if (!copy_string(copy, from[i].key, &to[i].key) ||
		    !copy_string(copy, from[i].value, &to[i].value))
			return 0;
	return profile_resource(copy->to, to, n);
}

typedef uint32_t copy_function_of(struct copy *copy, uint32_t id);

/* Translate through `known`. Id 0 stays 0; else 0 in *to is a failure. */
static bool copy_once(struct copy *copy, copy_function_of *translate, uint32_t *known,
		      uint32_t from, uint32_t *to)
{
	if (from && !known[from])
		known[from] = translate(copy, from);
	*to = from ? known[from] : 0;
	return *to || !from;
}

int copy_sample(struct copy *copy, uint32_t id)
{
	uint64_t count;
	const struct profile_sample *from = profile_sample_at(copy->from, id, &count);
	struct profile_sample to = *from;

	errno = 0;
	if (!copy_once(copy, copy_stack, copy->stacks, from->stack, &to.stack) ||
	    !copy_once(copy, copy_resource, copy->resources, from->resource, &to.resource) ||
	    !copy_string(copy, from->thread_name, &to.thread_name) ||
	    !copy_string(copy, from->stop, &to.stop))
		return errno ? -errno : -ENOSPC;
	return profile_add(copy->to, &to, count);
}
