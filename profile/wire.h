/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short names for what protoc-c makes of proto/opentelemetry, and memory for it: a tree of messages
 * is built in an arena (arena_*) or unpacked with a budget (wire_unpack).
 */
#ifndef SCONCE_PROFILE_WIRE_H
#define SCONCE_PROFILE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/opentelemetry/collector.pb-c.h"

#define WIRE_COMMON(name)    Opentelemetry__Proto__Common__V1__##name
#define WIRE_RESOURCE(name)  Opentelemetry__Proto__Resource__V1__##name
#define WIRE_PROFILES(name)  Opentelemetry__Proto__Profiles__V1development__##name
#define WIRE_COLLECTOR(name) Opentelemetry__Proto__Collector__Profiles__V1development__##name

#define WIRE_COMMON_INIT(name)	 opentelemetry__proto__common__v1__##name##__init
#define WIRE_RESOURCE_INIT(name) opentelemetry__proto__resource__v1__##name##__init
#define WIRE_PROFILES_INIT(name) opentelemetry__proto__profiles__v1development__##name##__init
#define WIRE_COLLECTOR_INIT(name)                                                                  \
	opentelemetry__proto__collector__profiles__v1development__##name##__init
#define WIRE_COLLECTOR_DESCRIPTOR(name)                                                            \
	opentelemetry__proto__collector__profiles__v1development__##name##__descriptor
#define WIRE_VALUE(NAME) OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##NAME

/* Memory that is given back all at once. */
struct arena_block;
struct arena {
	struct arena_block *blocks;
	size_t used_bytes, limit_bytes;
};

/* Zeroed and aligned to 16; NULL with errno ENOMEM beyond the limit. */
void *arena_alloc(struct arena *arena, size_t n, size_t size);
void arena_free(struct arena *arena);

/*
 * Unpack bytes of anyone. Before protobuf-c sees them they are walked once: nesting is bounded,
 * every length is inside, and no singular message stands there twice (so nothing is ever merged).
 * At most memory_bytes are allocated. NULL with errno EPROTO or ENOMEM. Free with wire_free.
 */
ProtobufCMessage *wire_unpack(const ProtobufCMessageDescriptor *descriptor, const void *bytes,
			      size_t len_bytes, size_t memory_bytes);
void wire_free(ProtobufCMessage *message);

#endif
