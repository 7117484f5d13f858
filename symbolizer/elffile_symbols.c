/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <gelf.h>
#include <string.h>

#include "symbolizer/elffile.h"
#include "symbolizer/sections.h"

#define NAME_BYTES_MAX 4096

/* A table and its names, as they are in the file or unpacked. */
struct symtab {
	const uint8_t *symbols;
	const char *names;
	uint64_t symbols_n, names_bytes;
};

static Elf_Scn *elffile_find_section(struct elffile *file, uint32_t type, GElf_Shdr *header)
{
	for (Elf_Scn *s = elf_nextscn(file->elf, NULL); s; s = elf_nextscn(file->elf, s))
		if (gelf_getshdr(s, header) && header->sh_type == type)
			return s;
	return NULL;
}

static bool elffile_executable_address(const struct elffile *file, uint64_t vaddr)
{
	for (uint32_t i = 0; i < file->segments_n; i++)
		if (vaddr >= file->segments[i].vaddr &&
		    vaddr - file->segments[i].vaddr < file->segments[i].bytes)
			return true;
	return false;
}

static bool elffile_wanted(struct elffile *file, const Elf64_Sym *sym, const char *name)
{
	GElf_Shdr section;
	int type = ELF64_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || !elffile_executable_address(file, sym->st_value))
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	/* Labels of hand-written assembly; $x and .L are marks of assemblers, not names. */
	if (type != STT_NOTYPE || sym->st_shndx >= SHN_LORESERVE || name[0] == '$' ||
	    name[0] == '.')
		return false;
	return gelf_getshdr(elf_getscn(file->elf, sym->st_shndx), &section) &&
	       (section.sh_flags & SHF_EXECINSTR);
}

static long elffile_each(struct elffile *file, const struct symtab *tab, elffile_symbol_fn *fn,
			 void *arg)
{
	long found = 0;

	for (uint64_t i = 1; i < tab->symbols_n; i++) {
		struct elffile_symbol symbol;
		const char *name;
		size_t left;
		Elf64_Sym sym; /* a table may lie anywhere */

		memcpy(&sym, tab->symbols + i * sizeof(sym), sizeof(sym));
		if (sym.st_name >= tab->names_bytes)
			continue;
		name = tab->names + sym.st_name;
		left = tab->names_bytes - sym.st_name;
		if (name[0] == 0 || !elffile_wanted(file, &sym, name))
			continue;
		symbol = (struct elffile_symbol){
		    .value = sym.st_value,
		    .size = sym.st_size,
		    .name = name,
		    .name_bytes =
			(uint32_t)strnlen(name, left < NAME_BYTES_MAX ? left : NAME_BYTES_MAX),
		    .type = ELF64_ST_TYPE(sym.st_info),
		    .bind = ELF64_ST_BIND(sym.st_info),
		};
		fn(arg, &symbol);
		found++;
	}
	return found;
}

/* Both at once, which is what the ring is good for. */
static int elffile_plain_tables(struct elffile *file, const GElf_Shdr *header,
				const GElf_Shdr *names, struct symtab *tab)
{
	int err = elffile_load(file,
			       (const uint64_t[2][2]){{header->sh_offset, header->sh_size},
						      {names->sh_offset, names->sh_size}},
			       2);

	if (err)
		return err;
	tab->symbols = (const uint8_t *)file->image + header->sh_offset;
	tab->symbols_n = header->sh_size / sizeof(Elf64_Sym);
	tab->names = file->image + names->sh_offset;
	tab->names_bytes = names->sh_size;
	return 0;
}

static int elffile_unpack_table(struct elffile *file, const GElf_Shdr *header,
				struct unpacked *unpacked, struct section *section)
{
	int err = 0;

	if (unpacked->data)
		*section = (struct section){.data = unpacked->data, .bytes = unpacked->bytes};
	else
		err = sections_read(file, header, false, section);
	if (err == 0 && section->unpacked.data)
		*unpacked = section->unpacked;
	return err;
}

/* eu-elfcompress packs these tables too, when it is told to pack everything. */
static int elffile_packed_tables(struct elffile *file, const GElf_Shdr *header,
				 const GElf_Shdr *names, struct symtab *tab)
{
	struct section symbols, strings;
	int err = elffile_unpack_table(file, header, &file->unpacked[0], &symbols);

	if (err == 0)
		err = elffile_unpack_table(file, names, &file->unpacked[1], &strings);
	if (err)
		return err;
	tab->symbols = symbols.data;
	tab->symbols_n = symbols.bytes / sizeof(Elf64_Sym);
	tab->names = (const char *)strings.data;
	tab->names_bytes = strings.bytes;
	return 0;
}

long elffile_symbols(struct elffile *file, bool dynamic, elffile_symbol_fn *fn, void *arg)
{
	GElf_Shdr header, names;
	Elf_Scn *section, *linked;
	struct symtab tab;
	bool packed;
	int err;

	section = elffile_find_section(file, dynamic ? SHT_DYNSYM : SHT_SYMTAB, &header);
	if (!section || header.sh_link >= ELFFILE_SECTIONS_MAX)
		return -ENOENT;
	linked = elf_getscn(file->elf, header.sh_link);
	if (!linked || !gelf_getshdr(linked, &names) || names.sh_type != SHT_STRTAB)
		return -ENOENT;
	packed = (header.sh_flags | names.sh_flags) & SHF_COMPRESSED;
	/* What the loader needs cannot be packed. */
	if (header.sh_size == 0 || names.sh_size == 0 || (dynamic && packed))
		return -ENOENT;
	if (header.sh_size / sizeof(Elf64_Sym) > ELFFILE_SYMBOLS_MAX)
		return -EFBIG;
	err = (packed ? elffile_packed_tables : elffile_plain_tables)(file, &header, &names, &tab);
	if (err)
		return err;
	return tab.symbols_n > ELFFILE_SYMBOLS_MAX ? -EFBIG : elffile_each(file, &tab, fn, arg);
}
