/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarfline.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDE	       0xffffffffu
#define HEAD_BYTES_MAX 12
#define FORMATS_MAX    16
#define OPCODES	       256
#define DROPPED_ABOVE  (1ull << 62)

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
	const struct dwarfunit *unit;
	struct dwarflimit *limit;
	struct dwarflines *out;
	struct cursor c;
	const uint8_t *base; /* of .debug_line at base_at */
	uint64_t base_at;
	uint8_t offset_bytes, address_bytes;
	uint8_t min_length, line_range, opcode_base, operands[OPCODES];
	int8_t line_base;
	/* The machine's registers, as far as rows are kept of them. */
	uint64_t address;
	uint32_t file, line;
	struct raw_row *rows;
	struct sequence *sequences;
	uint32_t rows_n, rows_room, sequences_n, sequences_room, first;
	uint32_t files_room, directories_room;
	bool broken; /* addresses of the present sequence went back */
};

/* --- Files and directories. --- */

static uint64_t program_here(const struct program *p)
{
	return p->base_at + (uint64_t)(p->c.at - p->base);
}

static int program_add_name(struct program *p, bool directory, struct dwarfline_name name)
{
	struct dwarfline_name **names = directory ? &p->out->directories : &p->out->files;
	uint32_t *n = directory ? &p->out->directories_n : &p->out->files_n;
	int err;

	if (*n >= DWARFLINE_FILES_MAX)
		return -EFBIG;
	err = dwarflimit_grow(p->limit, (void **)names, *n,
			      directory ? &p->directories_room : &p->files_room, sizeof(name));
	if (err == 0)
		(*names)[(*n)++] = name;
	return err;
}

/* A string at the cursor; false: the empty one, which ends a list. */
static bool program_string(struct program *p, struct dwarfline_name *name)
{
	const uint8_t *from = p->c.at, *end;

	*name = (struct dwarfline_name){&p->unit->file->section[DWARF_LINE], program_here(p), 0};
	end = cursor_left(&p->c) ? memchr(from, 0, cursor_left(&p->c)) : NULL;
	cursor_take(&p->c, end ? (uint64_t)(end - from) + 1 : cursor_left(&p->c) + 1);
	return end && end > from;
}

static void program_file_numbers(struct program *p, struct dwarfline_name *name)
{
	uint64_t directory = cursor_uleb(&p->c);

	name->directory = directory > UINT32_MAX ? UINT32_MAX : (uint32_t)directory;
	cursor_uleb(&p->c); /* time */
	cursor_uleb(&p->c); /* length */
}

/* DWARF 2 to 4: number 0 is the directory of the compilation, and no file. */
static int program_old_names(struct program *p)
{
	struct dwarfline_name name = {0};
	int err = program_add_name(p, true, name);

	if (err == 0)
		err = program_add_name(p, false, name);
	while (err == 0 && program_string(p, &name))
		err = program_add_name(p, true, name);
	while (err == 0 && program_string(p, &name)) {
		program_file_numbers(p, &name);
		err = program_add_name(p, false, name);
	}
	return err;
}

/* DWARF 5: a list of what is said of each, then each. */
static int program_new_list(struct program *p, bool directories)
{
	struct {
		uint64_t content, form;
	} formats[FORMATS_MAX];
	uint8_t formats_n = (uint8_t)cursor_number(&p->c, 1);
	uint64_t n;
	int err = 0;

	if (formats_n > FORMATS_MAX)
		return -ENOEXEC;
	for (uint8_t i = 0; i < formats_n; i++) {
		formats[i].content = cursor_uleb(&p->c);
		formats[i].form = cursor_uleb(&p->c);
	}
	n = cursor_uleb(&p->c);
	for (uint64_t i = 0; i < n && err == 0 && !p->c.bad; i++) {
		struct dwarfline_name name = {0};

		for (uint8_t k = 0; k < formats_n; k++) {
			uint64_t at = program_here(p);
			struct dwarfvalue value =
			    formats[k].form > UINT16_MAX ||
				    formats[k].form == DW_FORM_implicit_const
				? (struct dwarfvalue){0}
				: dwarfunit_value(p->unit, &p->c, (uint16_t)formats[k].form, 0);

			if (formats[k].content == DW_LNCT_directory_index)
				name.directory =
				    value.number > UINT32_MAX ? UINT32_MAX : (uint32_t)value.number;
			if (formats[k].content != DW_LNCT_path)
				continue;
			name.at = at;
			name.section = &p->unit->file->section[DWARF_LINE];
			if (value.form != DW_FORM_string &&
			    !dwarfunit_text(p->unit, &value, &name.section, &name.at))
				name.section = NULL;
		}
		err = program_add_name(p, directories, name);
	}
	return err ? err : p->c.bad ? -ENOEXEC : 0;
}

/* --- The head. --- */

static int program_head(struct program *p, uint64_t at)
{
	struct dwarfbytes *section = &p->unit->file->section[DWARF_LINE];
	struct cursor c = dwarfbytes_cursor(section, at, HEAD_BYTES_MAX);
	uint64_t length = cursor_number(&c, 4), head = 4;

	p->offset_bytes = 4;
	if (length == WIDE) {
		length = cursor_number(&c, 8);
		head = 12;
		p->offset_bytes = 8;
	}
	if (c.bad || length > section->size || length < 8)
		return -ENOEXEC;
	if (length > DWARFLINE_BYTES_MAX)
		return -EFBIG;
	p->c = dwarfbytes_cursor(section, at, head + length);
	if (cursor_left(&p->c) < head + length)
		return -ENOEXEC;
	p->base = p->c.at;
	p->base_at = at;
	p->c.end = p->c.at + head + length;
	cursor_take(&p->c, head);
	return 0;
}

/* A unit whose offsets are as wide as this program's, for its forms. */
static int program_names(struct program *p)
{
	struct dwarfunit unit = *p->unit;
	const struct dwarfunit *own = p->unit;
	int err;

	if (p->out->version < 5)
		return program_old_names(p);
	unit.offset_bytes = p->offset_bytes;
	p->unit = &unit;
	err = program_new_list(p, true);
	if (err == 0)
		err = program_new_list(p, false);
	p->unit = own;
	return err;
}

static int program_tables(struct program *p)
{
	uint64_t length;
	const uint8_t *code;
	int err;

	p->out->version = (uint8_t)cursor_number(&p->c, 2);
	p->address_bytes = p->unit->address_bytes;
	if (p->out->version < 2 || p->out->version > 5)
		return -ENOEXEC;
	if (p->out->version >= 5) {
		p->address_bytes = (uint8_t)cursor_number(&p->c, 1);
		cursor_number(&p->c, 1); /* bytes of a segment selector */
	}
	length = cursor_number(&p->c, p->offset_bytes);
	code = p->c.at + (length < cursor_left(&p->c) ? length : cursor_left(&p->c));
	p->min_length = (uint8_t)cursor_number(&p->c, 1);
	if (p->out->version >= 4)
		cursor_number(&p->c, 1); /* operations in an instruction: VLIW alone has several */
	cursor_number(&p->c, 1);	 /* is_stmt */
	p->line_base = (int8_t)cursor_number(&p->c, 1);
	p->line_range = (uint8_t)cursor_number(&p->c, 1);
	p->opcode_base = (uint8_t)cursor_number(&p->c, 1);
	for (int i = 1; i < p->opcode_base; i++)
		p->operands[i] = (uint8_t)cursor_number(&p->c, 1);
	if (p->c.bad || (p->address_bytes != 8 && p->address_bytes != 4))
		return -ENOEXEC;
	err = program_names(p);
	p->c.at = code;
	p->c.bad = false;
	return err;
}

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
	err = dwarflimit_grow(p->limit, (void **)&p->rows, p->rows_n, &p->rows_room,
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
	err = dwarflimit_grow(p->limit, (void **)&p->sequences, p->sequences_n, &p->sequences_room,
			      sizeof(*p->sequences));
	if (err)
		return err;
	p->sequences[p->sequences_n++] =
	    (struct sequence){low, p->address, p->first, p->rows_n - p->first};
	program_reset(p);
	return 0;
}

static int program_extended(struct program *p)
{
	uint64_t length = cursor_uleb(&p->c);
	const uint8_t *body = cursor_take(&p->c, length);
	struct dwarfline_name name;
	const uint8_t *after = p->c.at;
	uint8_t bytes;
	int err = 0;

	if (!body || length == 0)
		return body ? 0 : -ENOEXEC;
	p->c.at = body + 1;
	switch (body[0]) {
	case DW_LNE_end_sequence:
		err = program_end(p);
		break;
	case DW_LNE_set_address:
		bytes = length == 5 ? 4 : 8;
		p->address = cursor_number(&p->c, bytes);
		break;
	case DW_LNE_define_file:
		if (program_string(p, &name)) {
			program_file_numbers(p, &name);
			err = program_add_name(p, false, name);
		}
		break;
	default:
		break;
	}
	p->c.at = after;
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
		p->address += p->min_length * cursor_uleb(&p->c);
		return 0;
	case DW_LNS_advance_line:
		p->line += (uint32_t)cursor_sleb(&p->c);
		return 0;
	case DW_LNS_set_file:
		p->file = program_clip(cursor_uleb(&p->c), DWARFLINE_NO_FILE);
		return 0;
	case DW_LNS_const_add_pc:
		p->address += p->min_length * ((255u - p->opcode_base) / p->line_range);
		return 0;
	case DW_LNS_fixed_advance_pc:
		p->address += cursor_number(&p->c, 2);
		return 0;
	default:
		for (uint8_t i = 0; i < p->operands[opcode]; i++)
			cursor_uleb(&p->c);
		return 0;
	}
}

static int program_run(struct program *p)
{
	int err = 0;

	if (p->line_range == 0)
		p->line_range = 1; /* divided by it is only in programs that mean nothing */
	program_reset(p);
	while (cursor_left(&p->c) && err == 0 && !p->c.bad) {
		uint8_t opcode = (uint8_t)cursor_number(&p->c, 1);

		if (dwarflimit_late(p->limit))
			return -ETIME;
		if (opcode >= p->opcode_base) {
			uint8_t by = (uint8_t)(opcode - p->opcode_base);

			p->address += p->min_length * (uint64_t)(by / p->line_range);
			p->line += (uint32_t)(p->line_base + by % p->line_range);
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
	struct dwarflines *out = p->out;
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
	struct program p = {.unit = unit, .limit = limit, .out = lines};
	int err;

	memset(lines, 0, sizeof(*lines));
	err = program_head(&p, at);
	if (err == 0)
		err = program_tables(&p);
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
