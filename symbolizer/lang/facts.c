/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic section and what it points to: relocations, needed libraries; static data. */
#include "symbolizer/lang/facts.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>

#include "symbolizer/elfparts.h"

#define DYNAMIC_BYTES_MAX 65536
#define NAME_BYTES_MAX	  256

static bool facts_segment(struct facts *facts, uint32_t type, GElf_Phdr *phdr)
{
	size_t n = 0;

	if (elf_getphdrnum(facts->elf->elf, &n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(facts->elf->elf, (int)i, phdr) && phdr->p_type == type)
			return true;
	return false;
}

/* The next entry of the dynamic section; false behind the last one. */
static bool facts_next(const struct facts *facts, const uint8_t *dynamic, uint64_t *at,
		       Elf64_Dyn *dyn)
{
	if (facts->dynamic_bytes - *at < sizeof(*dyn))
		return false;
	memcpy(dyn, dynamic + *at, sizeof(*dyn));
	*at += sizeof(*dyn);
	return dyn->d_tag != DT_NULL;
}

static void facts_take(struct facts *facts, const Elf64_Dyn *dyn)
{
	switch (dyn->d_tag) {
	case DT_SYMTAB:
		facts->symbols = dyn->d_un.d_ptr;
		break;
	case DT_STRTAB:
		facts->strings = dyn->d_un.d_ptr;
		break;
	case DT_STRSZ:
		facts->strings_bytes = dyn->d_un.d_val;
		break;
	case DT_GNU_HASH:
		facts->gnu_hash = dyn->d_un.d_ptr;
		break;
	case DT_HASH:
		facts->hash = dyn->d_un.d_ptr;
		break;
	case DT_RELA:
		facts->relocs[0].vaddr = dyn->d_un.d_ptr;
		break;
	case DT_RELASZ:
		facts->relocs[0].bytes = dyn->d_un.d_val;
		break;
	case DT_JMPREL:
		facts->relocs[1].vaddr = dyn->d_un.d_ptr;
		break;
	case DT_PLTRELSZ:
		facts->relocs[1].bytes = dyn->d_un.d_val;
		break;
	}
}

int facts_open(struct facts *facts, struct elffile *elf)
{
	const uint8_t *dynamic;
	GElf_Ehdr header;
	GElf_Phdr phdr;
	uint64_t at = 0;
	Elf64_Dyn dyn;

	memset(facts, 0, sizeof(*facts));
	facts->elf = elf;
	if (!gelf_getehdr(elf->elf, &header) || header.e_machine != EM_X86_64)
		return -ENOTSUP;
	if (facts_segment(facts, PT_GNU_RELRO, &phdr)) {
		facts->constant = phdr.p_vaddr;
		facts->constant_end = phdr.p_vaddr + phdr.p_memsz;
	}
	if (!facts_segment(facts, PT_DYNAMIC, &phdr) || phdr.p_filesz > DYNAMIC_BYTES_MAX)
		return 0;
	dynamic = elffile_bytes(elf, phdr.p_offset, phdr.p_filesz);
	if (!dynamic)
		return 0;
	facts->dynamic = phdr.p_offset;
	facts->dynamic_bytes = phdr.p_filesz;
	while (facts_next(facts, dynamic, &at, &dyn))
		facts_take(facts, &dyn);
	return 0;
}

bool facts_read(struct facts *facts, uint64_t vaddr, void *to, size_t bytes)
{
	const uint8_t *from = elfparts_data(facts->elf, vaddr, bytes);

	if (from)
		memcpy(to, from, bytes);
	return from;
}

bool facts_text(struct facts *facts, uint64_t vaddr, char *to, size_t size)
{
	struct elffile_segment segment;
	uint64_t left;

	if (!elfparts_loaded(facts->elf, vaddr, &segment))
		return false;
	left = segment.bytes - (vaddr - segment.vaddr);
	if (left > size)
		left = size;
	return facts_read(facts, vaddr, to, left) && memchr(to, 0, left);
}

/* Is the text of a dynamic string this one, or does it begin so? */
static bool facts_string_is(struct facts *facts, uint64_t string, const char *name, bool begins)
{
	size_t bytes = strlen(name) + (begins ? 0 : 1);
	char text[NAME_BYTES_MAX];

	return bytes <= sizeof(text) && string < facts->strings_bytes &&
	       bytes <= facts->strings_bytes - string &&
	       facts_read(facts, facts->strings + string, text, bytes) &&
	       memcmp(text, name, bytes) == 0;
}

/* --- Relocations. --- */

/* The relocations of one kind, read once. */
static const uint8_t *facts_relocs(struct facts *facts, int kind, uint64_t *n)
{
	*n = facts->relocs[kind].bytes / sizeof(Elf64_Rela);
	if (*n == 0 || *n > FACTS_RELOCS_MAX)
		return NULL;
	if (!facts->relocs[kind].at)
		facts->relocs[kind].at =
		    elfparts_data(facts->elf, facts->relocs[kind].vaddr, *n * sizeof(Elf64_Rela));
	return facts->relocs[kind].at;
}

static bool facts_symbol_named(struct facts *facts, uint64_t index, const char *name)
{
	Elf64_Sym sym;

	return index &&
	       facts_read(facts, facts->symbols + index * sizeof(sym), &sym, sizeof(sym)) &&
	       facts_string_is(facts, sym.st_name, name, false);
}

int facts_relocation(struct facts *facts, const char *name, uint32_t type, uint64_t *vaddr)
{
	for (int kind = 0; kind < 2; kind++) {
		uint64_t n, wrong = 0;
		const uint8_t *relocs = facts_relocs(facts, kind, &n);

		for (uint64_t i = 0; relocs && i < n; i++) {
			Elf64_Rela r;

			memcpy(&r, relocs + i * sizeof(r), sizeof(r));
			/* Those of one symbol stand together. */
			if (ELF64_R_TYPE(r.r_info) != type || ELF64_R_SYM(r.r_info) == wrong)
				continue;
			if (facts_symbol_named(facts, ELF64_R_SYM(r.r_info), name)) {
				*vaddr = r.r_offset;
				return 0;
			}
			wrong = ELF64_R_SYM(r.r_info);
		}
	}
	return -ENOENT;
}

static bool facts_relocation_at(struct facts *facts, uint64_t vaddr, Elf64_Rela *rela)
{
	for (int kind = 0; kind < 2; kind++) {
		uint64_t n;
		const uint8_t *relocs = facts_relocs(facts, kind, &n);

		for (uint64_t i = 0; relocs && i < n; i++) {
			memcpy(rela, relocs + i * sizeof(*rela), sizeof(*rela));
			if (rela->r_offset == vaddr)
				return true;
		}
	}
	return false;
}

uint32_t facts_relocation_type(struct facts *facts, uint64_t vaddr)
{
	Elf64_Rela rela;

	return facts_relocation_at(facts, vaddr, &rela) ? ELF64_R_TYPE(rela.r_info) : R_X86_64_NONE;
}

int facts_pointer(struct facts *facts, uint64_t vaddr, uint64_t *pointer)
{
	Elf64_Rela rela;
	Elf64_Sym sym;

	if (!facts_relocation_at(facts, vaddr, &rela))
		return facts_read(facts, vaddr, pointer, sizeof(*pointer)) && *pointer ? 0
										       : -ENOENT;
	switch (ELF64_R_TYPE(rela.r_info)) {
	case R_X86_64_RELATIVE:
		*pointer = (uint64_t)rela.r_addend;
		return 0;
	case R_X86_64_GLOB_DAT:
	case R_X86_64_64:
		if (!facts_read(facts, facts->symbols + ELF64_R_SYM(rela.r_info) * sizeof(sym),
				&sym, sizeof(sym)) ||
		    sym.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(sym.st_info) == STT_TLS)
			return -ENOENT;
		*pointer = sym.st_value + (uint64_t)rela.r_addend;
		return 0;
	}
	return -ENOENT;
}

/* --- Libraries. --- */

bool facts_needs(struct facts *facts, const char *prefix)
{
	const uint8_t *dynamic;
	uint64_t at = 0;
	Elf64_Dyn dyn;

	dynamic = facts->dynamic_bytes
		      ? elffile_bytes(facts->elf, facts->dynamic, facts->dynamic_bytes)
		      : NULL;
	while (dynamic && facts_next(facts, dynamic, &at, &dyn))
		if (dyn.d_tag == DT_NEEDED && facts_string_is(facts, dyn.d_un.d_val, prefix, true))
			return true;
	return false;
}

/* musl is called libc.musl-x86_64.so.1 or, by its own linker script, libc.so; glibc libc.so.6. */
enum table_libc facts_libc(struct facts *facts)
{
	char path[NAME_BYTES_MAX];
	GElf_Phdr phdr;

	if (facts_needs(facts, "libc.so.6"))
		return TABLE_GLIBC;
	if (facts_needs(facts, "libc.musl-") || facts_needs(facts, "libc.so"))
		return TABLE_MUSL;
	if (facts_segment(facts, PT_INTERP, &phdr) &&
	    facts_text(facts, phdr.p_vaddr, path, sizeof(path)) && strstr(path, "ld-musl"))
		return TABLE_MUSL;
	return TABLE_GLIBC;
}
