/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarfname.h"

#include <stdio.h>
#include <string.h>

#define CHAIN_MAX  8  /* an inlined function, its class's declaration; damage makes rings */
#define SCOPES_MAX 16 /* the innermost */

/* Where one of the entries on the way stands. */
struct place {
	struct dwarfunit unit;
	uint64_t offset;
};

/* Go to an entry of the same unit, or of another one, perhaps in the common file. */
static bool dwarfname_go(struct place *place, uint64_t offset, bool alt)
{
	struct dwarffile *file = alt ? place->unit.file->alt : place->unit.file;
	struct dwarfdie root;
	uint64_t unit;

	place->offset = offset;
	if (!alt && offset >= place->unit.first && offset < place->unit.end)
		return true;
	return file && dwarffile_unit_of(file, offset, &unit) &&
	       dwarfunit_open(&place->unit, file, unit) == 0 && dwarfunit_root(&place->unit, &root);
}

static bool dwarfname_next(struct place *place, const struct dwarfdie *die)
{
	const struct dwarfvalue *to = &die->value[ATTRIBUTE_ORIGIN];
	uint64_t offset;
	bool alt;

	if (!to->form)
		to = &die->value[ATTRIBUTE_SPECIFICATION];
	return dwarfunit_reference(&place->unit, to, &offset, &alt) &&
	       dwarfname_go(place, offset, alt);
}

static void dwarfname_append(char name[DWARFNAME_BYTES], const char *text, size_t n)
{
	size_t used = strlen(name);

	snprintf(name + used, DWARFNAME_BYTES - used, "%.*s", (int)n, text);
}

static bool dwarfname_text(const struct dwarfunit *unit, const struct dwarfvalue *value,
			   char name[DWARFNAME_BYTES])
{
	struct dwarfbytes *section;
	const char *text;
	uint64_t at;
	size_t n;

	if (!dwarfunit_text(unit, value, &section, &at))
		return false;
	text = dwarfbytes_string(section, at, &n);
	if (!text || n == 0)
		return false;
	dwarfname_append(name, text, n);
	return true;
}

/* Outermost first, each with "::" behind it. */
static void dwarfname_scopes(const struct dwarfindex *index, const struct dwarfunit *unit,
			     uint32_t scope, char name[DWARFNAME_BYTES])
{
	uint32_t scopes[SCOPES_MAX], n = 0;
	struct dwarfdie die;

	for (; scope != DWARFINDEX_NONE && n < SCOPES_MAX; scope = index->scopes[scope].parent)
		scopes[n++] = scope;
	while (n--) {
		if (!dwarfunit_die(unit, index->scopes[scopes[n]].offset, &die) ||
		    !dwarfname_text(unit, &die.value[ATTRIBUTE_NAME], name))
			dwarfname_append(name, "(anonymous)", DWARFNAME_BYTES);
		dwarfname_append(name, "::", 2);
	}
}

bool dwarfname_find(const struct dwarfindex *index, const struct dwarfunit *unit,
		    const struct dwarfindex_function *function, char name[DWARFNAME_BYTES],
		    uint32_t *start_line)
{
	struct place place = {*unit, 0};
	bool named = false, go;
	struct dwarfdie die;
	uint64_t line;

	name[0] = 0;
	*start_line = 0;
	go = dwarfname_go(&place, function->offset & ~DWARFINDEX_ALT,
			  function->offset & DWARFINDEX_ALT);
	for (int i = 0; go && i < CHAIN_MAX && dwarfunit_die(&place.unit, place.offset, &die);
	     i++) {
		line = die.value[ATTRIBUTE_DECL_LINE].number;
		if (*start_line == 0 && line <= UINT32_MAX)
			*start_line = (uint32_t)line;
		if (die.value[ATTRIBUTE_LINKAGE_NAME].form) {
			name[0] = 0;
			if (dwarfname_text(&place.unit, &die.value[ATTRIBUTE_LINKAGE_NAME], name))
				return true;
		}
		if (!named && die.value[ATTRIBUTE_NAME].form) {
			if (place.unit.file == unit->file && place.unit.offset == unit->offset)
				dwarfname_scopes(index, unit,
						 dwarfindex_scope_of(index, place.offset), name);
			named = dwarfname_text(&place.unit, &die.value[ATTRIBUTE_NAME], name);
		}
		go = dwarfname_next(&place, &die);
	}
	return named;
}
