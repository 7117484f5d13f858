/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarfline.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/dwarflinehead.h"

#define DROPPED_ABOVE (1ull << 62)

/* A run of rows with rising addresses. */
struct sequence {
	uint64_t low, high;
	uint32_t first, n;
};

struct raw_row {
	uint64_t address;
	uint32_t file, line;
};

struct program {
	struct dwarflinehead h;
	/* The machine's registers, as far as rows are kept of them. */
	uint64_t address;
	uint32_t file, line;
	struct raw_row *rows;
	struct sequence *sequences;
	uint32_t rows_n, rows_room, sequences_n, sequences_room, first;
	bool broken; /* addresses of the present sequence went back */
};

/* --- The machine. --- */

static void program_reset(struct program *p)
{
	p->address = 0;
	p->file = 1;
	p->line = 1;
	p->first = p->rows_n;
	p->broken = false;
}

static int program_row(struct program *p)
{
	struct raw_row *last = p->rows_n > p->first ? &p->rows[p->rows_n - 1] : NULL;
	int err;

	if (last && p->address < last->address)
		p->broken = true;
	/* The last one at an address holds, and what says the same again says nothing. */
	if (last && last->address == p->address) {
		last->file = p->file;
		last->line = p->line;
		return 0;
	}
	if (last && last->file == p->file && last->line == p->line)
		return 0;
	err = dwarflimit_grow(p->h.limit, (void **)&p->rows, p->rows_n, &p->rows_room,
			      sizeof(*p->rows));
	if (err == 0)
		p->rows[p->rows_n++] = (struct raw_row){p->address, p->file, p->line};
	return err;
}

static int program_end(struct program *p)
{
	uint64_t low;
	int err;

	if (p->rows_n == p->first || p->broken || (low = p->rows[p->first].address) == 0 ||
	    low >= p->address || p->address >= DROPPED_ABOVE) {
		p->rows_n = p->first;
		program_reset(p);
		return 0;
	}
	err = dwarflimit_grow(p->h.limit, (void **)&p->sequences, p->sequences_n,
			      &p->sequences_room, sizeof(*p->sequences));
	if (err)
		return err;
	p->sequences[p->sequences_n++] =
	    (struct sequence){low, p->address, p->first, p->rows_n - p->first};
	program_reset(p);
	return 0;
}

static int program_extended(struct program *p)
{
	uint64_t length = cursor_uleb(&p->h.c);
	const uint8_t *body = cursor_take(&p->h.c, length);
	const uint8_t *after = p->h.c.at;
	uint8_t bytes;
	int err = 0;

	if (!body || length == 0)
		return body ? 0 : -ENOEXEC;
	p->h.c.at = body + 1;
	switch (body[0]) {
	case DW_LNE_end_sequence:
		err = program_end(p);
		break;
	case DW_LNE_set_address:
		bytes = length == 5 ? 4 : 8;
		p->address = cursor_number(&p->h.c, bytes);
		break;
	case DW_LNE_define_file:
		err = dwarflinehead_define(&p->h);
		break;
	default:
		break;
	}
	p->h.c.at = after;
	return err;
}

static uint32_t program_clip(uint64_t number, uint32_t other)
{
	return number < DWARFLINE_END ? (uint32_t)number : other;
}

static int program_standard(struct program *p, uint8_t opcode)
{
	switch (opcode) {
	case DW_LNS_copy:
		return program_row(p);
	case DW_LNS_advance_pc:
		p->address += p->h.min_length * cursor_uleb(&p->h.c);
		return 0;
	case DW_LNS_advance_line:
		p->line += (uint32_t)cursor_sleb(&p->h.c);
		return 0;
	case DW_LNS_set_file:
		p->file = program_clip(cursor_uleb(&p->h.c), DWARFLINE_NO_FILE);
		return 0;
	case DW_LNS_const_add_pc:
		p->address += p->h.min_length * ((255u - p->h.opcode_base) / p->h.line_range);
		return 0;
	case DW_LNS_fixed_advance_pc:
		p->address += cursor_number(&p->h.c, 2);
		return 0;
	default:
		for (uint8_t i = 0; i < p->h.operands[opcode]; i++)
			cursor_uleb(&p->h.c);
		return 0;
	}
}

static int program_run(struct program *p)
{
	int err = 0;

	if (p->h.line_range == 0)
		p->h.line_range = 1; /* divided by it is only in programs that mean nothing */
	program_reset(p);
	while (cursor_left(&p->h.c) && err == 0 && !p->h.c.bad) {
		uint8_t opcode = (uint8_t)cursor_number(&p->h.c, 1);

		if (dwarflimit_late(p->h.limit))
			return -ETIME;
		if (opcode >= p->h.opcode_base) {
			uint8_t by = (uint8_t)(opcode - p->h.opcode_base);

			p->address += p->h.min_length * (uint64_t)(by / p->h.line_range);
			p->line += (uint32_t)(p->h.line_base + by % p->h.line_range);
			err = program_row(p);
		} else if (opcode == 0) {
			err = program_extended(p);
		} else {
			err = program_standard(p, opcode);
		}
	}
	return err;
}

/* --- From sequences in any order to rows that are sorted. --- */

static int sequence_compare(const void *a, const void *b)
{
	const struct sequence *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->first < y->first ? -1 : 1;
}

static void program_put(struct dwarflines *out, uint64_t address, uint32_t file, uint32_t line)
{
	address -= out->base;
	/* More than 4 GiB from the lowest one: no program has that. */
	if (address <= UINT32_MAX)
		out->rows[out->rows_n++] = (struct dwarfline_row){(uint32_t)address, file, line};
}

static int program_sort(struct program *p)
{
	struct dwarflines *out = p->h.out;
	uint64_t end = 0;

	if (p->sequences_n == 0)
		return 0;
	qsort(p->sequences, p->sequences_n, sizeof(*p->sequences), sequence_compare);
	out->base = p->sequences[0].low;
	out->rows = malloc((p->rows_n + p->sequences_n) * sizeof(*out->rows));
	if (!out->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->sequences_n; i++) {
		const struct sequence *s = &p->sequences[i];

		/* Of two that say something of the same code the first is believed. */
		if (s->low < end)
			continue;
		if (end && end < s->low)
			program_put(out, end, DWARFLINE_END, 0);
		for (uint32_t k = 0; k < s->n; k++)
			program_put(out, p->rows[s->first + k].address, p->rows[s->first + k].file,
				    p->rows[s->first + k].line);
		end = s->high;
	}
	program_put(out, end, DWARFLINE_END, 0);
	return 0;
}

int dwarfline_read(struct dwarflines *lines, const struct dwarfunit *unit, uint64_t at,
		   struct dwarflimit *limit)
{
	struct program p = {.h = {.unit = unit, .limit = limit, .out = lines}};
	int err;

	memset(lines, 0, sizeof(*lines));
	err = dwarflinehead_read(&p.h, at);
	if (err == 0)
		err = program_run(&p);
	if (err == 0)
		err = program_sort(&p);
	free(p.rows);
	free(p.sequences);
	return err;
}

void dwarfline_free(struct dwarflines *lines)
{
	free(lines->rows);
	free(lines->files);
	free(lines->directories);
	memset(lines, 0, sizeof(*lines));
}

size_t dwarfline_held(const struct dwarflines *lines)
{
	return lines->rows_n * sizeof(*lines->rows) +
	       ((size_t)lines->files_n + lines->directories_n) * sizeof(*lines->files);
}

const struct dwarfline_row *dwarfline_find(const struct dwarflines *lines, uint64_t address)
{
	uint32_t low = 0, high = lines->rows_n;

	if (address < lines->base || address - lines->base > UINT32_MAX)
		return NULL;
	address -= lines->base;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (lines->rows[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && lines->rows[low - 1].file != DWARFLINE_END ? &lines->rows[low - 1] : NULL;
}

/* Put a name behind what is there; an absolute one in place of it. */
static void path_add(char *path, size_t bytes, const char *name, size_t name_bytes)
{
	size_t n = strlen(path);

	if (name_bytes == 0)
		return;
	if (name[0] == '/')
		n = 0;
	snprintf(path + n, bytes - n, "%s%.*s", n && path[n - 1] != '/' ? "/" : "", (int)name_bytes,
		 name);
}

static void path_add_name(char *path, size_t bytes, const struct dwarfline_name *name)
{
	size_t n;
	const char *text = name->section ? dwarfbytes_string(name->section, name->at, &n) : NULL;

	if (text)
		path_add(path, bytes, text, n);
}

bool dwarfline_path(const struct dwarflines *lines, uint32_t file, const char *compiled_in,
		    char *path, size_t bytes)
{
	const struct dwarfline_name *name;

	if (file >= lines->files_n || !lines->files[file].section)
		return false;
	name = &lines->files[file];
	path[0] = 0;
	if (compiled_in)
		path_add(path, bytes, compiled_in, strlen(compiled_in));
	if (name->directory < lines->directories_n)
		path_add_name(path, bytes, &lines->directories[name->directory]);
	path_add_name(path, bytes, name);
	return path[0];
}
