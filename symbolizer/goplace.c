/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/goplace.h"

#include <errno.h>
#include <string.h>

#include "symbolizer/cursor.h"
#include "symbolizer/elfparts.h"

#define GOPLACE_RELA_MAX   (64u << 20)
#define GOPLACE_SEARCH_MAX (128u << 20)
/* Where struct moduledata has the address of the text, in the releases that have .go.module. */
#define MODULE_TEXT_AT 176

/* The first eight bytes: the format, padding, unit of code 1, pointers of 8 bytes. */
#define START_1_18 0x08010000fffffff0ull
#define START_1_20 0x08010000fffffff1ull
/* The header of both, and how many functions have to agree with it. */
#define HEADER_BYTES 72
#define PROOFS	     16

struct goplace_bytes {
	const uint8_t *bytes;
	uint64_t n;
};

/* UINT64_MAX behind the end: no number that is looked at is so large. */
static uint64_t goplace_number(const struct goplace_bytes *in, uint64_t offset, unsigned n)
{
	struct cursor c;

	if (offset > in->n || in->n - offset < n)
		return UINT64_MAX;
	c = cursor_over(in->bytes + offset, n);
	return cursor_number(&c, n);
}

/* Whether the first functions of what may be a table follow each other, and each says so itself. */
static bool goplace_is_table(const struct goplace_bytes *in)
{
	uint64_t functions = goplace_number(in, 8, 8), table = goplace_number(in, 64, 8);

	if (functions == 0 || functions > in->n / 8 || table > in->n)
		return false;
	for (unsigned part = 32; part < 64; part += 8)
		if (goplace_number(in, part, 8) < HEADER_BYTES ||
		    goplace_number(in, part, 8) > goplace_number(in, part + 8, 8))
			return false;
	for (uint64_t i = 0; i < functions && i < PROOFS; i++) {
		uint64_t start = goplace_number(in, table + 8 * i, 4);
		uint64_t record = goplace_number(in, table + 8 * i + 4, 4);

		if (goplace_number(in, table + 8 * i + 8, 4) <= start ||
		    goplace_number(in, table + record, 4) != start)
			return false;
	}
	return true;
}

static int goplace_search(struct elffile *file, struct goplace *place)
{
	struct goplace_bytes in;
	const uint8_t *bytes;
	GElf_Shdr header;
	int err;

	if (elfparts_find(file, ".note.go.buildid", &header) &&
	    elfparts_find(file, ".go.buildinfo", &header))
		return -ENOENT;
	err = elfparts_find(file, ".data.rel.ro", &header);
	if (err || header.sh_size > GOPLACE_SEARCH_MAX)
		return err ? err : -ENOENT;
	err = elfparts_section(file, ".data.rel.ro", &header, &bytes);
	for (uint64_t i = 0; !err && header.sh_size - i >= HEADER_BYTES; i += 8) {
		uint64_t start;

		in = (struct goplace_bytes){bytes + i, header.sh_size - i};
		start = goplace_number(&in, 0, 8);
		if ((start != START_1_18 && start != START_1_20) || !goplace_is_table(&in))
			continue;
		*place = (struct goplace){header.sh_offset + i, header.sh_addr + i, in.n};
		return 0;
	}
	return err ? err : -ENOENT;
}

int goplace_find(struct elffile *file, struct goplace *place)
{
	static const char *const sections[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	GElf_Shdr header;
	int err = -ENOENT;

	for (size_t i = 0; err == -ENOENT && i < sizeof(sections) / sizeof(sections[0]); i++)
		err = elfparts_find(file, sections[i], &header);
	if (err == -ENOENT)
		return goplace_search(file, place);
	if (err)
		return err;
	if (header.sh_type == SHT_NOBITS || (header.sh_flags & SHF_COMPRESSED) ||
	    header.sh_offset > UINT64_MAX - header.sh_size)
		return -ENOENT;
	*place = (struct goplace){header.sh_offset, header.sh_addr, header.sh_size};
	return 0;
}

/* What the dynamic linker will write to an address; 0 when it writes nothing. */
static uint64_t goplace_relocated(struct elffile *file, uint64_t vaddr)
{
	static const char *const sections[] = {".rela.dyn", ".rela"};
	const uint8_t *bytes;
	GElf_Shdr header;

	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		struct cursor c;

		if (elfparts_find(file, sections[i], &header) ||
		    header.sh_size > GOPLACE_RELA_MAX ||
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
static uint64_t goplace_module_text(struct elffile *file, uint64_t table)
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
	if (found != table && (found || goplace_relocated(file, header.sh_addr) != table))
		return 0;
	c = cursor_over(bytes + MODULE_TEXT_AT, 8);
	found = cursor_number(&c, 8);
	return found ? found : goplace_relocated(file, header.sh_addr + MODULE_TEXT_AT);
}

static void goplace_find_text(void *arg, const struct elffile_symbol *symbol)
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
uint64_t goplace_text(struct elffile *file, uint64_t table_vaddr, uint64_t header)
{
	uint64_t text = header;
	GElf_Shdr section;

	if (!text)
		text = goplace_module_text(file, table_vaddr);
	if (!text)
		text = goplace_relocated(file, table_vaddr + 24);
	if (!text)
		elffile_symbols(file, false, goplace_find_text, &text);
	if (!text && elfparts_find(file, ".text", &section) == 0)
		text = section.sh_addr;
	return text;
}
