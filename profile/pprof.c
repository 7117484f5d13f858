/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/gzip.h"
#include "profile/table.h"
#include "profile/wire.h"
#include "proto/pprof/profile.pb-c.h"

#define PPROF_ARENA_MAX	 ((size_t)2 << 30)
#define PPROF_LABELS_MAX 5
#define PPROF(name)	 Perftools__Profiles__##name
#define PPROF_INIT(name) perftools__profiles__##name##__init

/* Ids are those of the profile: they begin at 1 there, too. Strings are interned once more, because
 * the labels add some. */
struct pprof {
	const struct profile *profile;
	struct arena arena;
	struct table_budget budget;
	struct table strings;
	int err;
	PPROF(Profile) out;
};

static void *pprof_alloc(struct pprof *p, size_t n, size_t size)
{
	void *room = arena_alloc(&p->arena, n ? n : 1, size);

	if (!room)
		p->err = -ENOMEM;
	return room;
}

static int64_t pprof_string(struct pprof *p, const char *text)
{
	uint32_t id = *text ? table_intern(&p->strings, &p->budget, text, strlen(text) + 1) : 0;

	if (*text && !id)
		p->err = -ENOMEM;
	return id;
}

static int64_t pprof_text(struct pprof *p, uint32_t string)
{
	return pprof_string(p, profile_text(p->profile, string));
}

/* An array of n messages of a kind, with the pointers to them that protobuf-c wants. */
#define PPROF_ARRAY(p, kind, Type, init, count)                                                    \
	PPROF(Type) *items = pprof_alloc(p, count, sizeof(*items));                                \
	p->out.kind = pprof_alloc(p, count, sizeof(*p->out.kind));                                 \
	if (p->err)                                                                                \
		return;                                                                            \
	p->out.n_##kind = count;                                                                   \
	for (size_t k = 0; k < count; k++) {                                                       \
		PPROF_INIT(init)(&items[k]);                                                       \
		p->out.kind[k] = &items[k];                                                        \
	}

static void pprof_functions(struct pprof *p)
{
	uint32_t n = profile_functions_n(p->profile);

	PPROF_ARRAY(p, function, Function, function, n)
	for (uint32_t i = 0; i < n; i++) {
		const struct profile_function *from = profile_function_at(p->profile, i + 1);

		items[i].id = i + 1;
		items[i].name = pprof_text(p, from->name);
		items[i].system_name =
		    pprof_text(p, from->system_name ? from->system_name : from->name);
		items[i].filename = pprof_text(p, from->file);
		items[i].start_line = from->start_line;
	}
}

static void pprof_mappings(struct pprof *p)
{
	uint32_t n = profile_mappings_n(p->profile);

	PPROF_ARRAY(p, mapping, Mapping, mapping, n)
	for (uint32_t i = 0; i < n; i++) {
		const struct profile_mapping *from = profile_mapping_at(p->profile, i + 1);

		items[i].id = i + 1;
		items[i].memory_start = from->start;
		items[i].memory_limit = from->limit;
		items[i].file_offset = from->offset;
		items[i].filename = pprof_text(p, from->file);
		items[i].build_id =
		    pprof_text(p, from->gnu_build_id ? from->gnu_build_id : from->go_build_id);
		/* Names are there already: nobody has to look for the binary. */
		items[i].has_functions = true;
	}
}

/* A mapping has what any of its locations shows. */
static void pprof_mapping_has(struct pprof *p, const struct profile_location *from)
{
	PPROF(Mapping) * mapping;

	if (!from->mapping)
		return;
	mapping = p->out.mapping[from->mapping - 1];
	mapping->has_inline_frames |= from->lines_n > 1;
	for (uint32_t i = 0; i < from->lines_n; i++) {
		mapping->has_line_numbers |= from->lines[i].line != 0;
		mapping->has_filenames |=
		    profile_function_at(p->profile, from->lines[i].function)->file != 0;
	}
}

static void pprof_locations(struct pprof *p)
{
	uint32_t n = profile_locations_n(p->profile);

	PPROF_ARRAY(p, location, Location, location, n)
	for (uint32_t i = 0; i < n; i++) {
		const struct profile_location *from = profile_location_at(p->profile, i + 1);
		PPROF(Line) *lines = pprof_alloc(p, from->lines_n, sizeof(*lines));

		items[i].line = pprof_alloc(p, from->lines_n, sizeof(*items[i].line));
		if (p->err)
			return;
		items[i].id = i + 1;
		items[i].mapping_id = from->mapping;
		items[i].address = from->address;
		for (uint32_t j = 0; j < from->lines_n; j++) {
			PPROF_INIT(line)(&lines[j]);
			lines[j].function_id = from->lines[j].function;
			lines[j].line = from->lines[j].line;
			items[i].line[j] = &lines[j];
		}
		items[i].n_line = from->lines_n;
		pprof_mapping_has(p, from);
	}
}

static void pprof_label(struct pprof *p, PPROF(Sample) * sample, const char *key, const char *text,
			int64_t number)
{
	PPROF(Label) *label = sample->label[sample->n_label++];

	PPROF_INIT(label)(label);
	label->key = pprof_string(p, key);
	if (text)
		label->str = pprof_string(p, text);
	else
		label->num = number;
}

static void pprof_labels(struct pprof *p, const struct profile_sample *from, PPROF(Sample) * to)
{
	PPROF(Label) *labels = pprof_alloc(p, PPROF_LABELS_MAX, sizeof(*labels));
	const char *process =
	    profile_resource_text(p->profile, from->resource, "process.executable.name");

	to->label = pprof_alloc(p, PPROF_LABELS_MAX, sizeof(*to->label));
	if (p->err)
		return;
	for (size_t i = 0; i < PPROF_LABELS_MAX; i++)
		to->label[i] = &labels[i];
	if (process && *process)
		pprof_label(p, to, "process", process, 0);
	if (from->thread_name)
		pprof_label(p, to, "thread", profile_text(p->profile, from->thread_name), 0);
	if (from->stop)
		pprof_label(p, to, "truncated", profile_text(p->profile, from->stop), 0);
	if (from->pid)
		pprof_label(p, to, "pid", NULL, from->pid);
	if (from->tid)
		pprof_label(p, to, "tid", NULL, from->tid);
}

static void pprof_sample(struct pprof *p, const struct profile_sample *from, uint64_t count,
			 PPROF(Sample) * to)
{
	const uint32_t *locations;
	size_t n;

	locations = profile_stack_at(p->profile, from->stack, &n);
	to->location_id = pprof_alloc(p, n, sizeof(*to->location_id));
	to->value = pprof_alloc(p, 2, sizeof(*to->value));
	if (p->err)
		return;
	for (size_t i = 0; i < n; i++)
		to->location_id[i] = locations[i];
	to->n_location_id = n;
	to->value[0] = (int64_t)count;
	to->value[1] = (int64_t)(count * from->period_ns);
	to->n_value = 2;
	pprof_labels(p, from, to);
}

static void pprof_samples(struct pprof *p)
{
	uint32_t n = profile_samples_n(p->profile);

	PPROF_ARRAY(p, sample, Sample, sample, n)
	for (uint32_t i = 0; i < n && !p->err; i++) {
		uint64_t count;
		const struct profile_sample *from = profile_sample_at(p->profile, i + 1, &count);

		pprof_sample(p, from, count, &items[i]);
	}
}

static void pprof_types(struct pprof *p)
{
	PPROF_ARRAY(p, sample_type, ValueType, value_type, (size_t)2)
	items[0].type = pprof_string(p, "samples");
	items[0].unit = pprof_string(p, "count");
	items[1].type = pprof_string(p, "cpu");
	items[1].unit = pprof_string(p, "nanoseconds");
	p->out.default_sample_type = items[1].type;
	p->out.period_type = &items[1];
}

static void pprof_strings(struct pprof *p)
{
	char **strings = pprof_alloc(p, (size_t)p->strings.n + 1, sizeof(*strings));

	if (!strings)
		return;
	strings[0] = (char *)"";
	for (uint32_t i = 1; i <= p->strings.n; i++)
		strings[i] = (char *)table_at(&p->strings, i, NULL);
	p->out.string_table = strings;
	p->out.n_string_table = (size_t)p->strings.n + 1;
}

static int pprof_pack(struct pprof *p, uint8_t **bytes, size_t *len_bytes)
{
	size_t size = protobuf_c_message_get_packed_size(&p->out.base);
	uint8_t *packed = malloc(size ? size : 1);
	int err;

	if (!packed)
		return -ENOMEM;
	protobuf_c_message_pack(&p->out.base, packed);
	err = gzip_pack(packed, size, bytes, len_bytes);
	free(packed);
	return err;
}

int pprof_write(const struct profile *profile, uint8_t **bytes, size_t *len_bytes)
{
	struct pprof p = {.profile = profile,
			  .arena = {.limit_bytes = PPROF_ARENA_MAX},
			  .budget = {.limit_bytes = PPROF_ARENA_MAX}};
	/* Mappings before locations, which mark them; strings last, when all are known. */
	void (*const parts[])(struct pprof *) = {pprof_types,	  pprof_functions, pprof_mappings,
						 pprof_locations, pprof_samples,   pprof_strings};
	uint64_t start = profile_start_unix_ns(profile), end = profile_end_unix_ns(profile);

	PPROF_INIT(profile)(&p.out);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && !p.err; i++)
		parts[i](&p);
	p.out.time_nanos = (int64_t)start;
	p.out.duration_nanos = (int64_t)(end - start);
	if (profile_samples_n(profile))
		p.out.period = (int64_t)profile_sample_at(profile, 1, NULL)->period_ns;
	if (!p.err)
		p.err = pprof_pack(&p, bytes, len_bytes);
	table_clear(&p.strings, &p.budget);
	arena_free(&p.arena);
	return p.err;
}
