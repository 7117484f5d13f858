/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/codegaps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/codeconfirm.h"
#include "symbolizer/codeflow.h"
#include "symbolizer/codetry.h"
#include "symbolizer/elfparts.h"

#define CODEGAPS_SECTIONS_MAX 256
/* Code with information that is searched for calls into the gaps. */
#define CODEGAPS_SEARCH_MAX	 (16u << 20)
#define CODEGAPS_SEARCH_PER_BYTE 256 /* of the gaps */
#define CODEGAPS_CALL_BYTES	 5
#define CODEGAPS_ENTRY_BYTES	 64
/* Fewer in the gaps are those of start-up files: the rest was stripped. */
#define CODEGAPS_SYMBOLS_FEW 16

/* Where sections lie that hold code; without section headers it may be anywhere. */
struct codegaps_sections {
	struct codegaps_range ranges[CODEGAPS_SECTIONS_MAX];
	uint32_t n;
};

static void codegaps_read_sections(struct elffile *file, struct codegaps_sections *sections)
{
	GElf_Shdr header;

	for (Elf_Scn *s = elf_nextscn(file->elf, NULL); s && sections->n < CODEGAPS_SECTIONS_MAX;
	     s = elf_nextscn(file->elf, s))
		if (gelf_getshdr(s, &header) && (header.sh_flags & SHF_EXECINSTR) &&
		    header.sh_type == SHT_PROGBITS)
			sections->ranges[sections->n++] =
			    (struct codegaps_range){header.sh_offset, header.sh_size};
}

/* The first part of a gap, from offset on, that a section of code has. False: none. */
static bool codegaps_cut(const struct codegaps_sections *sections, struct codegaps_range *gap)
{
	uint64_t end = gap->offset + gap->bytes, from = end, to = end;

	if (sections->n == 0)
		return gap->bytes > 0;
	for (uint32_t i = 0; i < sections->n; i++) {
		const struct codegaps_range *s = &sections->ranges[i];
		uint64_t start = s->offset > gap->offset ? s->offset : gap->offset;

		if (s->bytes > UINT64_MAX - s->offset || s->offset + s->bytes <= start ||
		    start >= from)
			continue;
		from = start;
		to = s->offset + s->bytes < end ? s->offset + s->bytes : end;
	}
	*gap = (struct codegaps_range){from, to - from};
	return from < end;
}

static void codegaps_add(struct codegaps *gaps, const struct codegaps_range *range)
{
	const struct elffile_segment *segment =
	    elffile_find_segment(gaps->file->segments, gaps->file->segments_n, range->offset);
	struct codegraph_area area = {.n = (uint32_t)range->bytes};
	const struct codegraph_area *last = gaps->areas_n ? &gaps->areas[gaps->areas_n - 1] : NULL;

	if (!segment || range->bytes > CODEGRAPH_BYTES_MAX || gaps->areas_n == CODEGRAPH_AREAS_MAX)
		return;
	area.vaddr = segment->vaddr + (range->offset - segment->offset);
	/* By the order of offsets is by the order of addresses, in a file that a linker wrote. */
	if (last && area.vaddr < last->vaddr + last->n)
		return;
	gaps->offsets[gaps->areas_n] = range->offset;
	gaps->areas[gaps->areas_n++] = area;
}

static void codegaps_add_all(struct codegaps *gaps, const struct codegaps_range *ranges,
			     uint32_t ranges_n)
{
	struct codegaps_sections sections = {.n = 0};

	codegaps_read_sections(gaps->file, &sections);
	for (uint32_t i = 0; i < ranges_n; i++) {
		uint64_t end = ranges[i].offset + ranges[i].bytes;
		struct codegaps_range part = ranges[i];

		while (codegaps_cut(&sections, &part)) {
			codegaps_add(gaps, &part);
			part.offset += part.bytes;
			part.bytes = end - part.offset;
		}
	}
}

static bool codegaps_is_worth_it(const struct codegaps *gaps)
{
	uint64_t bytes = 0, text = 0;

	for (uint32_t i = 0; i < gaps->file->segments_n; i++)
		text += gaps->file->segments[i].bytes;
	for (uint32_t i = 0; i < gaps->areas_n; i++)
		if (gaps->areas[i].n >= CODEGAPS_CODE_BYTES)
			bytes += gaps->areas[i].n;
	return bytes >= CODEGAPS_WORTH_BYTES && bytes >= text / CODEGAPS_WORTH_SHARE;
}

/* Read the code; areas that cannot be read go. */
static void codegaps_load(struct codegaps *gaps)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < gaps->areas_n; i++) {
		gaps->areas[i].bytes =
		    elffile_bytes(gaps->file, gaps->offsets[i], gaps->areas[i].n);
		if (!gaps->areas[i].bytes)
			continue;
		gaps->offsets[kept] = gaps->offsets[i];
		gaps->areas[kept++] = gaps->areas[i];
	}
	gaps->areas_n = kept;
}

/* The cold half of a function is none: it begins with the stack of the other half. */
static bool codegaps_is_cold(const struct elffile_symbol *symbol)
{
	static const char cold[] = ".cold";

	return memmem(symbol->name, symbol->name_bytes, cold, sizeof(cold) - 1) != NULL;
}

static void codegaps_symbol(void *arg, const struct elffile_symbol *symbol)
{
	struct codegaps *gaps = arg;

	if (symbol->type == STT_NOTYPE || codegaps_is_cold(symbol) ||
	    !codegraph_find(&gaps->graph, symbol->value))
		return;
	gaps->symbols++;
	codeflow_prove(&gaps->graph, symbol->value);
}

/* Instructions from the beginning of a function to `at`: whether one begins there. */
static bool codegaps_reads_to(const uint8_t *code, uint64_t n, uint64_t *from, uint64_t at)
{
	struct x86_insn insn;

	while (*from < at && x86_decode(code + *from, n - *from, *from, &insn))
		*from += insn.length;
	return *from == at;
}

/* The calls of one function that has information. */
static void codegaps_search(struct codegaps *gaps, const struct codegaps_range *range,
			    const uint8_t *code)
{
	const struct elffile_segment *segment =
	    elffile_find_segment(gaps->file->segments, gaps->file->segments_n, range->offset);
	uint64_t n = range->bytes, read = 0, vaddr;
	int32_t distance;

	if (!segment || n < CODEGAPS_CALL_BYTES)
		return;
	vaddr = segment->vaddr + (range->offset - segment->offset);
	for (uint64_t at = 0; at + CODEGAPS_CALL_BYTES <= n; at++) {
		const uint8_t *call = memchr(code + at, 0xe8, n - CODEGAPS_CALL_BYTES + 1 - at);
		uint64_t target;

		if (!call)
			return;
		at = (uint64_t)(call - code);
		memcpy(&distance, call + 1, sizeof(distance));
		target = vaddr + at + CODEGAPS_CALL_BYTES + (uint64_t)(int64_t)distance;
		if (codegraph_find(&gaps->graph, target) && codegaps_reads_to(code, n, &read, at))
			codeflow_prove(&gaps->graph, target);
	}
}

static void codegaps_search_all(struct codegaps *gaps, codegaps_next_fn *covered, void *arg)
{
	uint64_t left = (uint64_t)CODEGAPS_SEARCH_PER_BYTE * gaps->graph.map_n;
	struct codegaps_range range;
	const uint8_t *code;

	left = left < CODEGAPS_SEARCH_MAX ? left : CODEGAPS_SEARCH_MAX;
	while (covered(arg, &range) && range.bytes <= left) {
		left -= range.bytes;
		code = elffile_bytes(gaps->file, range.offset, range.bytes);
		if (code)
			codegaps_search(gaps, &range, code);
	}
}

/* The first instructions of the program; a form that is known (cfifill.h) is in no gap. */
static void codegaps_entry(struct codegaps *gaps)
{
	struct codegaps_range range = {.bytes = CODEGAPS_ENTRY_BYTES};
	GElf_Ehdr header;
	const uint8_t *code;

	if (!gelf_getehdr(gaps->file->elf, &header))
		return;
	codeflow_enter(&gaps->graph, header.e_entry);
	if (!elfparts_entry(gaps->file, &range.offset))
		return;
	code = elffile_bytes(gaps->file, range.offset, range.bytes);
	if (code)
		codegaps_search(gaps, &range, code);
}

static const uint8_t *codegaps_data(void *arg, uint64_t vaddr, uint64_t bytes)
{
	struct codegaps *gaps = arg;

	return elfparts_data(gaps->file, vaddr, bytes);
}

static int codegaps_analyse(struct codegaps *gaps, codegaps_next_fn *covered, void *arg)
{
	int err;

	codegaps_load(gaps);
	err = codegraph_open(&gaps->graph, gaps->areas, gaps->areas_n, codegaps_data, gaps);
	if (err)
		return err;
	codegaps_entry(gaps);
	elffile_symbols(gaps->file, true, codegaps_symbol, gaps);
	gaps->symbols = 0;
	elffile_symbols(gaps->file, false, codegaps_symbol, gaps);
	if (gaps->symbols < CODEGAPS_SYMBOLS_FEW)
		codegaps_search_all(gaps, covered, arg);
	codeflow_run(&gaps->graph);
	codetry_all(&gaps->graph);
	codeconfirm_all(&gaps->graph);
	return gaps->graph.err;
}

struct codegaps *codegaps_open(struct elffile *file, const struct codegaps_range *ranges,
			       uint32_t ranges_n, codegaps_next_fn *covered, void *arg, int *err)
{
	struct codegaps *gaps;

	*err = 0;
	gaps = calloc(1, sizeof(*gaps));
	if (!gaps) {
		*err = -ENOMEM;
		return NULL;
	}
	gaps->file = file;
	codegaps_add_all(gaps, ranges, ranges_n);
	/* What is too large for us stays without rules. */
	if (codegaps_is_worth_it(gaps) && (*err = codegaps_analyse(gaps, covered, arg)) == 0 &&
	    coderows_any(&gaps->graph))
		return gaps;
	codegaps_close(gaps);
	*err = *err == -EFBIG ? 0 : *err;
	return NULL;
}

void codegaps_close(struct codegaps *gaps)
{
	if (gaps)
		codegraph_close(&gaps->graph);
	free(gaps);
}

struct codegaps_range codegaps_area(const struct codegaps *gaps, uint32_t i)
{
	return (struct codegaps_range){gaps->offsets[i], gaps->areas[i].n};
}

void codegaps_rows(const struct codegaps *gaps, uint32_t i, coderows_fn *fn, void *arg)
{
	coderows_area(&gaps->graph, i, fn, arg);
}
