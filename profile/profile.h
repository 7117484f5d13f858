/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A merged profile in memory: what the exporter collects in an interval, what the viewer keeps per
 * slot, what the file of record is written from.
 *
 * Everything is hash-consed: an equal string, function, mapping, location, stack, resource or
 * sample key has one id. Ids of a kind are 1 .. n; 0 means none (the empty string, the empty stack,
 * "not known"). Adding an equal sample again adds to its count.
 *
 * Memory is bounded by the limit given at creation. Whoever adds gets id 0 (or -ENOSPC) when the
 * profile is full, and counts it; everything added before stays valid. -EINVAL is an id that does
 * not exist or a list that is too long: callers that translate foreign ids pass only what they got
 * here.
 *
 * The surprise: a pointer handed out (a string, a sample, a frame's names) holds only until
 * something is added to the same profile.
 */
#ifndef SCONCE_PROFILE_PROFILE_H
#define SCONCE_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROFILE_LINES_MAX      64   /* inlined frames of one location; more are refused */
#define PROFILE_LOCATIONS_MAX  4096 /* of one stack; more are refused */
#define PROFILE_ATTRIBUTES_MAX 64   /* of one resource; more are refused */
#define PROFILE_STRING_MAX     4096 /* bytes of a string; longer ones are cut */

struct profile;

struct profile_function {
	uint32_t name;		    /* string, never 0 */
	uint32_t system_name, file; /* strings, 0 = none */
	uint32_t start_line;
};

struct profile_mapping {
	uint32_t file;				     /* string: path, "[kernel]" */
	uint32_t gnu_build_id, go_build_id, htlhash; /* strings, Go's not in hex; 0 = none */
	uint64_t start, limit, offset;
};

struct profile_line {
	uint32_t function;
	uint32_t line; /* 0 = not known */
};

/* Followed in memory by its lines, innermost first; more than one = inlined. At least one. */
struct profile_location {
	uint32_t mapping;
	uint32_t
	    frame_type; /* string as in the semantic conventions: "native", "kernel", ... or 0 */
	uint64_t address;
	uint32_t lines_n;
	uint32_t unused;
	struct profile_line lines[];
};

struct profile_attribute {
	uint32_t key, value; /* strings */
};

/* What makes samples equal. */
struct profile_sample {
	uint32_t resource;
	uint32_t stack;
	uint32_t thread_name; /* string, 0 = none */
	uint32_t stop;	      /* string: why the stack is not complete ("no_row"), 0 = it is */
	uint32_t pid, tid;    /* 0 = not told */
	uint64_t period_ns;   /* CPU time that one sample stands for */
};

/* limit_bytes: of all tables together. NULL with ENOMEM. */
struct profile *profile_new(size_t limit_bytes);
void profile_free(struct profile *profile);
/* Forget everything but the limit. */
void profile_clear(struct profile *profile);
/* Bytes allocated, never above the limit (a table that grows holds its old copy for a moment). */
size_t profile_bytes(const struct profile *profile);

/*
 * Define, or find. The id, or 0 with errno ENOSPC (full), EINVAL (an id that does not exist, too
 * many elements) or ENOMEM.
 *
 * A string is cut at a NUL and at PROFILE_STRING_MAX; bytes that are not UTF-8 become '?', because
 * a protobuf string must be UTF-8. "" is 0 without an error: look at errno only for text that is
 * not empty.
 */
uint32_t profile_string(struct profile *profile, const char *text, size_t len_bytes);
uint32_t profile_function(struct profile *profile, const struct profile_function *function);
uint32_t profile_mapping(struct profile *profile, const struct profile_mapping *mapping);
/*
 * Without lines the location gets one whose function is called "[basename+0xaddress]" or
 * "[unknown]", so that no frame is ever left out by anyone downstream.
 */
uint32_t profile_location(struct profile *profile, const struct profile_location *location,
			  const struct profile_line *lines);
/* Leaf first. An empty stack is 0 without an error. */
uint32_t profile_stack(struct profile *profile, const uint32_t *locations, size_t n);
/* In any order; of attributes with the same key the first one counts; empty keys are left out. */
uint32_t profile_resource(struct profile *profile, const struct profile_attribute *attributes,
			  size_t n);
/* Add `count` to the samples that are equal to this one. 0 or -errno. */
int profile_add(struct profile *profile, const struct profile_sample *sample, uint64_t count);

/* Widen the time that the profile covers, [start, end) in Unix time; 0, 0 in an empty profile. */
void profile_cover(struct profile *profile, uint64_t start_unix_ns, uint64_t end_unix_ns);
uint64_t profile_start_unix_ns(const struct profile *profile);
uint64_t profile_end_unix_ns(const struct profile *profile);

/* Numbers of entries; ids are 1 .. n. Samples are counted once per distinct key. */
uint32_t profile_strings_n(const struct profile *profile);
uint32_t profile_functions_n(const struct profile *profile);
uint32_t profile_mappings_n(const struct profile *profile);
uint32_t profile_locations_n(const struct profile *profile);
uint32_t profile_stacks_n(const struct profile *profile);
uint32_t profile_resources_n(const struct profile *profile);
uint32_t profile_samples_n(const struct profile *profile);
/* The sum of all counts. */
uint64_t profile_samples_total(const struct profile *profile);

/* Look up. An id beyond the last is our own mistake (assert). Text of 0 is "". */
const char *profile_text(const struct profile *profile, uint32_t string);
const struct profile_function *profile_function_at(const struct profile *profile, uint32_t id);
const struct profile_mapping *profile_mapping_at(const struct profile *profile, uint32_t id);
const struct profile_location *profile_location_at(const struct profile *profile, uint32_t id);
/* The locations of a stack, leaf first; *n is set (0 for stack 0). */
const uint32_t *profile_stack_at(const struct profile *profile, uint32_t id, size_t *n);
/* The attributes of a resource, sorted by key text; *n is set (0 for resource 0). */
const struct profile_attribute *profile_resource_at(const struct profile *profile, uint32_t id,
						    size_t *n);
/* Text of one attribute of a resource, NULL when it has none of that name. */
const char *profile_resource_text(const struct profile *profile, uint32_t id, const char *key);
/* Sample 1 .. n and its count. */
const struct profile_sample *profile_sample_at(const struct profile *profile, uint32_t id,
					       uint64_t *count);

/* One line of a flame graph. */
struct profile_frame {
	uint32_t function; /* id: equal names in different files are different functions */
	uint32_t line;	   /* 0 = not known */
	uint64_t address;
	const char *name;	/* of the function, never empty */
	const char *file;	/* source file, "" = not known */
	const char *module;	/* file of the mapping, "" = not known */
	const char *frame_type; /* "native", "kernel", ..., "" = not known */
	bool inlined;		/* into the frame that follows it */
	bool kernel;		/* frame_type is "kernel" */
};

/*
 * The frames of a stack, leaf first, inlined ones as frames of their own. Writes at most `max` and
 * returns how many there are.
 */
size_t profile_frames(const struct profile *profile, uint32_t stack, struct profile_frame *frames,
		      size_t max);

#endif
