/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First all functions (FDEs) are listed by file offset, then they are run in that order, so that
 * the table grows at its end alone; what no function has is listed as code. The section is read
 * twice, and each time it is parsed as if it were new: a file may change under us.
 */
#include "symbolizer/ehframe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/cfi.h"
#include "symbolizer/cfifill.h"
#include "symbolizer/cfirule.h"
#include "symbolizer/codegaps.h"
#include "symbolizer/ehreturn.h"
#include "symbolizer/elfparts.h"
#include "symbolizer/gotable.h"
#include "symbolizer/tablebuild.h"
#include "symbolizer/textmap.h"

/* With fewer functions .eh_frame is what the start-up files brought; look at .debug_frame too. */
#define EHFRAME_NEARLY_EMPTY 8
/* A shorter gap between functions is padding. It gets no row of its own. */
#define EHFRAME_GAP_BYTES 15

static const struct table_rule invalid = {.cfa = RULE_INVALID};

enum ehframe_source {
	SOURCE_EH_FRAME,
	SOURCE_DEBUG_FRAME,
	SOURCES,
	SOURCE_FILL = SOURCES,
	SOURCE_GO,
	SOURCE_CODE, /* the rest, if it is more than padding */
};

struct ehframe {
	struct elffile *file;
	struct cfi_section sections[SOURCES];
	struct textmap map; /* at: in the section, in the fills, in Go's table, of the gaps */
	struct cfifills fills;
	struct gotable go;
	struct codegaps *gaps; /* NULL: none that matter */
	struct tablebuild build;
	bool rbx, rbx_needed; /* rules follow it; there is one that counts from it */
	/* While a function is run: where it begins, and the part of the file that is its own. */
	const struct cfi_fde *fde;
	struct ehreturn ehreturn;
	struct table_rule last; /* of the note, from last_vaddr on */
	uint64_t last_vaddr;
	uint64_t offset, from, to;
	uint64_t go_start, code_start;
};

/* A way through the functions that have information. */
struct ehframe_functions {
	const struct textmap *map;
	uint32_t i;
};

/* A signal frame is looked up one byte before its start, as the return address of the handler. Some
 * libraries begin their note there themselves, others do not. */
static bool ehframe_needs_lead(struct ehframe *e, uint64_t offset)
{
	const uint8_t *code = elffile_bytes(e->file, offset, CFIFILL_SIGRETURN_BYTES);

	return offset > 0 && code && cfifill_is_sigreturn(code);
}

static int ehframe_add_fde(struct ehframe *e, const struct cfi_fde *fde, enum ehframe_source source,
			   size_t at)
{
	struct textmap_range range = {
	    .bytes = fde->end - fde->start, .at = (uint32_t)at, .source = source};

	if (!elfparts_code(e->file, fde->start, &range.offset))
		return 0;
	/* Functions that the linker dropped keep a note that says address 0: the file's header. */
	if (range.offset == 0)
		return 0;
	range.lead = fde->cie.signal && ehframe_needs_lead(e, range.offset);
	return textmap_add(&e->map, range);
}

static int ehframe_list(struct ehframe *e, enum ehframe_source source)
{
	struct cfi_fde fde;
	size_t at = 0, next = 0;
	int got, err = 0;

	memset(&fde, 0, sizeof(fde));
	while (err == 0 && (got = cfi_read(&e->sections[source], &next, &fde)) >= 0) {
		if (got == 1)
			err = ehframe_add_fde(e, &fde, source, at);
		at = next;
	}
	return err;
}

/* Without section headers the section's end is not known, but its terminator is. */
static void ehframe_cut(struct cfi_section *section)
{
	struct cfi_fde fde;
	size_t next = 0, at;

	memset(&fde, 0, sizeof(fde));
	do
		at = next;
	while (cfi_read(section, &next, &fde) >= 0 && next - at > 4);
	section->size = at;
}

static int ehframe_list_go(struct ehframe *e)
{
	struct pclntab_function function;
	uint64_t end = 0;
	int err = 0;

	for (uint32_t i = 0; i < e->go.tab.functions && err == 0; i++) {
		struct textmap_range range = {.at = i, .source = SOURCE_GO};

		/* Those that overlap, or stand in no order, would cost more than their bytes. */
		if (!pclntab_function(&e->go.tab, i, &function) || function.start < end ||
		    !elfparts_code(e->file, function.start, &range.offset))
			continue;
		end = function.end;
		range.bytes = function.end - function.start;
		range.lead = range.offset > 0 && gotable_is_sigreturn(&e->go, &function);
		err = textmap_add(&e->map, range);
	}
	return err;
}

static int ehframe_read(struct ehframe *e)
{
	struct cfi_section *eh = &e->sections[SOURCE_EH_FRAME];
	struct cfi_section *debug = &e->sections[SOURCE_DEBUG_FRAME];
	GElf_Shdr header;
	int err = elfparts_section(e->file, ".eh_frame", &header, &eh->bytes);

	if (err == 0) {
		eh->size = header.sh_size;
		eh->vaddr = header.sh_addr;
	} else if (elfparts_eh_frame(e->file, &eh->vaddr, &eh->size, &eh->bytes) == 0) {
		ehframe_cut(eh);
	}
	err = eh->bytes ? ehframe_list(e, SOURCE_EH_FRAME) : 0;
	/* What Go's linker writes into .debug_frame leaves out where the frame pointer is. */
	if (err == 0 && (err = gotable_open(&e->go, e->file)) != -ENOENT)
		return err ? err : ehframe_list_go(e);
	err = 0;
	if (e->map.ranges_n >= EHFRAME_NEARLY_EMPTY ||
	    elfparts_section(e->file, ".debug_frame", &header, &debug->bytes))
		return err;
	debug->size = header.sh_size;
	debug->debug = true;
	return ehframe_list(e, SOURCE_DEBUG_FRAME);
}

/* The first gap of a segment behind *at, which moves on to its end. False: there are no more. */
static bool ehframe_next_gap(const struct textmap *map, const struct elffile_segment *s,
			     uint64_t *at, struct codegaps_range *gap)
{
	uint64_t end = s->offset + s->bytes;

	for (uint32_t k = textmap_find(map, *at); *at < end; k++) {
		bool last = k >= map->sorted_n || map->ranges[k].offset >= end;
		uint64_t to = last ? end : map->ranges[k].offset;

		*gap = (struct codegaps_range){*at, to > *at ? to - *at : 0};
		if (last)
			*at = end;
		else if (textmap_end(&map->ranges[k]) > *at)
			*at = textmap_end(&map->ranges[k]);
		if (gap->bytes >= EHFRAME_GAP_BYTES)
			return true;
	}
	return false;
}

static void ehframe_scan_gaps(struct ehframe *e)
{
	struct codegaps_range gap;

	for (uint32_t i = 0; i < e->map.segments_n; i++) {
		uint64_t at = e->map.segments[i].offset;

		while (ehframe_next_gap(&e->map, &e->map.segments[i], &at, &gap))
			cfifill_scan(e->file, gap.offset, gap.offset + gap.bytes, &e->fills);
	}
}

/* What has no note but is known by its form, where no function has it already. */
static int ehframe_fill(struct ehframe *e)
{
	int err = 0;

	cfifill_entry(e->file, &e->fills);
	cfifill_plt(e->file, &e->fills);
	ehframe_scan_gaps(e);
	for (uint32_t i = 0; i < e->fills.n && err == 0; i++) {
		const struct cfifill *f = &e->fills.fills[i];
		/* The byte before a signal frame may be another's: it is padding. */
		uint64_t start = f->offset + (f->rule.cfa == RULE_SIGNAL);

		if (textmap_is_free(&e->map, start, f->offset + f->bytes))
			err = textmap_add(&e->map, (struct textmap_range){.offset = f->offset,
									  .bytes = f->bytes,
									  .at = i,
									  .source = SOURCE_FILL});
	}
	textmap_sort(&e->map);
	return err;
}

static bool ehframe_next_function(void *arg, struct codegaps_range *range)
{
	struct ehframe_functions *f = arg;

	while (f->i < f->map->sorted_n) {
		const struct textmap_range *r = &f->map->ranges[f->i++];

		*range = (struct codegaps_range){r->offset + r->lead, r->bytes - r->lead};
		if (r->source < SOURCES)
			return true;
	}
	return false;
}

/* Gaps in which more than padding stands: what their code itself says. */
static int ehframe_follow_code(struct ehframe *e)
{
	struct ehframe_functions functions = {.map = &e->map};
	/* What does not fit is left out. */
	struct codegaps_range *gaps = calloc(CODEGRAPH_AREAS_MAX, sizeof(*gaps));
	uint32_t n = 0;
	int err;

	if (!gaps)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->map.segments_n; i++) {
		uint64_t at = e->map.segments[i].offset;

		while (n < CODEGRAPH_AREAS_MAX &&
		       ehframe_next_gap(&e->map, &e->map.segments[i], &at, &gaps[n]))
			n++;
	}
	e->gaps = codegaps_open(e->file, gaps, n, ehframe_next_function, &functions, &err);
	free(gaps);
	for (uint32_t i = 0; e->gaps && i < e->gaps->areas_n && err == 0; i++) {
		struct codegaps_range area = codegaps_area(e->gaps, i);

		err = textmap_add(&e->map, (struct textmap_range){.offset = area.offset,
								  .bytes = area.bytes,
								  .at = i,
								  .source = SOURCE_CODE});
	}
	textmap_sort(&e->map);
	return err;
}

static void ehframe_add(struct ehframe *e, uint64_t vaddr, struct table_rule rule)
{
	uint64_t offset = e->offset + (vaddr - e->fde->start);

	ehreturn_correct(&e->ehreturn, vaddr, &rule);
	if (vaddr == e->fde->start || offset < e->from)
		offset = e->from;
	if (offset < e->to)
		tablebuild_add(&e->build, offset, &rule);
}

/* Rows that the note has not, behind the last one that was run and before this address. */
static void ehframe_edges(struct ehframe *e, uint64_t vaddr)
{
	for (size_t i = 0; i < EHRETURN_EDGES; i++)
		if (e->ehreturn.edges[i] > e->last_vaddr && e->ehreturn.edges[i] < vaddr)
			ehframe_add(e, e->ehreturn.edges[i], e->last);
}

static void ehframe_row(void *arg, uint64_t vaddr, const struct cfi_row *row)
{
	struct ehframe *e = arg;
	struct table_rule rule = row ? cfirule_make(row, e->fde->cie.signal, e->rbx) : invalid;

	e->rbx_needed |= rule.cfa == RULE_REGISTER && rule.cfa_register == RULE_RBX;
	ehframe_edges(e, vaddr);
	e->last = rule;
	e->last_vaddr = vaddr;
	ehframe_add(e, vaddr, rule);
}

static void ehframe_run_fde(struct ehframe *e, const struct cfi_section *section,
			    const struct cfi_fde *fde)
{
	size_t bytes = (size_t)(fde->end - fde->start);
	const uint8_t *code =
	    ehreturn_may_be(fde) ? elffile_bytes(e->file, e->offset, bytes) : NULL;

	e->fde = fde;
	e->last_vaddr = fde->end;
	memset(&e->ehreturn, 0, sizeof(e->ehreturn));
	if (code)
		ehreturn_find(fde, code, bytes, &e->ehreturn);
	cfi_run(section, fde, ehframe_row, e);
	ehframe_edges(e, fde->end);
}

static void ehframe_go_row(void *arg, uint64_t vaddr, const struct table_rule *rule)
{
	struct ehframe *e = arg;
	uint64_t offset = e->offset + (vaddr - e->go_start);

	if (vaddr == e->go_start || offset < e->from)
		offset = e->from;
	if (offset < e->to)
		tablebuild_add(&e->build, offset, rule);
}

static void ehframe_run_go(struct ehframe *e, const struct textmap_range *range)
{
	struct pclntab_function function;

	tablebuild_add(&e->build, e->from, &invalid);
	if (!pclntab_function(&e->go.tab, range->at, &function))
		return;
	e->go_start = function.start;
	e->offset = range->offset + range->lead;
	gotable_run(&e->go, &function, ehframe_go_row, e);
}

static void ehframe_code_row(void *arg, uint64_t vaddr, const struct table_rule *rule)
{
	struct ehframe *e = arg;
	uint64_t offset = e->offset + (vaddr - e->code_start);

	if (offset < e->from)
		offset = e->from;
	if (offset < e->to)
		tablebuild_add(&e->build, offset, rule);
}

static void ehframe_run_code(struct ehframe *e, const struct textmap_range *range)
{
	e->offset = range->offset;
	e->code_start = e->gaps->areas[range->at].vaddr;
	codegaps_rows(e->gaps, range->at, ehframe_code_row, e);
}

/* The rows of one range, which has the file from `from` up to `to` to itself. */
static void ehframe_run(struct ehframe *e, const struct textmap_range *range, struct cfi_fde *fde)
{
	size_t at = range->at;

	if (range->source == SOURCE_FILL) {
		tablebuild_add(&e->build, e->from, &e->fills.fills[range->at].rule);
		return;
	}
	if (range->source == SOURCE_GO) {
		ehframe_run_go(e, range);
		return;
	}
	if (range->source == SOURCE_CODE) {
		ehframe_run_code(e, range);
		return;
	}
	tablebuild_add(&e->build, e->from, &invalid);
	if (cfi_read(&e->sections[range->source], &at, fde) != 1)
		return;
	e->offset = range->offset + range->lead;
	ehframe_run_fde(e, &e->sections[range->source], fde);
}

static uint32_t ehframe_build_segment(struct ehframe *e, const struct elffile_segment *s,
				      uint32_t i)
{
	uint64_t covered = s->offset, end = s->offset + s->bytes;
	struct cfi_fde fdes[SOURCE_CODE + 1];

	memset(fdes, 0, sizeof(fdes));
	for (; i < e->map.ranges_n && e->map.ranges[i].offset < end; i++) {
		const struct textmap_range *range = &e->map.ranges[i];
		uint64_t next = i + 1 < e->map.ranges_n ? range[1].offset : end;

		e->from = range->offset > covered ? range->offset : covered;
		e->to = textmap_end(range) < next ? textmap_end(range) : next;
		if (e->from >= e->to)
			continue;
		if (covered == s->offset || e->from - covered >= EHFRAME_GAP_BYTES)
			tablebuild_add(&e->build, covered, &invalid);
		ehframe_run(e, range, &fdes[range->source]);
		covered = e->to;
	}
	if (covered == s->offset || end - covered >= EHFRAME_GAP_BYTES)
		tablebuild_add(&e->build, covered, &invalid);
	return i;
}

static int ehframe_build(struct ehframe *e)
{
	const struct textmap *map = &e->map;
	const struct elffile_segment *last = &map->segments[map->segments_n - 1], *s;
	uint32_t range = 0;
	int err = tablebuild_init(&e->build, map->segments[0].offset, last->offset + last->bytes);

	for (s = map->segments; err == 0 && s <= last; s++) {
		range = ehframe_build_segment(e, s, range);
		if (s < last)
			tablebuild_add(&e->build, s->offset + s->bytes, &invalid);
	}
	return err ? err : e->build.err;
}

static int ehframe_compile_with(struct ehframe *e, uint32_t file_id, struct table_header **table,
				size_t *bytes)
{
	GElf_Ehdr header;
	int err;

	if (!gelf_getehdr(e->file->elf, &header) || header.e_machine != EM_X86_64)
		return -ENOTSUP;
	err = textmap_init(&e->map, e->file);
	if (err == 0)
		err = ehframe_read(e);
	if (err)
		return err;
	textmap_sort(&e->map);
	err = ehframe_fill(e);
	if (err == 0)
		err = ehframe_follow_code(e);
	if (err == 0 && e->map.ranges_n == 0)
		err = -ENOENT;
	if (err == 0)
		err = ehframe_build(e);
	if (err == 0 && e->rbx_needed) {
		e->rbx = true;
		tablebuild_fini(&e->build);
		err = ehframe_build(e);
	}
	return err ? err : tablebuild_finish(&e->build, file_id, table, bytes);
}

int ehframe_compile(struct elffile *file, uint32_t file_id, struct table_header **table,
		    size_t *bytes)
{
	struct ehframe *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	e->file = file;
	err = ehframe_compile_with(e, file_id, table, bytes);
	tablebuild_fini(&e->build);
	codegaps_close(e->gaps);
	textmap_fini(&e->map);
	free(e);
	return err;
}
