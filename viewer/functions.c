/* SPDX-License-Identifier: Apache-2.0 */
#include "viewer/functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_FIRST 1024
#define INDEX_FIRST  1024 /* a power of two */

struct counting {
	struct functions *functions;
	size_t rows_capacity;
	uint32_t *index; /* hash -> row + 1 */
	size_t index_size;
	struct profile_frame *frames;
	size_t frames_capacity;
	uint64_t stacks; /* counted so far */
};

static uint32_t function_hash(const char *name, const char *module)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	hash *= 16777619u;
	for (; *module; module++)
		hash = (hash ^ (unsigned char)*module) * 16777619u;
	return hash ^ hash >> 15;
}

/* Where this function stands in the index, or where it would. */
static uint32_t *counting_place(const struct counting *counting, const struct profile_frame *frame,
				uint32_t hash)
{
	size_t mask = counting->index_size - 1;

	for (size_t i = hash & mask;; i = (i + 1) & mask) {
		uint32_t *place = &counting->index[i];
		const struct function_row *row;

		if (!*place)
			return place;
		row = &counting->functions->row[*place - 1];
		if (row->hash == hash && !strcmp(row->name, frame->name) &&
		    !strcmp(row->module, frame->module))
			return place;
	}
}

/* Keep the index at most half full. */
static int counting_grow_index(struct counting *counting)
{
	size_t size = counting->index_size ? counting->index_size * 2 : INDEX_FIRST;
	uint32_t *index;

	if (counting->functions->n * 2 < counting->index_size)
		return 0;
	index = calloc(size, sizeof(*index));
	if (!index)
		return -ENOMEM;
	for (size_t r = 0; r < counting->functions->n; r++) {
		size_t i = counting->functions->row[r].hash & (size - 1);

		while (index[i])
			i = (i + 1) & (size - 1);
		index[i] = (uint32_t)r + 1;
	}
	free(counting->index);
	counting->index = index;
	counting->index_size = size;
	return 0;
}

static int counting_grow_rows(struct counting *counting)
{
	struct functions *functions = counting->functions;
	size_t capacity = counting->rows_capacity ? counting->rows_capacity * 2 : 256;
	struct function_row *row;

	if (functions->n < counting->rows_capacity)
		return 0;
	row = realloc(functions->row, capacity * sizeof(*row));
	if (!row)
		return -ENOMEM;
	functions->row = row;
	counting->rows_capacity = capacity;
	return 0;
}

static struct function_row *counting_row(struct counting *counting,
					 const struct profile_frame *frame)
{
	uint32_t hash = function_hash(frame->name, frame->module);
	struct functions *functions = counting->functions;
	uint32_t *place;

	if (counting_grow_index(counting) || counting_grow_rows(counting))
		return NULL;
	place = counting_place(counting, frame, hash);
	if (!*place) {
		functions->row[functions->n++] = (struct function_row){
		    .name = frame->name,
		    .module = frame->module,
		    .file = frame->file,
		    .kernel = frame->kernel,
		    .hash = hash,
		};
		*place = (uint32_t)functions->n;
	}
	return &functions->row[*place - 1];
}

/* All frames of a stack, or the one that stands for none. */
static size_t counting_frames(struct counting *counting, const struct profile *profile,
			      uint32_t stack)
{
	static const struct profile_frame none = {
	    .name = "[no stack]", .file = "", .module = "", .frame_type = ""};
	size_t n = profile_frames(profile, stack, counting->frames, counting->frames_capacity);
	struct profile_frame *frames;

	if (n > counting->frames_capacity) {
		frames = realloc(counting->frames, n * sizeof(*frames));
		if (!frames)
			return 0;
		counting->frames = frames;
		counting->frames_capacity = n;
		profile_frames(profile, stack, frames, n);
	}
	if (!n) {
		counting->frames[0] = none;
		n = 1;
	}
	return n;
}

static int counting_sample(struct counting *counting, const struct profile *profile, uint32_t id)
{
	uint64_t count;
	const struct profile_sample *sample = profile_sample_at(profile, id, &count);
	size_t n = counting_frames(counting, profile, sample->stack);

	if (!n)
		return -ENOMEM;
	counting->stacks++;
	for (size_t i = 0; i < n; i++) {
		struct function_row *row = counting_row(counting, &counting->frames[i]);

		if (!row)
			return -ENOMEM;
		if (!i)
			row->self += count;
		if (row->last_stack == counting->stacks)
			continue;
		row->last_stack = counting->stacks;
		row->total += count;
	}
	counting->functions->samples += count;
	counting->functions->cpu_ns += count * sample->period_ns;
	if (!sample->stop)
		counting->functions->complete += count;
	return 0;
}

static int counting_slot(struct counting *counting, const struct slot *slot)
{
	for (size_t p = 0; p < SLOT_PARTS; p++) {
		const struct profile *part = slot->part[p];

		for (uint32_t id = 1; part && id <= profile_samples_n(part); id++)
			if (counting_sample(counting, part, id))
				return -ENOMEM;
	}
	return 0;
}

static int function_by_name(const void *a, const void *b)
{
	const struct function_row *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : strcmp(x->module, y->module);
}

static int function_by_self(const void *a, const void *b)
{
	const struct function_row *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return function_by_name(a, b);
}

static int function_by_total(const void *a, const void *b)
{
	const struct function_row *x = a, *y = b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return function_by_self(a, b);
}

int functions_count(struct functions *functions, const struct slot *slot,
		    enum functions_order order)
{
	static int (*const orders[])(const void *, const void *) = {
	    [FUNCTIONS_BY_SELF] = function_by_self,
	    [FUNCTIONS_BY_TOTAL] = function_by_total,
	    [FUNCTIONS_BY_NAME] = function_by_name,
	};
	struct counting counting = {.functions = functions, .frames_capacity = FRAMES_FIRST};
	int err = -ENOMEM;

	*functions = (struct functions){0};
	counting.frames = malloc(FRAMES_FIRST * sizeof(*counting.frames));
	if (counting.frames)
		err = counting_slot(&counting, slot);
	free(counting.frames);
	free(counting.index);
	if (err)
		functions_fini(functions);
	else if (functions->n)
		qsort(functions->row, functions->n, sizeof(*functions->row), orders[order]);
	return err;
}

void functions_fini(struct functions *functions)
{
	free(functions->row);
	*functions = (struct functions){0};
}
