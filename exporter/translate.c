/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/translate.h"

#include <errno.h>
#include <string.h>

#include "exporter/resource.h"

static const char *const stop_texts[STOP_COUNT] = {
#define REASON(name, text) [name] = text,
    RECORD_STOPS(REASON)
#undef REASON
};

static const char *const frame_types[SYMBOL_FRAME_TYPE_COUNT] = {
#define TYPE(NAME, text) [SYMBOL_FRAME_##NAME] = text,
    SYMBOL_FRAME_TYPES(TYPE)
#undef TYPE
};

static uint32_t translate_fail(struct translate *t, int err)
{
	if (!t->err)
		t->err = err;
	return 0;
}

static uint32_t translate_text(struct translate *t, const char *text, size_t len)
{
	uint32_t id;

	errno = 0;
	id = profile_string(t->profile, text, len);
	return id || !errno ? id : translate_fail(t, -ENOSPC);
}

/*
 * The slot of a definition and, when it is new in this batch, its record in buf (*fresh). NULL:
 * there is no such definition, or it is malformed, or something failed before.
 */
static struct definitions_slot *translate_open(struct translate *t, enum symbol_kind kind,
					       uint32_t id, char *buf, bool *fresh)
{
	struct definitions_slot *slot = definitions_find(t->definitions, kind, id);

	*fresh = slot && slot->generation != t->generation;
	if (t->err)
		return NULL;
	if (!slot || (*fresh && !definitions_copy(t->definitions, slot, kind, buf))) {
		translate_fail(t, -EPROTO);
		return NULL;
	}
	return slot;
}

/* Remember the result, unless something failed on the way to it. */
static uint32_t translate_close(struct translate *t, struct definitions_slot *slot, uint32_t id)
{
	if (!id)
		translate_fail(t, errno == EINVAL ? -EPROTO : -ENOSPC);
	if (t->err)
		return 0;
	slot->generation = t->generation;
	slot->id = id;
	return id;
}

/*
 * One function per kind; each returns the id in the profile, 0 for id 0 or after a failure. The
 * buffer of a record is on the stack of its own function; the nesting is stack, location, function,
 * string.
 */
static uint32_t translate_string(struct translate *t, uint32_t id)
{
	_Alignas(8) char buf[DEFINITIONS_RECORD_BYTES_MAX];
	const struct symbol_string *from = (const void *)buf;
	struct definitions_slot *slot;
	bool fresh;

	if (!id)
		return 0;
	slot = translate_open(t, SYMBOL_STRING, id, buf, &fresh);
	if (!slot)
		return 0;
	if (fresh) {
		slot->id = translate_text(t, from->text, from->bytes);
		slot->generation = t->err ? 0 : t->generation; /* "" is 0 and may be kept */
	}
	return slot->id;
}

static uint32_t translate_function(struct translate *t, uint32_t id)
{
	_Alignas(8) char buf[DEFINITIONS_RECORD_BYTES_MAX];
	const struct symbol_function *from = (const void *)buf;
	struct definitions_slot *slot;
	struct profile_function to = {0};
	bool fresh;

	slot = translate_open(t, SYMBOL_FUNCTION, id, buf, &fresh);
	if (!slot || !fresh)
		return slot ? slot->id : 0;
	to.name = translate_string(t, from->name);
	to.system_name = translate_string(t, from->system_name);
	to.file = translate_string(t, from->file);
	to.start_line = from->start_line;
	if (!to.name)
		to.name = translate_text(t, "[unknown]", strlen("[unknown]"));
	return t->err ? 0 : translate_close(t, slot, profile_function(t->profile, &to));
}

static uint32_t translate_mapping(struct translate *t, uint32_t id)
{
	_Alignas(8) char buf[DEFINITIONS_RECORD_BYTES_MAX];
	const struct symbol_mapping *from = (const void *)buf;
	struct definitions_slot *slot;
	struct profile_mapping to = {0};
	bool fresh;

	if (!id)
		return 0;
	slot = translate_open(t, SYMBOL_MAPPING, id, buf, &fresh);
	if (!slot || !fresh)
		return slot ? slot->id : 0;
	to.file = translate_string(t, from->file);
	to.gnu_build_id = translate_string(t, from->gnu_build_id);
	to.go_build_id = translate_string(t, from->go_build_id);
	to.htlhash = translate_string(t, from->htlhash);
	to.start = from->start;
	to.limit = from->limit;
	to.offset = from->offset;
	return t->err ? 0 : translate_close(t, slot, profile_mapping(t->profile, &to));
}

static uint32_t translate_location(struct translate *t, uint32_t id)
{
	_Alignas(8) char buf[DEFINITIONS_RECORD_BYTES_MAX];
	const struct symbol_location *from = (const void *)buf;
	struct profile_line lines[SYMBOL_LINES_MAX];
	struct definitions_slot *slot;
	struct profile_location to = {0};
	bool fresh;

	slot = translate_open(t, SYMBOL_LOCATION, id, buf, &fresh);
	if (!slot || !fresh)
		return slot ? slot->id : 0;
	if (from->frame_type >= SYMBOL_FRAME_TYPE_COUNT)
		return translate_fail(t, -EPROTO);
	to.mapping = translate_mapping(t, from->mapping);
	to.frame_type =
	    translate_text(t, frame_types[from->frame_type], strlen(frame_types[from->frame_type]));
	to.address = from->address;
	to.lines_n = from->lines_n;
	for (uint32_t i = 0; i < from->lines_n && !t->err; i++) {
		lines[i].function = translate_function(t, from->lines[i].function);
		lines[i].line = from->lines[i].line;
	}
	return t->err ? 0 : translate_close(t, slot, profile_location(t->profile, &to, lines));
}

static uint32_t translate_stack(struct translate *t, uint32_t id)
{
	_Alignas(8) char buf[DEFINITIONS_RECORD_BYTES_MAX];
	const struct symbol_stack *from = (const void *)buf;
	uint32_t locations[SYMBOL_STACK_FRAMES_MAX];
	struct definitions_slot *slot;
	bool fresh;

	slot = translate_open(t, SYMBOL_STACK, id, buf, &fresh);
	if (!slot || !fresh)
		return slot ? slot->id : 0;
	for (uint32_t i = 0; i < from->locations_n && !t->err; i++)
		locations[i] = translate_location(t, from->locations[i]);
	/* An empty stack is 0 and needs no slot. */
	if (t->err || !from->locations_n)
		return 0;
	return translate_close(t, slot, profile_stack(t->profile, locations, from->locations_n));
}

/* Text of a string definition for as long as buf lives; "" for 0. */
static const char *translate_peek(struct translate *t, uint32_t id,
				  char buf[DEFINITIONS_RECORD_BYTES_MAX])
{
	struct definitions_slot *slot = definitions_find(t->definitions, SYMBOL_STRING, id);
	struct symbol_string *string = (struct symbol_string *)buf;

	if (!id)
		return "";
	if (!slot || !definitions_copy(t->definitions, slot, SYMBOL_STRING, buf)) {
		translate_fail(t, -EPROTO);
		return "";
	}
	/* The longest string and its header leave room for the NUL. */
	string->text[string->bytes] = '\0';
	return string->text;
}

_Static_assert(sizeof(struct symbol_string) + SYMBOL_STRING_BYTES_MAX <
		   DEFINITIONS_RECORD_BYTES_MAX,
	       "room for a NUL");

static uint32_t translate_process(struct translate *t, uint32_t id)
{
	_Alignas(8) char buf[DEFINITIONS_RECORD_BYTES_MAX], text[5][DEFINITIONS_RECORD_BYTES_MAX];
	const struct symbol_process *from = (const void *)buf;
	struct resource_process process;
	struct definitions_slot *slot;
	bool fresh;

	slot = translate_open(t, SYMBOL_PROCESS, id, buf, &fresh);
	if (!slot || !fresh)
		return slot ? slot->id : 0;
	process.executable = translate_peek(t, from->executable, text[0]);
	process.cgroup = translate_peek(t, from->cgroup, text[1]);
	process.container_id = translate_peek(t, from->container_id, text[2]);
	process.unit = translate_peek(t, from->unit, text[3]);
	process.comm = translate_peek(t, from->comm, text[4]);
	if (t->err)
		return 0;
	return translate_close(t, slot, resource_define(t->profile, t->config, &process));
}

/* Complete stacks, and those of which there is nothing to complete, need no mark. */
static uint32_t translate_stop(struct translate *t, uint8_t stop)
{
	if (stop >= STOP_COUNT)
		return translate_fail(t, -EPROTO);
	if (stop == STOP_COMPLETE || stop == STOP_NO_USER || stop == STOP_EXECVE)
		return 0;
	return translate_text(t, stop_texts[stop], strlen(stop_texts[stop]));
}

int translate_sample(struct translate *t, const struct symbol_sample *from,
		     struct profile_sample *to)
{
	t->err = 0;
	memset(to, 0, sizeof(*to));
	if (!from->period_ns || from->period_ns > INT64_MAX / 1024)
		return t->err = -EPROTO;
	to->resource = translate_process(t, from->process);
	to->stack = translate_stack(t, from->stack);
	to->stop = translate_stop(t, from->stop);
	to->thread_name = translate_text(t, from->comm, sizeof(from->comm));
	to->pid = from->pid;
	to->tid = from->tid;
	to->period_ns = from->period_ns;
	return t->err;
}
