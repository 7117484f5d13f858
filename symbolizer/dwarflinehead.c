/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarflinehead.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#define WIDE	       0xffffffffu
#define HEAD_BYTES_MAX 12
#define FORMATS_MAX    16

/* --- Files and directories. --- */

static uint64_t head_here(const struct dwarflinehead *h)
{
	return h->base_at + (uint64_t)(h->c.at - h->base);
}

static int head_add_name(struct dwarflinehead *h, bool directory, struct dwarfline_name name)
{
	struct dwarfline_name **names = directory ? &h->out->directories : &h->out->files;
	uint32_t *n = directory ? &h->out->directories_n : &h->out->files_n;
	int err;

	if (*n >= DWARFLINE_FILES_MAX)
		return -EFBIG;
	err = dwarflimit_grow(h->limit, (void **)names, *n,
			      directory ? &h->directories_room : &h->files_room, sizeof(name));
	if (err == 0)
		(*names)[(*n)++] = name;
	return err;
}

/* A string at the cursor; false: the empty one, which ends a list. */
static bool head_string(struct dwarflinehead *h, struct dwarfline_name *name)
{
	const uint8_t *from = h->c.at, *end;

	*name = (struct dwarfline_name){&h->unit->file->section[DWARF_LINE], head_here(h), 0};
	end = cursor_left(&h->c) ? memchr(from, 0, cursor_left(&h->c)) : NULL;
	cursor_take(&h->c, end ? (uint64_t)(end - from) + 1 : cursor_left(&h->c) + 1);
	return end && end > from;
}

static void head_file_numbers(struct dwarflinehead *h, struct dwarfline_name *name)
{
	uint64_t directory = cursor_uleb(&h->c);

	name->directory = directory > UINT32_MAX ? UINT32_MAX : (uint32_t)directory;
	cursor_uleb(&h->c); /* time */
	cursor_uleb(&h->c); /* length */
}

/* DWARF 2 to 4: number 0 is the directory of the compilation, and no file. */
static int head_old_names(struct dwarflinehead *h)
{
	struct dwarfline_name name = {0};
	int err = head_add_name(h, true, name);

	if (err == 0)
		err = head_add_name(h, false, name);
	while (err == 0 && head_string(h, &name))
		err = head_add_name(h, true, name);
	while (err == 0 && head_string(h, &name)) {
		head_file_numbers(h, &name);
		err = head_add_name(h, false, name);
	}
	return err;
}

/* DWARF 5: a list of what is said of each, then each. */
static int head_new_list(struct dwarflinehead *h, bool directories)
{
	struct {
		uint64_t content, form;
	} formats[FORMATS_MAX];
	uint8_t formats_n = (uint8_t)cursor_number(&h->c, 1);
	uint64_t n;
	int err = 0;

	if (formats_n > FORMATS_MAX)
		return -ENOEXEC;
	for (uint8_t i = 0; i < formats_n; i++) {
		formats[i].content = cursor_uleb(&h->c);
		formats[i].form = cursor_uleb(&h->c);
	}
	n = cursor_uleb(&h->c);
	for (uint64_t i = 0; i < n && err == 0 && !h->c.bad; i++) {
		struct dwarfline_name name = {0};

		for (uint8_t k = 0; k < formats_n; k++) {
			uint64_t at = head_here(h);
			struct dwarfvalue value =
			    formats[k].form > UINT16_MAX ||
				    formats[k].form == DW_FORM_implicit_const
				? (struct dwarfvalue){0}
				: dwarfunit_value(h->unit, &h->c, (uint16_t)formats[k].form, 0);

			if (formats[k].content == DW_LNCT_directory_index)
				name.directory =
				    value.number > UINT32_MAX ? UINT32_MAX : (uint32_t)value.number;
			if (formats[k].content != DW_LNCT_path)
				continue;
			name.at = at;
			name.section = &h->unit->file->section[DWARF_LINE];
			if (value.form != DW_FORM_string &&
			    !dwarfunit_text(h->unit, &value, &name.section, &name.at))
				name.section = NULL;
		}
		err = head_add_name(h, directories, name);
	}
	return err ? err : h->c.bad ? -ENOEXEC : 0;
}

/* --- The head. --- */

static int head_bytes(struct dwarflinehead *h, uint64_t at)
{
	struct dwarfbytes *section = &h->unit->file->section[DWARF_LINE];
	struct cursor c = dwarfbytes_cursor(section, at, HEAD_BYTES_MAX);
	uint64_t length = cursor_number(&c, 4), head = 4;

	h->offset_bytes = 4;
	if (length == WIDE) {
		length = cursor_number(&c, 8);
		head = 12;
		h->offset_bytes = 8;
	}
	if (c.bad || length > section->size || length < 8)
		return -ENOEXEC;
	if (length > DWARFLINE_BYTES_MAX)
		return -EFBIG;
	h->c = dwarfbytes_cursor(section, at, head + length);
	if (cursor_left(&h->c) < head + length)
		return -ENOEXEC;
	h->base = h->c.at;
	h->base_at = at;
	h->c.end = h->c.at + head + length;
	cursor_take(&h->c, head);
	return 0;
}

/* A unit whose offsets are as wide as this program's, for its forms. */
static int head_names(struct dwarflinehead *h)
{
	struct dwarfunit unit = *h->unit;
	const struct dwarfunit *own = h->unit;
	int err;

	if (h->out->version < 5)
		return head_old_names(h);
	unit.offset_bytes = h->offset_bytes;
	h->unit = &unit;
	err = head_new_list(h, true);
	if (err == 0)
		err = head_new_list(h, false);
	h->unit = own;
	return err;
}

static int head_tables(struct dwarflinehead *h)
{
	uint64_t length;
	const uint8_t *code;
	int err;

	h->out->version = (uint8_t)cursor_number(&h->c, 2);
	h->address_bytes = h->unit->address_bytes;
	if (h->out->version < 2 || h->out->version > 5)
		return -ENOEXEC;
	if (h->out->version >= 5) {
		h->address_bytes = (uint8_t)cursor_number(&h->c, 1);
		cursor_number(&h->c, 1); /* bytes of a segment selector */
	}
	length = cursor_number(&h->c, h->offset_bytes);
	code = h->c.at + (length < cursor_left(&h->c) ? length : cursor_left(&h->c));
	h->min_length = (uint8_t)cursor_number(&h->c, 1);
	if (h->out->version >= 4)
		cursor_number(&h->c, 1); /* operations in an instruction: VLIW alone has several */
	cursor_number(&h->c, 1);	 /* is_stmt */
	h->line_base = (int8_t)cursor_number(&h->c, 1);
	h->line_range = (uint8_t)cursor_number(&h->c, 1);
	h->opcode_base = (uint8_t)cursor_number(&h->c, 1);
	for (int i = 1; i < h->opcode_base; i++)
		h->operands[i] = (uint8_t)cursor_number(&h->c, 1);
	if (h->c.bad || (h->address_bytes != 8 && h->address_bytes != 4))
		return -ENOEXEC;
	err = head_names(h);
	h->c.at = code;
	h->c.bad = false;
	return err;
}

int dwarflinehead_read(struct dwarflinehead *h, uint64_t at)
{
	int err = head_bytes(h, at);

	return err ? err : head_tables(h);
}

int dwarflinehead_define(struct dwarflinehead *h)
{
	struct dwarfline_name name;

	if (!head_string(h, &name))
		return 0;
	head_file_numbers(h, &name);
	return head_add_name(h, false, name);
}
