/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/pclntab.h"

#include <errno.h>
#include <string.h>

#include "symbolizer/elfparts.h"

#define PCLNTAB_BYTES_MAX (128u << 20)
#define PCLNTAB_RELA_MAX  (64u << 20)
/* Where struct moduledata has the address of the text, in the releases that have .go.module. */
#define MODULE_TEXT_AT 176

enum pclntab_magic {
	MAGIC_1_2 = 0xfffffffb,
	MAGIC_1_16 = 0xfffffffa,
	MAGIC_1_18 = 0xfffffff0,
	MAGIC_1_20 = 0xfffffff1,
};

/* 0 where the bytes end. */
static uint64_t pclntab_number(const struct pclntab *tab, uint64_t offset, unsigned bytes)
{
	struct cursor c;

	if (offset > tab->size)
		return 0;
	c = cursor_over(tab->bytes + offset, tab->size - offset);
	return cursor_number(&c, bytes);
}

/* What the dynamic linker will write to an address; 0 when it writes nothing. */
static uint64_t pclntab_relocated(struct elffile *file, uint64_t vaddr)
{
	static const char *const sections[] = {".rela.dyn", ".rela"};
	const uint8_t *bytes;
	GElf_Shdr header;

	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		struct cursor c;

		if (elfparts_find(file, sections[i], &header) ||
		    header.sh_size > PCLNTAB_RELA_MAX ||
		    elfparts_section(file, sections[i], &header, &bytes))
			continue;
		c = cursor_over(bytes, header.sh_size);
		while (cursor_left(&c) >= sizeof(Elf64_Rela)) {
			uint64_t at = cursor_number(&c, 8), info = cursor_number(&c, 8);
			uint64_t addend = cursor_number(&c, 8);

			if (at == vaddr && ELF64_R_TYPE(info) == R_X86_64_RELATIVE)
				return addend;
		}
	}
	return 0;
}

/* The description of the program for its own run time: it begins with the table's address. */
static uint64_t pclntab_module_text(struct elffile *file, uint64_t table)
{
	GElf_Shdr header;
	const uint8_t *bytes;
	struct cursor c;
	uint64_t found;

	if (elfparts_section(file, ".go.module", &header, &bytes) ||
	    header.sh_size < MODULE_TEXT_AT + 8)
		return 0;
	c = cursor_over(bytes, header.sh_size);
	found = cursor_number(&c, 8);
	if (found != table && (found || pclntab_relocated(file, header.sh_addr) != table))
		return 0;
	c = cursor_over(bytes + MODULE_TEXT_AT, 8);
	found = cursor_number(&c, 8);
	return found ? found : pclntab_relocated(file, header.sh_addr + MODULE_TEXT_AT);
}

static void pclntab_find_text(void *arg, const struct elffile_symbol *symbol)
{
	static const char name[] = "runtime.text";

	if (symbol->name_bytes == sizeof(name) - 1 &&
	    memcmp(symbol->name, name, sizeof(name) - 1) == 0)
		*(uint64_t *)arg = symbol->value;
}

/*
 * Go 1.18 to 1.25 write it into the header, where it may be left to a relocation; 1.26 does not,
 * but has the module's description in a section of its own. Else a symbol tells, and at last the
 * section, which is right where Go's own linker was the last.
 */
static uint64_t pclntab_text_start(const struct pclntab *tab, struct elffile *file, uint64_t vaddr)
{
	uint64_t text = pclntab_number(tab, 24, 8);
	GElf_Shdr header;

	if (!text)
		text = pclntab_module_text(file, vaddr);
	if (!text)
		text = pclntab_relocated(file, vaddr + 24);
	if (!text)
		elffile_symbols(file, false, pclntab_find_text, &text);
	if (!text && elfparts_find(file, ".text", &header) == 0)
		text = header.sh_addr;
	return text;
}

static int pclntab_read_header(struct pclntab *tab, struct elffile *file, uint64_t vaddr)
{
	uint64_t functions = pclntab_number(tab, 8, 8);

	if (pclntab_number(tab, 4, 4) != 0x08010000) /* padding, unit of code, size of pointers */
		return -ENOENT;
	tab->entry_bytes = 8;
	switch (pclntab_number(tab, 0, 4)) {
	case MAGIC_1_2:
		tab->table = 16;
		break;
	case MAGIC_1_16:
		tab->names = pclntab_number(tab, 24, 8);
		tab->steps = pclntab_number(tab, 48, 8);
		tab->table = pclntab_number(tab, 56, 8);
		tab->flags = true;
		break;
	case MAGIC_1_18:
	case MAGIC_1_20:
		tab->entry_bytes = 4;
		tab->names = pclntab_number(tab, 32, 8);
		tab->steps = pclntab_number(tab, 56, 8);
		tab->table = pclntab_number(tab, 64, 8);
		tab->flags = true;
		tab->text = pclntab_text_start(tab, file, vaddr);
		break;
	default:
		return -ENOENT;
	}
	if (tab->names > tab->size || tab->steps > tab->size || tab->table > tab->size ||
	    functions > (tab->size - tab->table) / (2 * tab->entry_bytes))
		return -ENOENT;
	tab->functions = (uint32_t)functions;
	return functions > PCLNTAB_FUNCTIONS_MAX ? -EFBIG : 0;
}

int pclntab_open(struct pclntab *tab, struct elffile *file)
{
	static const char *const sections[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	GElf_Shdr header;
	int err = -ENOENT;

	memset(tab, 0, sizeof(*tab));
	for (size_t i = 0; err == -ENOENT && i < sizeof(sections) / sizeof(sections[0]); i++) {
		err = elfparts_find(file, sections[i], &header);
		if (err == 0 && header.sh_size > PCLNTAB_BYTES_MAX)
			return -EFBIG;
		if (err == 0)
			err = elfparts_section(file, sections[i], &header, &tab->bytes);
	}
	if (err)
		return err;
	tab->size = header.sh_size;
	return pclntab_read_header(tab, file, header.sh_addr);
}

static const char *pclntab_name(const struct pclntab *tab, uint64_t offset)
{
	uint64_t left;

	if (offset >= tab->size - tab->names)
		return "";
	left = tab->size - tab->names - offset;
	if (!memchr(tab->bytes + tab->names + offset, 0,
		    left < PCLNTAB_NAME_MAX ? left : PCLNTAB_NAME_MAX))
		return "";
	return (const char *)tab->bytes + tab->names + offset;
}

bool pclntab_function(const struct pclntab *tab, uint32_t index, struct pclntab_function *function)
{
	unsigned n = tab->entry_bytes;
	uint64_t entry = tab->table + 2ull * n * index, at;

	function->start = tab->text + pclntab_number(tab, entry, n);
	function->end = tab->text + pclntab_number(tab, entry + 2 * n, n);
	if (function->end <= function->start)
		return false;
	at = pclntab_number(tab, entry + n, n);
	if (at > tab->size)
		return false;
	/* The first format counts from its beginning. */
	at += tab->steps ? tab->table : 0;
	if (at > tab->size || tab->size - at < 44)
		return false;
	function->name = pclntab_name(tab, pclntab_number(tab, at + n, 4));
	function->steps = (uint32_t)pclntab_number(tab, at + n + 12, 4);
	/* Behind the function's kind; from 1.20 on there is one more number before it. */
	at += n + 12 + 5 * 4 + (pclntab_number(tab, 0, 4) == MAGIC_1_20 ? 4 : 0);
	function->flags = tab->flags ? (uint32_t)pclntab_number(tab, at + 1, 1) : 0;
	return true;
}

void pclntab_begin(const struct pclntab *tab, const struct pclntab_function *function,
		   struct pclntab_steps *steps)
{
	uint64_t left = tab->size - tab->steps;

	memset(steps, 0, sizeof(*steps));
	if (function->steps && function->steps < left)
		steps->cursor =
		    cursor_over(tab->bytes + tab->steps + function->steps, left - function->steps);
	steps->from = steps->to = function->start;
	steps->end = function->end;
	steps->moved = -1;
}

/* At most five bytes: all functions may share the same ones. */
static uint32_t pclntab_varint(struct cursor *c)
{
	uint32_t value = 0;

	for (unsigned shift = 0; shift < 35; shift += 7) {
		uint32_t byte = (uint32_t)cursor_number(c, 1);

		value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	c->bad = true;
	return 0;
}

bool pclntab_next(struct pclntab_steps *steps)
{
	uint32_t change, by;

	if (steps->to >= steps->end || cursor_left(&steps->cursor) == 0)
		return false;
	change = pclntab_varint(&steps->cursor);
	by = pclntab_varint(&steps->cursor);
	if (steps->cursor.bad || by == 0)
		return false;
	steps->moved = (int32_t)((uint32_t)steps->moved + ((change >> 1) ^ -(change & 1)));
	steps->from = steps->to;
	steps->to = by < steps->end - steps->from ? steps->from + by : steps->end;
	return true;
}
