/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/jitdump.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC	       0x4a695444u /* "JiTD" as a number; the other byte order is another machine's */
#define VERSION	       1
#define HEADER_MAX     4096 /* may grow with later versions */
#define ARCH_TIMESTAMP 1    /* flag: times are the CPU's own counter */
/* A record may be as new as now, and clocks are not read at the same moment. */
#define AHEAD_NS 1000000000ull
/* How many pieces of code are asked when the present one is too new: what a busy compiler makes in
 * the seconds that a sample may be old. */
#define HISTORY 4096
/*
 * V8 counts the addresses of lines from where perf would put the code in an ELF file of its own,
 * behind the header of 64 bytes (src/diagnostics/perf-jit.cc, kElfHeaderSize). A line for the
 * beginning of the code is what everybody has, so a dump in which none begins before that is of
 * that kind.
 */
#define SHIFT	    64
#define SHIFT_PROOF 16 /* pieces of code with lines */

/* As the file has them. */
struct header {
	uint32_t magic, version, bytes, elf_machine, padding, pid;
	uint64_t time, flags;
};

struct prefix {
	uint32_t id, bytes; /* of the whole record */
	uint64_t time;
};

enum { CODE_LOAD = 0, CODE_MOVE = 1, CODE_DEBUG_INFO = 2, CODE_CLOSE = 3 };

struct load {
	uint32_t pid, tid;
	uint64_t vma, start, bytes, index;
	char name[]; /* ends in NUL; behind it the code */
};

struct move {
	uint32_t pid, tid;
	uint64_t vma, old_start, new_start, bytes, index;
};

struct debug_info {
	uint64_t start, n;
};

struct debug_entry {
	uint64_t address;
	int32_t line, column;
	char file[]; /* ends in NUL; "\xff": the same as before */
};

#define ENTRY_BYTES offsetof(struct debug_entry, file)

struct jitdump_code {
	uint64_t time, start;
	uint32_t bytes;
	uint32_t name; /* in names; 0: there is no code any more */
	uint32_t lines, lines_n;
};

struct jitdump_line {
	uint32_t offset; /* from the beginning of the code */
	uint32_t line;
	uint32_t file; /* in names */
	uint32_t order;
};

void jitdump_init(struct jitdump *dump, size_t bytes_max)
{
	memset(dump, 0, sizeof(*dump));
	/* Offsets of names have 32 bits. */
	dump->bytes_max = bytes_max < INT32_MAX ? bytes_max : INT32_MAX;
	dump->names_bytes = 1;
	dump->lines_from = UINT32_MAX;
}

void jitdump_fini(struct jitdump *dump)
{
	jitindex_fini(&dump->index);
	free(dump->codes);
	free(dump->lines);
	free(dump->names);
	memset(dump, 0, sizeof(*dump));
}

size_t jitdump_bytes(const struct jitdump *dump)
{
	return jitindex_bytes(&dump->index) + dump->codes_room * sizeof(*dump->codes) +
	       dump->lines_room * sizeof(*dump->lines) + dump->names_room;
}

int jitdump_settle(struct jitdump *dump)
{
	dump->settled = dump->codes_n;
	return jitindex_settle(&dump->index);
}

/* Room for `more` elements behind n. False: then it is full, for good. */
static bool jitdump_grow(struct jitdump *dump, void **p, uint32_t n, uint32_t *room, uint32_t more,
			 size_t element)
{
	uint64_t want = n + (uint64_t)more, bigger = *room + *room / 4 + 256ul;
	void *q;

	if (want <= *room)
		return true;
	bigger = bigger < want ? want : bigger;
	q = jitdump_bytes(dump) + (bigger - *room) * element <= dump->bytes_max
		? realloc(*p, bigger * element)
		: NULL;
	if (!q) {
		dump->full = true;
		return false;
	}
	*p = q;
	*room = (uint32_t)bigger;
	return true;
}

/* Where a text was put; 0 = there is no room. */
static uint32_t jitdump_store(struct jitdump *dump, const char *text, size_t n)
{
	uint32_t at = dump->names_bytes;

	n = n > JITDUMP_NAME_MAX ? JITDUMP_NAME_MAX : n;
	if (!jitdump_grow(dump, (void **)&dump->names, at, &dump->names_room, (uint32_t)n + 1, 1))
		return 0;
	memcpy(dump->names + at, text, n);
	dump->names[at + n] = 0;
	dump->names_bytes += (uint32_t)n + 1;
	return at;
}

/* From this time on there is this code, or none (name 0) at this place. */
static void jitdump_put(struct jitdump *dump, const struct jitdump_code *code)
{
	bool room = jitdump_grow(dump, (void **)&dump->codes, dump->codes_n, &dump->codes_room, 1,
				 sizeof(*dump->codes));

	/* Without room it is at least known that what was there before does not hold. */
	if (!jitindex_possible(code->start, code->bytes) ||
	    (!room && jitindex_bytes(&dump->index) > dump->bytes_max) ||
	    jitindex_add(&dump->index, code->start, code->bytes,
			 room ? dump->codes_n + 1 : JITINDEX_NOTHING) ||
	    !room) {
		dump->refused++;
		return;
	}
	dump->codes[dump->codes_n++] = *code;
}

static void jitdump_load(struct jitdump *dump, const struct prefix *prefix, const void *body,
			 size_t n)
{
	struct jitdump_code code = {.time = prefix->time};
	const char *name;
	struct load load;
	size_t length;

	if (n <= sizeof(load)) {
		dump->refused++;
		return;
	}
	memcpy(&load, body, sizeof(load));
	name = (const char *)body + sizeof(load);
	length = strnlen(name, n - sizeof(load));
	code.start = load.start;
	code.bytes = load.bytes < UINT32_MAX ? (uint32_t)load.bytes : 0;
	if (dump->pending_start == load.start) {
		code.lines = dump->pending;
		code.lines_n = dump->lines_n - dump->pending;
	} else {
		dump->lines_n = dump->pending;
	}
	/* Without room for the name it is at least known that the older one does not hold. */
	code.name = length ? jitdump_store(dump, name, length) : 0;
	jitdump_put(dump, &code);
	dump->pending = dump->lines_n;
	dump->pending_start = 0;
}

/* What is at this address by now: the latest of those that cannot be found yet, else what is found.
 */
static const struct jitdump_code *jitdump_newest(const struct jitdump *dump, uint64_t address)
{
	const struct jitindex_piece *piece;

	for (uint32_t i = dump->codes_n; i > dump->settled; i--)
		if (address - dump->codes[i - 1].start < dump->codes[i - 1].bytes)
			return &dump->codes[i - 1];
	piece = jitindex_find(&dump->index, address);
	return piece ? &dump->codes[piece->what - 1] : NULL;
}

/* The code is somewhere else now, and nothing is left where it was. */
static void jitdump_move(struct jitdump *dump, const struct prefix *prefix, const void *body,
			 size_t n)
{
	const struct jitdump_code *found;
	struct jitdump_code code, gone;
	struct move move;

	memset(&move, 0, sizeof(move));
	memcpy(&move, body, n < sizeof(move) ? n : sizeof(move));
	found = jitdump_newest(dump, move.old_start);
	if (n < sizeof(move) || !found || found->start != move.old_start) {
		dump->refused++;
		return;
	}
	code = *found;
	code.time = prefix->time;
	code.start = move.new_start;
	gone = (struct jitdump_code){
	    .time = prefix->time, .start = move.old_start, .bytes = code.bytes};
	jitdump_put(dump, &gone);
	jitdump_put(dump, &code);
}

static int jitdump_compare(const void *a, const void *b)
{
	const struct jitdump_line *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/*
 * Printable, and as UTF-8 wants it at least in its leading bytes. V8 as it is in Node.js 20 writes
 * what stands by then where a name was.
 */
static bool jitdump_is_text(const char *text, size_t n)
{
	const unsigned char *at = (const unsigned char *)text, *end = at + n;

	for (; at < end; at++) {
		unsigned more = *at < 0x80 ? 0 : *at < 0xe0 ? 1 : *at < 0xf0 ? 2 : 3;

		if (*at < ' ' || *at == 0x7f || (*at >= 0x80 && *at < 0xc2) || *at > 0xf4)
			return false;
		for (; more > 0; more--)
			if (++at >= end || (*at & 0xc0) != 0x80)
				return false;
	}
	return n > 0;
}

/* Where the name of a file is; 0 = nowhere. It is mostly the one before. */
static uint32_t jitdump_file(struct jitdump *dump, const char *name, size_t n)
{
	if (dump->file && !strncmp(dump->names + dump->file, name, JITDUMP_NAME_MAX))
		return dump->file;
	if (!jitdump_is_text(name, n))
		return 0;
	dump->file = jitdump_store(dump, name, n);
	return dump->file;
}

/* One entry; how many bytes it takes, 0: it is not whole. *file: of the one before. */
static size_t jitdump_entry(struct jitdump *dump, uint64_t start, const char *at, const char *end,
			    uint32_t *file)
{
	struct jitdump_line *line;
	struct debug_entry entry;
	size_t left = (size_t)(end - at), length;
	const char *name = at + ENTRY_BYTES;

	if (left <= ENTRY_BYTES)
		return 0;
	memcpy(&entry, at, ENTRY_BYTES);
	length = strnlen(name, left - ENTRY_BYTES);
	if (length == left - ENTRY_BYTES)
		return 0;
	if (strcmp(name, "\xff"))
		*file = jitdump_file(dump, name, length);
	if (entry.address - start < JITINDEX_BYTES_MAX && *file && entry.line >= 0 &&
	    jitdump_grow(dump, (void **)&dump->lines, dump->lines_n, &dump->lines_room, 1,
			 sizeof(*dump->lines))) {
		line = &dump->lines[dump->lines_n];
		*line = (struct jitdump_line){(uint32_t)(entry.address - start),
					      (uint32_t)entry.line, *file, dump->lines_n};
		dump->lines_n++;
	}
	return ENTRY_BYTES + length + 1;
}

static void jitdump_debug_info(struct jitdump *dump, const void *body, size_t n)
{
	const char *at = (const char *)body + sizeof(struct debug_info),
		   *end = at - sizeof(struct debug_info) + n;
	struct debug_info info;
	uint32_t file = 0;
	size_t bytes = 1;

	/* What came before for code that never came. */
	dump->lines_n = dump->pending;
	if (n < sizeof(info)) {
		dump->refused++;
		return;
	}
	memcpy(&info, body, sizeof(info));
	dump->pending_start = info.start;
	for (uint64_t i = 0; i < info.n && bytes; i++, at += bytes)
		bytes = jitdump_entry(dump, info.start, at, end, &file);
	if (dump->lines_n == dump->pending)
		return;
	qsort(dump->lines + dump->pending, dump->lines_n - dump->pending, sizeof(*dump->lines),
	      jitdump_compare);
	dump->described += dump->described < SHIFT_PROOF;
	if (dump->lines[dump->pending].offset < dump->lines_from)
		dump->lines_from = dump->lines[dump->pending].offset;
}

/* 0: not all of it is there. */
static uint64_t jitdump_begin(struct jitdump *dump, const void *bytes, size_t n)
{
	struct header header;

	if (n < sizeof(header))
		return 0;
	memcpy(&header, bytes, sizeof(header));
	dump->begun = true;
	dump->broken = header.magic != MAGIC || header.version != VERSION ||
		       header.bytes < sizeof(header) || header.bytes > HEADER_MAX;
	dump->created = header.time;
	dump->timeless = header.flags & ARCH_TIMESTAMP;
	return header.bytes;
}

/* How much of a record has to be there. */
static size_t jitdump_needs(const struct prefix *prefix)
{
	size_t body = prefix->bytes - sizeof(*prefix);

	if (prefix->id == CODE_LOAD)
		return body < sizeof(struct load) + JITDUMP_NAME_MAX + 1
			   ? body
			   : sizeof(struct load) + JITDUMP_NAME_MAX + 1;
	if (prefix->id == CODE_MOVE)
		return body < sizeof(struct move) ? body : sizeof(struct move);
	return prefix->id == CODE_DEBUG_INFO && prefix->bytes <= JITDUMP_RECORD_MAX ? body : 0;
}

static uint64_t jitdump_record(struct jitdump *dump, const char *at, size_t n, uint64_t now_ns)
{
	const void *body = at + sizeof(struct prefix);
	struct prefix prefix;
	size_t need;

	if (n < sizeof(prefix))
		return 0;
	memcpy(&prefix, at, sizeof(prefix));
	if (prefix.bytes < sizeof(prefix)) {
		dump->broken = true;
		return 0;
	}
	need = jitdump_needs(&prefix);
	if (n - sizeof(prefix) < need)
		return 0;
	dump->timeless |= prefix.time > now_ns + AHEAD_NS;
	if (prefix.id == CODE_LOAD)
		jitdump_load(dump, &prefix, body, need);
	else if (prefix.id == CODE_MOVE)
		jitdump_move(dump, &prefix, body, need);
	else if (prefix.id == CODE_DEBUG_INFO && need)
		jitdump_debug_info(dump, body, need);
	else if (prefix.id == CODE_DEBUG_INFO)
		dump->refused++;
	return prefix.bytes;
}

uint64_t jitdump_feed(struct jitdump *dump, const void *bytes, size_t n, uint64_t now_ns)
{
	const char *at = bytes;
	uint64_t done = 0, step;

	while (!dump->broken && done < n) {
		step = dump->begun ? jitdump_record(dump, at + done, n - done, now_ns)
				   : jitdump_begin(dump, bytes, n);
		if (step == 0)
			break;
		done += step;
	}
	return done;
}

/* The line of this place: the last one that begins before it. */
static void jitdump_find_line(const struct jitdump *dump, const struct jitdump_code *code,
			      uint64_t offset, struct line *line)
{
	const struct jitdump_line *lines = dump->lines;
	uint32_t low = code->lines, high = low + code->lines_n;

	if (dump->described >= SHIFT_PROOF && dump->lines_from >= SHIFT)
		offset += SHIFT;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (lines[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == code->lines)
		return;
	line->file = dump->names + lines[low - 1].file;
	line->line = lines[low - 1].line;
}

/* The code that was there before the present one. */
static const struct jitdump_code *jitdump_before(const struct jitdump *dump, uint64_t address,
						 uint64_t time_ns)
{
	uint32_t end = dump->codes_n > HISTORY ? dump->codes_n - HISTORY : 0;

	for (uint32_t i = dump->codes_n; i > end; i--) {
		const struct jitdump_code *code = &dump->codes[i - 1];

		if (address - code->start < code->bytes && code->time <= time_ns)
			return code;
	}
	return NULL;
}

void jitdump_find(const struct jitdump *dump, uint64_t address, uint64_t time_ns,
		  struct lines *found)
{
	const struct jitindex_piece *piece = jitindex_find(&dump->index, address);
	const struct jitdump_code *code = piece ? &dump->codes[piece->what - 1] : NULL;

	found->n = 0;
	if (code && code->time > time_ns && !dump->timeless)
		code = jitdump_before(dump, address, time_ns);
	if (!code || !code->name)
		return;
	found->line[0] = (struct line){.name = dump->names + code->name};
	jitdump_find_line(dump, code, address - code->start, &found->line[0]);
	found->n = 1;
}
