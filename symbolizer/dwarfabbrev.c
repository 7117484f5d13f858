/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarfabbrev.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Code, tag and flag; an attribute: name, form, constant. ULEBs of 64 bits have 10 bytes. */
#define HEAD_BYTES_MAX	    32
#define ATTRIBUTE_BYTES_MAX 32

/* Reads on from one place, and keeps the cursor where there are bytes. */
struct abbrev_reader {
	struct dwarfbytes *section;
	uint64_t at;
	struct cursor c;
};

static void abbrev_ready(struct abbrev_reader *r, uint64_t need)
{
	if (cursor_left(&r->c) < need)
		r->c = dwarfbytes_cursor(r->section, r->at, need);
}

static void abbrev_done(struct abbrev_reader *r, const uint8_t *from)
{
	r->at += (uint64_t)(r->c.at - from);
}

/* False: the end of the table, or damage. */
static bool abbrev_head(struct abbrev_reader *r, struct dwarfabbrev *abbrev)
{
	const uint8_t *from;
	uint64_t tag;

	abbrev_ready(r, HEAD_BYTES_MAX);
	from = r->c.at;
	*abbrev = (struct dwarfabbrev){.code = cursor_uleb(&r->c)};
	if (abbrev->code == 0)
		return false;
	tag = cursor_uleb(&r->c);
	abbrev->tag = tag > UINT16_MAX ? 0 : (uint16_t)tag;
	abbrev->children = cursor_number(&r->c, 1);
	abbrev_done(r, from);
	return !r->c.bad;
}

/* False: the last one was before, or damage. */
static bool abbrev_attribute(struct abbrev_reader *r, struct dwarfattribute *attribute)
{
	uint64_t name, form;
	int64_t implicit = 0;
	const uint8_t *from;

	abbrev_ready(r, ATTRIBUTE_BYTES_MAX);
	from = r->c.at;
	name = cursor_uleb(&r->c);
	form = cursor_uleb(&r->c);
	if (form == DW_FORM_implicit_const)
		implicit = cursor_sleb(&r->c);
	abbrev_done(r, from);
	*attribute =
	    (struct dwarfattribute){name > UINT16_MAX ? 0 : (uint16_t)name,
				    form > UINT16_MAX ? 0 : (uint16_t)form, (int32_t)implicit};
	return !r->c.bad && (name || form);
}

static bool abbrev_grow(void **array, uint32_t n, size_t size)
{
	void *grown;

	/* At each power of two. */
	if (n & (n - 1) || (n && n < 64))
		return true;
	grown = realloc(*array, (n ? 2ul * n : 64) * size);
	if (!grown)
		return false;
	*array = grown;
	return true;
}

static int abbrev_attributes(struct dwarfabbrevs *table, struct abbrev_reader *r,
			     struct dwarfabbrev *abbrev)
{
	struct dwarfattribute attribute;

	abbrev->first = table->attributes_n;
	while (abbrev_attribute(r, &attribute)) {
		if (table->attributes_n >= DWARFABBREV_ATTRIBUTES_MAX ||
		    abbrev->attributes_n >= DWARFABBREV_OF_ONE_MAX)
			return -EFBIG;
		if (!abbrev_grow((void **)&table->attributes, table->attributes_n,
				 sizeof(attribute)))
			return -ENOMEM;
		table->attributes[table->attributes_n++] = attribute;
		abbrev->attributes_n++;
	}
	return r->c.bad ? -ENOEXEC : 0;
}

static int abbrev_compare(const void *a, const void *b)
{
	const struct dwarfabbrev *x = a, *y = b;

	return x->code < y->code ? -1 : x->code > y->code;
}

int dwarfabbrev_read(struct dwarfabbrevs *table, struct dwarfbytes *section, uint64_t at)
{
	struct abbrev_reader r = {section, at, cursor_over((const uint8_t *)"", 0)};
	struct dwarfabbrev abbrev;
	int err;

	memset(table, 0, sizeof(*table));
	table->dense = true;
	while (abbrev_head(&r, &abbrev)) {
		if (table->abbrevs_n >= DWARFABBREV_MAX)
			return -EFBIG;
		err = abbrev_attributes(table, &r, &abbrev);
		if (err)
			return err;
		if (!abbrev_grow((void **)&table->abbrevs, table->abbrevs_n, sizeof(abbrev)))
			return -ENOMEM;
		table->abbrevs[table->abbrevs_n++] = abbrev;
		table->dense = table->dense && abbrev.code == table->abbrevs_n;
	}
	if (!table->dense)
		qsort(table->abbrevs, table->abbrevs_n, sizeof(abbrev), abbrev_compare);
	return r.c.bad ? -ENOEXEC : 0;
}

void dwarfabbrev_free(struct dwarfabbrevs *table)
{
	free(table->abbrevs);
	free(table->attributes);
	memset(table, 0, sizeof(*table));
}

const struct dwarfabbrev *dwarfabbrev_get(const struct dwarfabbrevs *table, uint64_t code)
{
	const struct dwarfabbrev key = {.code = code};

	if (table->dense)
		return code - 1 < table->abbrevs_n ? &table->abbrevs[code - 1] : NULL;
	return bsearch(&key, table->abbrevs, table->abbrevs_n, sizeof(key), abbrev_compare);
}

bool dwarfabbrev_find(struct dwarfbytes *section, uint64_t at, uint64_t code,
		      struct dwarfabbrev *abbrev,
		      struct dwarfattribute attributes[DWARFABBREV_OF_ONE_MAX])
{
	struct abbrev_reader r = {section, at, cursor_over((const uint8_t *)"", 0)};
	struct dwarfattribute unused;
	uint32_t left = DWARFABBREV_LOOK_MAX;

	for (uint32_t i = 0; i < DWARFABBREV_MAX && abbrev_head(&r, abbrev); i++) {
		bool wanted = abbrev->code == code;
		uint16_t n = 0;

		while (left-- && n < DWARFABBREV_OF_ONE_MAX &&
		       abbrev_attribute(&r, wanted ? &attributes[n] : &unused))
			n++;
		abbrev->attributes_n = n;
		if (r.c.bad || !left || n == DWARFABBREV_OF_ONE_MAX)
			return false;
		if (wanted)
			return true;
	}
	return false;
}
