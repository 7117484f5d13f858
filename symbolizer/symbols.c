/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/symbols.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/debugdata.h"

/* A symbol as the file has it, and later as a function of the index. */
struct raw {
	uint64_t start, end; /* end 0 = no size */
	const char *name;    /* in the file's image */
	uint32_t name_bytes;
	uint8_t rank;	 /* smaller is better */
	bool label;	 /* untyped */
	uint32_t stored; /* offset in the arena + 1, once it is there */
};

struct builder {
	const struct elffile *file;
	struct raw *raw;
	uint32_t *stack; /* functions that are open at the sweep's position, outermost first */
	size_t raw_n, raw_room, stack_n;
	uint64_t pos;
	struct symbols *out;
	size_t entries_room, names_bytes, names_room, bytes_max;
	int err;
};

static int symbols_grow(void **p, size_t *room, size_t need, size_t element)
{
	size_t more = *room ? *room + *room / 2 : 256;
	void *q;

	if (need <= *room)
		return 0;
	if (more < need)
		more = need;
	q = realloc(*p, more * element);
	if (!q)
		return -ENOMEM;
	*p = q;
	*room = more;
	return 0;
}

static uint8_t symbols_rank(const struct elffile_symbol *symbol)
{
	static const uint8_t by_bind[] = {[STB_LOCAL] = 2, [STB_GLOBAL] = 0, [STB_WEAK] = 1};
	uint8_t bind = symbol->bind < sizeof(by_bind) ? by_bind[symbol->bind] : 0;

	return (uint8_t)((symbol->type == STT_NOTYPE ? 8 : 0) + (symbol->size ? 0 : 4) + bind);
}

static void symbols_collect(void *arg, const struct elffile_symbol *symbol)
{
	struct builder *b = arg;
	const char *at = memchr(symbol->name, '@', symbol->name_bytes);
	struct raw *raw;

	if (symbols_grow((void **)&b->raw, &b->raw_room, b->raw_n + 1, sizeof(*b->raw))) {
		b->err = -ENOMEM;
		return;
	}
	raw = &b->raw[b->raw_n++];
	raw->start = symbol->value;
	raw->end = symbol->size ? symbol->value + symbol->size : 0;
	if (raw->end < raw->start)
		raw->end = 0;
	raw->name = symbol->name;
	/* name@VERSION */
	raw->name_bytes =
	    at && at > symbol->name ? (uint32_t)(at - symbol->name) : symbol->name_bytes;
	raw->rank = symbols_rank(symbol);
	raw->label = symbol->type == STT_NOTYPE;
	raw->stored = 0;
}

static int symbols_compare(const void *a, const void *b)
{
	const struct raw *x = a, *y = b;
	uint32_t n;
	int order;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->name_bytes != y->name_bytes)
		return x->name_bytes < y->name_bytes ? -1 : 1;
	n = x->name_bytes;
	order = memcmp(x->name, y->name, n);
	if (order)
		return order;
	return x->end < y->end ? 1 : x->end > y->end ? -1 : 0;
}

/* One symbol per address: the best name, and a size if any of them has one. */
static void symbols_unique(struct builder *b)
{
	size_t n = 0;

	qsort(b->raw, b->raw_n, sizeof(*b->raw), symbols_compare);
	for (size_t i = 0; i < b->raw_n; i++) {
		if (n > 0 && b->raw[n - 1].start == b->raw[i].start) {
			if (b->raw[n - 1].end == 0)
				b->raw[n - 1].end = b->raw[i].end;
			continue;
		}
		b->raw[n++] = b->raw[i];
	}
	b->raw_n = n;
}

static uint32_t symbols_store_name(struct builder *b, struct raw *raw)
{
	if (raw->stored)
		return raw->stored - 1;
	if (symbols_grow((void **)&b->out->names, &b->names_room,
			 b->names_bytes + raw->name_bytes + 1, 1)) {
		b->err = -ENOMEM;
		return 0;
	}
	memcpy(b->out->names + b->names_bytes, raw->name, raw->name_bytes);
	b->out->names[b->names_bytes + raw->name_bytes] = 0;
	raw->stored = (uint32_t)b->names_bytes + 1;
	b->names_bytes += raw->name_bytes + 1;
	return raw->stored - 1;
}

/* The innermost open function owns [pos, to). */
static void symbols_emit(struct builder *b, uint64_t to)
{
	struct raw *raw = &b->raw[b->stack[b->stack_n - 1]];
	uint64_t bytes = to - b->pos;
	uint32_t name;

	if (to <= b->pos || b->err)
		return;
	if (symbols_grow((void **)&b->out->entries, &b->entries_room, b->out->entries_n + 1ul,
			 sizeof(*b->out->entries))) {
		b->err = -ENOMEM;
		return;
	}
	name = symbols_store_name(b, raw);
	if (b->out->entries_n * sizeof(*b->out->entries) + b->names_bytes > b->bytes_max) {
		b->err = -EFBIG;
		return;
	}
	b->out->entries[b->out->entries_n++] =
	    (struct symbols_entry){b->pos, bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes, name};
	b->pos = to;
}

/* Close what ends before `to`. */
static void symbols_close_until(struct builder *b, uint64_t to)
{
	while (b->stack_n > 0) {
		uint64_t end = b->raw[b->stack[b->stack_n - 1]].end;

		if (end > to)
			break;
		symbols_emit(b, end);
		b->stack_n--;
	}
}

static uint64_t symbols_segment_end(const struct builder *b, uint64_t vaddr)
{
	for (uint32_t i = 0; i < b->file->segments_n; i++) {
		const struct elffile_segment *s = &b->file->segments[i];

		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->bytes)
			return s->vaddr + s->bytes;
	}
	return vaddr;
}

/* From left to right, with the open functions on a stack. */
static void symbols_sweep(struct builder *b)
{
	for (size_t i = 0; i < b->raw_n && !b->err; i++) {
		struct raw *raw = &b->raw[i];
		uint64_t limit;

		symbols_close_until(b, raw->start);
		/* A label inside a function is a place to jump to, not another function. */
		if (raw->label && b->stack_n > 0)
			continue;
		limit = b->stack_n > 0 ? b->raw[b->stack[b->stack_n - 1]].end
				       : symbols_segment_end(b, raw->start);
		if (raw->end == 0) {
			raw->end = limit;
			/* Labels are next ones only where they count at all: outside of functions.
			 */
			if (i + 1 < b->raw_n && b->raw[i + 1].start < limit)
				raw->end = b->raw[i + 1].start;
		}
		if (b->stack_n > 0)
			symbols_emit(b, raw->start);
		b->pos = raw->start;
		b->stack[b->stack_n++] = (uint32_t)i;
	}
	symbols_close_until(b, UINT64_MAX);
}

static void symbols_shrink(struct builder *b)
{
	struct symbols *s = b->out;
	void *p;

	p = realloc(s->entries, s->entries_n * sizeof(*s->entries));
	if (p)
		s->entries = p;
	p = realloc(s->names, b->names_bytes);
	if (p)
		s->names = p;
	s->bytes = sizeof(*s) + s->entries_n * sizeof(*s->entries) + b->names_bytes;
}

/* What stripped files may have instead of .symtab. inside: opened here, as names lie in it. */
static void symbols_stripped(struct builder *b, struct elffile *file, struct elffile *inside)
{
	int err = debugdata_open(file, inside);

	if (err == -ENOMEM ||
	    (err == 0 && elffile_symbols(inside, false, symbols_collect, b) == -ENOMEM))
		b->err = -ENOMEM;
}

struct symbols *symbols_build(struct elffile *file, size_t bytes_max)
{
	struct builder b = {.file = file, .bytes_max = bytes_max};
	struct elffile inside = {.image = NULL};
	long found = elffile_symbols(file, false, symbols_collect, &b);

	/* Mostly contained in .symtab, but not in all files, and often the only one. */
	if (found == -ENOMEM || elffile_symbols(file, true, symbols_collect, &b) == -ENOMEM)
		b.err = -ENOMEM;
	if (found == -ENOENT)
		symbols_stripped(&b, file, &inside);
	b.out = calloc(1, sizeof(*b.out));
	b.stack = calloc(b.raw_n + 1, sizeof(*b.stack));
	if (!b.out || !b.stack)
		b.err = -ENOMEM;
	if (!b.err && b.raw_n > 0) {
		symbols_unique(&b);
		symbols_sweep(&b);
	}
	if (!b.err && b.out->entries_n == 0)
		b.err = -ENOENT;
	free(b.stack);
	free(b.raw);
	elffile_close(&inside);
	if (b.err) {
		symbols_free(b.out);
		errno = -b.err;
		return NULL;
	}
	symbols_shrink(&b);
	return b.out;
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->entries);
	free(symbols->names);
	free(symbols);
}

const char *symbols_find(const struct symbols *symbols, uint64_t vaddr)
{
	uint32_t low = 0, high = symbols->entries_n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (symbols->entries[middle].start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || vaddr - symbols->entries[low - 1].start >= symbols->entries[low - 1].bytes)
		return NULL;
	return symbols->names + symbols->entries[low - 1].name;
}
