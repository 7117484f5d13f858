/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as the bytes of an OTLP ExportProfilesServiceRequest, and back
 * (proto/opentelemetry/collector.proto; HTTP path /v1development/profiles).
 *
 * Encoding writes one dictionary per request and keeps every rule of the format: entry 0 of each
 * table is null, no duplicates, nothing that is not referred to, no attribute key twice with one
 * owner, one value per sample. Resource attributes are plain strings, because collectors do not
 * resolve references there. Each (resource, period) is one Profile with its own profile_id.
 *
 * Decoding takes bytes of anyone. Nesting, memory and every index are checked before they are used;
 * samples/count and cpu/nanoseconds are understood, other sample types are left out and counted.
 */
#ifndef SCONCE_PROFILE_OTLP_H
#define SCONCE_PROFILE_OTLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

#define OTLP_PATH	      "/v1development/profiles"
#define OTLP_PROFILE_ID_BYTES 16
/* Larger requests are neither made nor read. */
#define OTLP_REQUEST_BYTES_MAX (64u << 20)
/* More resources in one request are neither written nor read: each may have a target of its own. */
#define OTLP_RESOURCES_MAX 8192

/* Names of sample attributes. */
#define OTLP_THREAD_NAME "thread.name"
#define OTLP_THREAD_ID	 "thread.id"
#define OTLP_PROCESS_PID "process.pid"
#define OTLP_STACK_STOP	 "sconce.stack.stop" /* why a stack is not complete */
#define OTLP_FRAME_TYPE	 "profile.frame.type"

struct otlp_encode_options {
	/*
	 * process.pid and thread.id as sample attributes. Without them samples that differ in
	 * nothing else are merged.
	 */
	bool with_process_ids;
	/* profile_id of Profile i = 16 bytes derived from instance, batch and i: the same again for
	 * the same profile, and different for anything else. */
	uint8_t instance[OTLP_PROFILE_ID_BYTES];
	uint64_t batch;
};

/*
 * Encode all of it. *bytes is malloc'ed and the caller's. 0, -ENODATA (no samples: nothing is to be
 * sent), -E2BIG (above the limits) or -ENOMEM.
 */
int otlp_encode(const struct profile *profile, const struct otlp_encode_options *options,
		uint8_t **bytes, size_t *len_bytes);

struct otlp_attribute {
	const char *key, *value; /* never NULL; numbers and booleans are given as text */
};

/* What the receiver of decoded samples decides. Every function may be NULL. */
struct otlp_sink {
	void *arg;
	/* Has this Profile arrived before? true = its samples are skipped and counted as
	 * duplicates. Called once per Profile that has an id, before any of its samples is added.
	 */
	bool (*seen)(void *arg, const uint8_t id[OTLP_PROFILE_ID_BYTES]);
	/*
	 * Where the samples of this resource go; NULL = nowhere (they are counted in result.samples
	 * all the same). `samples` of them will come, duplicates excluded. Called once for each
	 * ResourceProfiles that has any. The profile must not be cleared or freed before
	 * otlp_decode returns.
	 */
	struct profile *(*target)(void *arg, const struct otlp_attribute *attributes, size_t n,
				  uint64_t samples);
	/* Told of each resource right before `target` is asked: the CPU time of those samples. */
	void (*tally)(void *arg, const struct otlp_attribute *attributes, size_t n,
		      uint64_t samples, uint64_t cpu_ns);
	/* Used where `target` is NULL. */
	struct profile *into;
	/* Memory that decoding may take, 0 = 32 times the request plus 1 MiB. */
	size_t memory_bytes;
};

struct otlp_result {
	uint64_t samples;	     /* read, duplicates excluded */
	uint64_t samples_named;	     /* of these, with a function name in the leaf frame that is not
					a placeholder in square brackets */
	uint64_t samples_duplicate;  /* skipped because their profile had been seen */
	uint64_t samples_dropped;    /* of `samples`: found no room in their target */
	uint32_t profiles;	     /* read, duplicates excluded */
	uint32_t profiles_duplicate; /* skipped */
	uint32_t profiles_ignored;   /* of a sample type that is not CPU time */
};

/*
 * Decode and add. 0; -EPROTO: not such a message, nested too deep, an index out of range (then
 * nothing was added: everything is checked before the sink is asked); -ENOMEM: needs more than
 * memory_bytes; -E2BIG.
 */
int otlp_decode(const void *bytes, size_t len_bytes, const struct otlp_sink *sink,
		struct otlp_result *result);

/*
 * An ExportProfilesServiceResponse. 0 with the number of rejected profiles (0 = full success) and
 * the text of the error, cut to size; -EPROTO.
 */
int otlp_decode_response(const void *bytes, size_t len_bytes, int64_t *rejected, char *text,
			 size_t text_size);
/* The bytes of a response: full success when rejected is 0 and text is NULL. Length written. */
size_t otlp_encode_response(int64_t rejected, const char *text, uint8_t *buf, size_t size);

#endif
