/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/goinline.h"

#include <string.h>

#include "symbolizer/elfparts.h"
#include "symbolizer/gomodule.h"

#define GOINLINE_CALLS_MAX 65536 /* of one function; parents are of 16 bits up to Go 1.19 */
/* What has to make sense before a way is believed, and among how many functions that is looked for.
 */
#define GOINLINE_PROOFS	     16
#define GOINLINE_PROOFS_MIN  4
#define GOINLINE_PROOFS_LOOK 1024
#define GOINLINE_STEPS_LOOK  1024 /* of one function */

struct goinline_way {
	uint32_t magic;
	uint8_t pcdata, funcdata; /* which of a function's further numbers, and of its parts */
	uint8_t call_bytes;
};

/* runtime/symtab.go: _PCDATA_InlTreeIndex, _FUNCDATA_InlTree and inlinedCall of each release. */
static const struct goinline_way ways[] = {
    {PCLNTAB_1_2, 2, 4, 20}, /* 1.13 to 1.15 */
    {PCLNTAB_1_2, 1, 2, 20}, /* 1.12 */
    {PCLNTAB_1_2, 1, 2, 16}, /* 1.9 to 1.11 */
    {PCLNTAB_1_16, 2, 3, 20}, {PCLNTAB_1_18, 2, 3, 20}, {PCLNTAB_1_20, 2, 3, 16},
};

/* A call that is no longer there. */
struct goinline_call {
	const char *name;    /* of the function that was called */
	uint32_t start_line; /* of it; 0 = not known */
	/* Who calls: since 1.20 that is told by another place of the function, before by these. */
	uint64_t place;
	int32_t parent, file, line;
};

static int32_t goinline_number(const uint8_t *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* Names have no control characters; since 1.16 they stand one behind the other. */
static const char *goinline_name(const struct pclntab *tab, int32_t offset)
{
	const uint8_t *before;
	const char *name;

	if (offset < 0)
		return NULL;
	name = pclntab_text(tab, tab->names + (uint32_t)offset);
	if (!name || !name[0])
		return NULL;
	if (tab->magic != PCLNTAB_1_2 && offset > 0) {
		before = pclntab_bytes(tab, tab->names + (uint32_t)offset - 1, 1);
		if (!before || *before)
			return NULL;
	}
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < ' ')
			return NULL;
	return name;
}

/* Zeros are no call: its line is at least 1. */
static bool goinline_understand(const struct goinline *inl, const struct pclntab_function *function,
				const uint8_t *bytes, struct goinline_call *call)
{
	const struct pclntab *tab = inl->tab;

	memset(call, 0, sizeof(*call));
	if (tab->magic == PCLNTAB_1_20) {
		call->name = goinline_name(tab, goinline_number(bytes + 4));
		call->place = (uint32_t)goinline_number(bytes + 8);
		call->start_line = (uint32_t)goinline_number(bytes + 12);
		return call->name && call->place < function->end - function->start &&
		       call->start_line && call->start_line <= INT32_MAX && !bytes[1] &&
		       !bytes[2] && !bytes[3];
	}
	/* Of 32 bits up to 1.11, of 16 and two other bytes from then on: it is small. */
	call->parent = (int16_t)goinline_number(bytes);
	call->file = goinline_number(bytes + 4);
	call->line = goinline_number(bytes + 8);
	call->name = goinline_name(tab, goinline_number(bytes + 12));
	return call->name && call->parent >= -1 && call->line > 0 &&
	       pclntab_file(tab, function, call->file) &&
	       (inl->way->call_bytes < 20 ||
		(uint32_t)goinline_number(bytes + 16) < function->end - function->start);
}

static bool goinline_call(const struct goinline *inl, const struct pclntab_function *function,
			  int32_t index, struct goinline_call *call)
{
	uint64_t at, n = inl->way->call_bytes;
	const uint8_t *bytes;

	if (index < 0 || index >= GOINLINE_CALLS_MAX ||
	    !pclntab_funcdata(inl->tab, function, inl->way->funcdata, &at))
		return false;
	at += inl->parts - inl->data.vaddr;
	if (at > inl->data.bytes || inl->data.bytes - at < n * ((uint32_t)index + 1))
		return false;
	bytes = window_bytes(inl->tab->window, inl->data.offset + at + n * (uint32_t)index, n);
	return bytes && goinline_understand(inl, function, bytes, call);
}

/* Whether all calls of a function make sense. */
static bool goinline_makes_sense(const struct goinline *inl,
				 const struct pclntab_function *function, uint32_t steps_at)
{
	struct pclntab_function numbers = *function;
	struct goinline_call call;
	struct pclntab_steps steps;
	unsigned n = 0;

	numbers.steps = steps_at;
	pclntab_begin(inl->tab, &numbers, &steps);
	while (pclntab_next(&steps) && n++ < GOINLINE_STEPS_LOOK)
		if (steps.moved < -1 ||
		    (steps.moved >= 0 &&
		     !goinline_call(inl, function, (int32_t)steps.moved, &call)))
			return false;
	return true;
}

/* Where the first list of all is: they lie together. */
static bool goinline_place(struct goinline *inl, const struct pclntab_function *function,
			   struct elffile *file)
{
	uint64_t at;

	return inl->data.bytes || (pclntab_funcdata(inl->tab, function, inl->way->funcdata, &at) &&
				   elfparts_loaded(file, inl->parts + at, &inl->data));
}

static bool goinline_prove(struct goinline *inl, struct elffile *file)
{
	struct pclntab_function function;
	unsigned proofs = 0;
	uint32_t steps_at;

	memset(&inl->data, 0, sizeof(inl->data));
	for (uint32_t i = 0; i < inl->tab->functions && i < GOINLINE_PROOFS_LOOK; i++) {
		if (!pclntab_function(inl->tab, i, &function))
			continue;
		steps_at = pclntab_pcdata(inl->tab, &function, inl->way->pcdata);
		if (!steps_at || inl->way->funcdata >= function.funcdata_n)
			continue;
		if (!goinline_place(inl, &function, file) ||
		    !goinline_makes_sense(inl, &function, steps_at))
			return false;
		if (++proofs == GOINLINE_PROOFS)
			break;
	}
	return proofs >= GOINLINE_PROOFS_MIN;
}

void goinline_open(struct goinline *inl, const struct pclntab *tab, struct elffile *file)
{
	uint64_t parts[GOMODULE_PARTS] = {0};
	size_t parts_n = 1;

	memset(inl, 0, sizeof(*inl));
	inl->tab = tab;
	if (tab->entry_bytes == 4) {
		if (!gomodule_find(file, tab, parts))
			return;
		parts_n = GOMODULE_PARTS;
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		for (size_t k = 0; ways[i].magic == tab->magic && k < parts_n; k++) {
			inl->way = &ways[i];
			inl->parts = parts[k];
			if (goinline_prove(inl, file))
				return;
		}
	inl->way = NULL;
}

static void goinline_source(const struct pclntab *tab, const struct pclntab_function *function,
			    uint64_t vaddr, struct line *line)
{
	int32_t number = pclntab_value(tab, function, function->line_steps, vaddr);

	line->file =
	    pclntab_file(tab, function, pclntab_value(tab, function, function->file_steps, vaddr));
	line->line = number > 0 && line->file ? (uint32_t)number : 0;
}

/* From the inside to the outside. False when one of the calls makes no sense: then none is
 * believed.
 */
static bool goinline_chain(const struct goinline *inl, const struct pclntab_function *function,
			   uint64_t vaddr, struct line *source, struct lines *lines)
{
	uint32_t steps_at = pclntab_pcdata(inl->tab, function, inl->way->pcdata);
	int32_t index = steps_at ? pclntab_value(inl->tab, function, steps_at, vaddr) : -1;
	struct goinline_call call;

	while (index >= 0) {
		if (lines->n == SYMBOL_LINES_MAX - 1 || !goinline_call(inl, function, index, &call))
			return false;
		source->name = call.name;
		source->start_line = call.start_line;
		lines->line[lines->n++] = *source;
		if (inl->tab->magic == PCLNTAB_1_20) {
			goinline_source(inl->tab, function, function->start + call.place, source);
			index = pclntab_value(inl->tab, function, steps_at,
					      function->start + call.place);
		} else {
			source->file = pclntab_file(inl->tab, function, call.file);
			source->line = (uint32_t)call.line;
			index = call.parent;
		}
	}
	return true;
}

void goinline_lines(const struct goinline *inl, const struct pclntab_function *function,
		    uint64_t vaddr, struct lines *lines)
{
	struct line here = {0}, source;

	goinline_source(inl->tab, function, vaddr, &here);
	source = here;
	lines->n = 0;
	if (inl->way && !goinline_chain(inl, function, vaddr, &source, lines)) {
		source = here;
		lines->n = 0;
	}
	source.name = function->name;
	source.start_line = function->start_line <= INT32_MAX ? function->start_line : 0;
	lines->line[lines->n++] = source;
}
