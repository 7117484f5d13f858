/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/wire.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define ARENA_BLOCK_BYTES 65536
#define ARENA_ALIGN	  16
#define WIRE_DEPTH_MAX	  16
#define WIRE_FIELDS_MAX	  64 /* of one message type of ours */

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct arena_block {
	struct arena_block *next;
	size_t used, cap;
	_Alignas(ARENA_ALIGN) char data[];
};

void *arena_alloc(struct arena *arena, size_t n, size_t size)
{
	struct arena_block *block = arena->blocks;
	size_t need;
	void *p;

	if (__builtin_mul_overflow(n, size, &need) || need > arena->limit_bytes) {
		errno = ENOMEM;
		return NULL;
	}
	need = (need + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	if (!block || block->cap - block->used < need) {
		size_t cap = need > ARENA_BLOCK_BYTES ? need : ARENA_BLOCK_BYTES;

		if (cap > arena->limit_bytes - arena->used_bytes ||
		    !(block = calloc(1, sizeof(*block) + cap))) {
			errno = ENOMEM;
			return NULL;
		}
		block->cap = cap;
		block->next = arena->blocks;
		arena->blocks = block;
		arena->used_bytes += cap;
	}
	p = block->data + block->used;
	block->used += need;
	return p;
}

void arena_free(struct arena *arena)
{
	struct arena_block *next;

	for (struct arena_block *block = arena->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	arena->blocks = NULL;
	arena->used_bytes = 0;
}

struct wire_reader {
	const uint8_t *at, *end;
};

static bool wire_varint(struct wire_reader *reader, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; shift < 70 && reader->at < reader->end; shift += 7) {
		uint8_t byte = *reader->at++;

		if (shift < 64)
			*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool wire_skip(struct wire_reader *reader, uint64_t bytes)
{
	if (bytes > (uint64_t)(reader->end - reader->at))
		return false;
	reader->at += bytes;
	return true;
}

static bool wire_check(const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes,
		       size_t len, unsigned depth);

static bool wire_check_bytes(struct wire_reader *reader, const ProtobufCFieldDescriptor *field,
			     unsigned depth)
{
	const uint8_t *start;
	uint64_t len;

	if (!wire_varint(reader, &len))
		return false;
	start = reader->at;
	if (!wire_skip(reader, len))
		return false;
	return !field || field->type != PROTOBUF_C_TYPE_MESSAGE ||
	       wire_check(field->descriptor, start, (size_t)len, depth - 1);
}

static bool wire_check_field(struct wire_reader *reader,
			     const ProtobufCMessageDescriptor *descriptor, uint64_t *seen,
			     unsigned depth)
{
	const ProtobufCFieldDescriptor *field;
	uint64_t tag, ignored;

	if (!wire_varint(reader, &tag) || tag >> 3 == 0 || tag >> 3 >= 1u << 29)
		return false;
	field = protobuf_c_message_descriptor_get_field(descriptor, (unsigned)(tag >> 3));
	if (field && field->type == PROTOBUF_C_TYPE_MESSAGE &&
	    field->label != PROTOBUF_C_LABEL_REPEATED) {
		uint64_t bit = 1ull << (field - descriptor->fields);

		if (*seen & bit)
			return false;
		*seen |= bit;
	}
	switch (tag & 7) {
	case WIRE_VARINT:
		return wire_varint(reader, &ignored);
	case WIRE_FIXED64:
		return wire_skip(reader, 8);
	case WIRE_FIXED32:
		return wire_skip(reader, 4);
	case WIRE_BYTES:
		return wire_check_bytes(reader, field, depth);
	}
	return false;
}

static bool wire_check(const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes,
		       size_t len, unsigned depth)
{
	struct wire_reader reader = {bytes, bytes + len};
	uint64_t seen = 0;

	if (!depth || descriptor->n_fields > WIRE_FIELDS_MAX)
		return false;
	while (reader.at < reader.end)
		if (!wire_check_field(&reader, descriptor, &seen, depth))
			return false;
	return true;
}

/* What protobuf-c allocates, with its size in front, against one budget per message. */
struct wire_budget {
	ProtobufCAllocator allocator;
	size_t left_bytes;
	bool refused;
};

struct wire_chunk {
	size_t bytes;
	_Alignas(ARENA_ALIGN) char data[];
};

static void *wire_alloc(void *arg, size_t size)
{
	struct wire_budget *budget = arg;
	struct wire_chunk *chunk;

	/* Zeroed: protobuf-c cleans up a half-read message by looking into it. */
	chunk = size > budget->left_bytes || budget->left_bytes - size < sizeof(*chunk)
		    ? NULL
		    : calloc(1, sizeof(*chunk) + size);
	if (!chunk) {
		budget->refused = true;
		return NULL;
	}
	chunk->bytes = sizeof(*chunk) + size;
	budget->left_bytes -= chunk->bytes;
	return chunk->data;
}

static void wire_release(void *arg, void *p)
{
	struct wire_budget *budget = arg;
	struct wire_chunk *chunk;

	if (!p)
		return;
	chunk = (struct wire_chunk *)((char *)p - offsetof(struct wire_chunk, data));
	budget->left_bytes += chunk->bytes;
	free(chunk);
}

ProtobufCMessage *wire_unpack(const ProtobufCMessageDescriptor *descriptor, const void *bytes,
			      size_t len_bytes, size_t memory_bytes)
{
	struct wire_budget budget = {{wire_alloc, wire_release, &budget}, memory_bytes, false};
	ProtobufCMessage *message;

	if (!wire_check(descriptor, bytes, len_bytes, WIRE_DEPTH_MAX)) {
		errno = EPROTO;
		return NULL;
	}
	message = protobuf_c_message_unpack(descriptor, &budget.allocator, len_bytes, bytes);
	if (!message)
		errno = budget.refused ? ENOMEM : EPROTO;
	return message;
}

void wire_free(ProtobufCMessage *message)
{
	/* Releasing needs no budget any more, but the allocator wants one. */
	struct wire_budget budget = {{wire_alloc, wire_release, &budget}, 0, false};

	if (message)
		protobuf_c_message_free_unpacked(message, &budget.allocator);
}
