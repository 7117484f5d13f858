/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarfindex.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/dwarfpieces.h"
#include "symbolizer/dwarfranges.h"

#define NOT_FIXED UINT32_MAX

/* An entry around the present one. */
struct level {
	uint64_t offset;
	uint32_t site;	/* of the function it is in */
	uint32_t scope; /* among the index's */
	bool names;	/* a namespace or class, not among the scopes yet */
};

struct walk {
	struct dwarfindex *index;
	const struct dwarfunit *unit;
	struct dwarflimit *limit;
	struct dwarfabbrevs abbrevs;
	uint32_t *sizes;
	struct dwarfdies dies;
	struct level levels[DWARFINDEX_DEPTH_MAX];
	uint32_t depth;	 /* of levels */
	uint32_t beyond; /* of those that are deeper */
	struct dwarfpieces_interval *intervals;
	uint32_t *buckets; /* functions by offset: index + 1 */
	uint32_t intervals_n, intervals_room, sites_room, functions_room, scopes_room, scoped_room;
	uint32_t buckets_n;
	bool scoped; /* names of this language are to be read with what they stand in */
	int err;
};

static bool walk_interval(void *arg, uint64_t start, uint64_t end)
{
	struct walk *w = arg;

	if (dwarflimit_late(w->limit))
		w->err = -ETIME;
	if (w->err == 0)
		w->err = dwarflimit_grow(w->limit, (void **)&w->intervals, w->intervals_n,
					 &w->intervals_room, sizeof(*w->intervals));
	if (w->err)
		return false;
	w->intervals[w->intervals_n++] =
	    (struct dwarfpieces_interval){start, end, w->index->sites_n};
	return true;
}

/* --- Functions, each once. --- */

static uint32_t *walk_bucket(const struct walk *w, uint64_t offset)
{
	uint32_t i = (uint32_t)(offset * 0x9e3779b97f4a7c15ull >> 32) & (w->buckets_n - 1);

	while (w->buckets[i] && w->index->functions[w->buckets[i] - 1].offset != offset)
		i = (i + 1) & (w->buckets_n - 1);
	return &w->buckets[i];
}

/* At most half of the buckets are in use. */
static int walk_rehash(struct walk *w)
{
	uint32_t n = w->buckets_n ? 2 * w->buckets_n : 64;
	uint32_t *grown;

	if (2 * (w->index->functions_n + 1) <= w->buckets_n)
		return 0;
	grown = calloc(n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	free(w->buckets);
	w->buckets = grown;
	w->buckets_n = n;
	for (uint32_t i = 0; i < w->index->functions_n; i++)
		*walk_bucket(w, w->index->functions[i].offset) = i + 1;
	return 0;
}

static uint32_t walk_function(struct walk *w, uint64_t offset)
{
	struct dwarfindex *index = w->index;
	uint32_t *bucket;

	if (w->err == 0)
		w->err = walk_rehash(w);
	if (w->err == 0)
		w->err = dwarflimit_grow(w->limit, (void **)&index->functions, index->functions_n,
					 &w->functions_room, sizeof(*index->functions));
	if (w->err)
		return DWARFINDEX_NONE;
	bucket = walk_bucket(w, offset);
	if (*bucket)
		return *bucket - 1;
	index->functions[index->functions_n] = (struct dwarfindex_function){.offset = offset};
	*bucket = ++index->functions_n;
	return *bucket - 1;
}

/* --- Scopes: only those that some function needs for its name. --- */

static uint32_t walk_scope(struct walk *w)
{
	struct dwarfindex *index = w->index;
	uint32_t scope = DWARFINDEX_NONE;

	for (uint32_t i = 0; i < w->depth; i++) {
		struct level *level = &w->levels[i];

		if (level->names && level->scope == DWARFINDEX_NONE) {
			w->err = dwarflimit_grow(w->limit, (void **)&index->scopes, index->scopes_n,
						 &w->scopes_room, sizeof(*index->scopes));
			if (w->err)
				return DWARFINDEX_NONE;
			index->scopes[index->scopes_n] =
			    (struct dwarfindex_scope){level->offset, scope};
			level->scope = index->scopes_n++;
		}
		if (level->names)
			scope = level->scope;
	}
	return scope;
}

static void walk_scoped(struct walk *w, const struct dwarfdie *die, uint64_t offset)
{
	struct dwarfindex *index = w->index;
	uint32_t scope;

	if (!w->scoped || !die->value[ATTRIBUTE_NAME].form ||
	    die->value[ATTRIBUTE_LINKAGE_NAME].form)
		return;
	scope = walk_scope(w);
	if (scope == DWARFINDEX_NONE || w->err)
		return;
	w->err = dwarflimit_grow(w->limit, (void **)&index->scoped, index->scoped_n,
				 &w->scoped_room, sizeof(*index->scoped));
	if (w->err == 0)
		index->scoped[index->scoped_n++] = (struct dwarfindex_scoped){offset, scope};
}

/* --- The walk. --- */

static uint32_t walk_number(const struct dwarfvalue *value)
{
	return value->number > UINT32_MAX ? 0 : (uint32_t)value->number;
}

/* A function, or one that is inlined here. The site that it makes; `outer`: it makes none. */
static uint32_t walk_site(struct walk *w, const struct dwarfdie *die, uint64_t offset,
			  uint32_t outer)
{
	bool inlined = die->tag == DW_TAG_inlined_subroutine, alt = false;
	struct dwarfindex_site site = {.parent = inlined ? outer : DWARFINDEX_NONE};
	uint32_t before = w->intervals_n;

	dwarfranges_each(w->unit, die, w->limit, walk_interval, w);
	if (w->intervals_n == before || w->err)
		return inlined ? outer : DWARFINDEX_NONE;
	/* Of what is inlined the entry that all its copies share. */
	if (inlined && die->value[ATTRIBUTE_ORIGIN].form &&
	    !dwarfunit_reference(w->unit, &die->value[ATTRIBUTE_ORIGIN], &offset, &alt))
		alt = false;
	site.function = walk_function(w, offset | (alt ? DWARFINDEX_ALT : 0));
	if (inlined) {
		site.call_file = walk_number(&die->value[ATTRIBUTE_CALL_FILE]);
		site.call_line = walk_number(&die->value[ATTRIBUTE_CALL_LINE]);
	}
	if (w->err == 0)
		w->err = dwarflimit_grow(w->limit, (void **)&w->index->sites, w->index->sites_n,
					 &w->sites_room, sizeof(site));
	if (w->err)
		return outer;
	w->index->sites[w->index->sites_n] = site;
	return w->index->sites_n++;
}

static bool walk_names(uint16_t tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

static void walk_down(struct walk *w, const struct dwarfabbrev *abbrev, uint64_t offset,
		      uint32_t site)
{
	if (!abbrev->children)
		return;
	if (w->depth == DWARFINDEX_DEPTH_MAX) {
		w->beyond++;
		return;
	}
	w->levels[w->depth++] =
	    (struct level){offset, site, DWARFINDEX_NONE, w->scoped && walk_names(abbrev->tag)};
}

/* The entry at the cursor, whose code was read. */
static void walk_entry(struct walk *w, const struct dwarfabbrev *abbrev, uint64_t offset)
{
	const struct dwarfattribute *attributes =
	    abbrev->attributes_n ? &w->abbrevs.attributes[abbrev->first] : NULL;
	uint32_t size = w->sizes[abbrev - w->abbrevs.abbrevs];
	uint32_t site = w->depth ? w->levels[w->depth - 1].site : DWARFINDEX_NONE;
	struct dwarfdie die;

	if ((abbrev->tag == DW_TAG_subprogram || abbrev->tag == DW_TAG_inlined_subroutine) &&
	    !w->beyond) {
		memset(&die, 0, sizeof(die));
		die.tag = abbrev->tag;
		dwarfunit_values(&w->dies, attributes, abbrev->attributes_n, &die);
		if (w->dies.c.bad)
			return;
		site = walk_site(w, &die, offset, site);
		if (abbrev->tag == DW_TAG_subprogram)
			walk_scoped(w, &die, offset);
	} else if (size != NOT_FIXED) {
		cursor_take(&w->dies.c, size);
	} else {
		for (uint32_t i = 0; i < abbrev->attributes_n && !w->dies.c.bad; i++)
			dwarfunit_value(w->unit, &w->dies.c, attributes[i].form, 0);
	}
	walk_down(w, abbrev, offset, site);
}

static int walk_entries(struct walk *w)
{
	while (cursor_left(&w->dies.c) && w->err == 0) {
		uint64_t offset = w->dies.base_at + (uint64_t)(w->dies.c.at - w->dies.base);
		uint64_t code = cursor_uleb(&w->dies.c);
		const struct dwarfabbrev *abbrev;

		if (dwarflimit_late(w->limit))
			return -ETIME;
		if (code == 0) {
			if (w->beyond)
				w->beyond--;
			else if (w->depth)
				w->depth--;
			continue;
		}
		abbrev = dwarfabbrev_get(&w->abbrevs, code);
		if (!abbrev)
			return -ENOEXEC;
		walk_entry(w, abbrev, offset);
		if (w->dies.c.bad)
			return -ENOEXEC;
	}
	return w->err;
}

/* Languages whose names mean little without what they stand in. */
static bool walk_wants_scopes(const struct dwarfdie *root)
{
	switch (root->value[ATTRIBUTE_LANGUAGE].number) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case 0x2b: /* C++17 */
	case 0x2c: /* C++20 */
	case DW_LANG_Rust:
		return true;
	default:
		return false;
	}
}

static int walk_begin(struct walk *w)
{
	const struct dwarfunit *unit = w->unit;
	uint64_t bytes = unit->end - unit->first;
	struct dwarfdie root;
	int err;

	if (bytes > DWARFINDEX_UNIT_BYTES_MAX)
		return -EFBIG;
	if (!dwarfunit_die(unit, unit->first, &root))
		return -ENOEXEC;
	w->scoped = walk_wants_scopes(&root);
	err = dwarfabbrev_read(&w->abbrevs, &unit->file->section[DWARF_ABBREV], unit->abbrev_at);
	if (err)
		return err;
	w->sizes = malloc((w->abbrevs.abbrevs_n + 1ul) * sizeof(*w->sizes));
	if (!w->sizes)
		return -ENOMEM;
	dwarfunit_sizes(unit, &w->abbrevs, w->sizes);
	w->dies.unit = unit;
	w->dies.abbrevs = &w->abbrevs;
	w->dies.c = dwarfbytes_cursor(&unit->file->section[DWARF_INFO], unit->first, bytes);
	if (cursor_left(&w->dies.c) < bytes)
		return -ENOEXEC;
	w->dies.c.end = w->dies.c.at + bytes;
	w->dies.base = w->dies.c.at;
	w->dies.base_at = unit->first;
	return 0;
}

static void index_shrink(void **array, size_t bytes)
{
	void *smaller = bytes ? realloc(*array, bytes) : NULL;

	if (smaller)
		*array = smaller;
}

int dwarfindex_build(struct dwarfindex *index, const struct dwarfunit *unit,
		     struct dwarflimit *limit)
{
	struct walk *w = calloc(1, sizeof(*w));
	int err;

	memset(index, 0, sizeof(*index));
	if (!w)
		return -ENOMEM;
	w->index = index;
	w->unit = unit;
	w->limit = limit;
	err = walk_begin(w);
	if (err == 0)
		err = walk_entries(w);
	if (err == 0)
		err = dwarfpieces_make(index, w->intervals, w->intervals_n, limit);
	dwarfabbrev_free(&w->abbrevs);
	free(w->sizes);
	free(w->intervals);
	free(w->buckets);
	free(w);
	index_shrink((void **)&index->pieces, index->pieces_n * sizeof(*index->pieces));
	index_shrink((void **)&index->sites, index->sites_n * sizeof(*index->sites));
	index_shrink((void **)&index->functions, index->functions_n * sizeof(*index->functions));
	index_shrink((void **)&index->scopes, index->scopes_n * sizeof(*index->scopes));
	index_shrink((void **)&index->scoped, index->scoped_n * sizeof(*index->scoped));
	return err;
}

void dwarfindex_free(struct dwarfindex *index)
{
	for (uint32_t i = 0; i < index->functions_n; i++)
		free(index->functions[i].name);
	free(index->pieces);
	free(index->sites);
	free(index->functions);
	free(index->scopes);
	free(index->scoped);
	memset(index, 0, sizeof(*index));
}

size_t dwarfindex_held(const struct dwarfindex *index)
{
	return index->pieces_n * sizeof(*index->pieces) + index->sites_n * sizeof(*index->sites) +
	       index->functions_n * sizeof(*index->functions) +
	       index->scopes_n * sizeof(*index->scopes) + index->scoped_n * sizeof(*index->scoped);
}

uint32_t dwarfindex_find(const struct dwarfindex *index, uint64_t address)
{
	uint32_t low = 0, high = index->pieces_n;

	if (address < index->base || address - index->base > UINT32_MAX)
		return DWARFINDEX_NONE;
	address -= index->base;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (index->pieces[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? index->pieces[low - 1].site : DWARFINDEX_NONE;
}

uint32_t dwarfindex_scope_of(const struct dwarfindex *index, uint64_t offset)
{
	uint32_t low = 0, high = index->scoped_n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (index->scoped[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < index->scoped_n && index->scoped[low].offset == offset
		   ? index->scoped[low].scope
		   : DWARFINDEX_NONE;
}
