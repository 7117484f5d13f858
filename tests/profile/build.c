/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/profile/build.h"

#include <assert.h>
#include <string.h>

uint32_t build_string(struct profile *profile, const char *text)
{
	return profile_string(profile, text, strlen(text));
}

uint32_t build_function(struct profile *profile, const char *name, const char *file)
{
	struct profile_function function = {.name = build_string(profile, name),
					    .file = build_string(profile, file)};

	return profile_function(profile, &function);
}

uint32_t build_resource(struct profile *profile, const char *service)
{
	struct profile_attribute attributes[] = {
	    {build_string(profile, "service.name"), build_string(profile, service)},
	    {build_string(profile, "process.executable.name"), build_string(profile, "prog")},
	};

	return profile_resource(profile, attributes, 2);
}

static uint32_t build_location(struct profile *profile, uint32_t mapping, const char *type,
			       uint64_t address, const struct profile_line *lines, uint32_t n)
{
	struct profile_location location = {.mapping = mapping,
					    .frame_type = build_string(profile, type),
					    .address = address,
					    .lines_n = n};

	return profile_location(profile, &location, lines);
}

/* Locations: 0 kernel, 1 leaf inlined into helper, 2 work, 3 main, 4 without a name. */
static void build_locations(struct profile *p, uint32_t locations[5])
{
	uint32_t prog = profile_mapping(
	    p, &(struct profile_mapping){.file = build_string(p, "/usr/bin/prog"),
					 .gnu_build_id = build_string(p, "0123abcd"),
					 .start = 0x1000,
					 .limit = 0x9000});
	uint32_t kernel =
	    profile_mapping(p, &(struct profile_mapping){.file = build_string(p, "[kernel]")});
	struct profile_line read = {build_function(p, "vfs_read", ""), 0};
	struct profile_line inlined[] = {{build_function(p, "leaf", "a.c"), 7},
					 {build_function(p, "helper", "a.c"), 20}};
	struct profile_line work = {build_function(p, "work;er", "b.c"), 3};
	struct profile_line entry = {build_function(p, "main", "b.c"), 99};

	locations[0] = build_location(p, kernel, "kernel", 0x10, &read, 1);
	locations[1] = build_location(p, prog, "native", 0x1100, inlined, 2);
	locations[2] = build_location(p, prog, "native", 0x1200, &work, 1);
	locations[3] = build_location(p, prog, "native", 0x1300, &entry, 1);
	locations[4] = build_location(p, prog, "native", 0x1abc, NULL, 0);
}

static void build_add(struct profile *p, struct profile_sample sample, const char *thread,
		      uint64_t count)
{
	sample.thread_name = build_string(p, thread);
	if (!sample.period_ns)
		sample.period_ns = 10101010;
	assert(profile_add(p, &sample, count) == 0);
}

struct profile *build_profile(void)
{
	struct profile *p = profile_new(1 << 20);
	uint32_t l[5], web, db, deep, flat, odd;

	assert(p);
	build_locations(p, l);
	web = build_resource(p, "web");
	db = build_resource(p, "cpu"); /* a name that is also a unit */
	deep = profile_stack(p, (uint32_t[]){l[0], l[1], l[2], l[3]}, 4);
	flat = profile_stack(p, (uint32_t[]){l[2], l[3]}, 2);
	odd = profile_stack(p, (uint32_t[]){l[4]}, 1);
	build_add(p, (struct profile_sample){.resource = web, .stack = deep, .pid = 5, .tid = 6},
		  "prog", 3);
	build_add(p, (struct profile_sample){.resource = web, .stack = deep, .pid = 5, .tid = 7},
		  "prog", 4);
	build_add(p, (struct profile_sample){.resource = db, .stack = flat, .pid = 8, .tid = 8},
		  "samples", 5);
	build_add(p,
		  (struct profile_sample){.resource = db,
					  .stack = odd,
					  .pid = 8,
					  .tid = 8,
					  .stop = build_string(p, "no_row")},
		  "io\nthread", 2);
	build_add(p,
		  (struct profile_sample){
		      .resource = db, .stack = flat, .pid = 8, .tid = 8, .period_ns = 52631578},
		  "samples", 3);
	profile_cover(p, 1700000000000000000ull, 1700000005000000000ull);
	return p;
}
