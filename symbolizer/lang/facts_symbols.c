/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols by name: through the hash tables that the dynamic linker uses, else one by one. */
#include <errno.h>
#include <gelf.h>
#include <string.h>

#include "symbolizer/lang/facts.h"

#define CHAIN_MAX 65536 /* symbols of one bucket; a linker makes them of about three */
#define NAME_MAX_ 256

static bool facts_is(struct facts *facts, const Elf64_Sym *sym, const char *name)
{
	size_t bytes = strlen(name) + 1;
	char text[NAME_MAX_];

	return sym->st_shndx != SHN_UNDEF && bytes <= sizeof(text) &&
	       sym->st_name < facts->strings_bytes &&
	       bytes <= facts->strings_bytes - sym->st_name &&
	       facts_read(facts, facts->strings + sym->st_name, text, bytes) &&
	       memcmp(text, name, bytes) == 0;
}

static void facts_found(const Elf64_Sym *sym, struct facts_symbol *symbol)
{
	*symbol = (struct facts_symbol){
	    .vaddr = sym->st_value,
	    .size = sym->st_size,
	    .thread_local_ = ELF64_ST_TYPE(sym->st_info) == STT_TLS,
	};
}

static bool facts_try(struct facts *facts, uint64_t index, const char *name,
		      struct facts_symbol *symbol)
{
	Elf64_Sym sym;

	if (!facts_read(facts, facts->symbols + index * sizeof(sym), &sym, sizeof(sym)) ||
	    !facts_is(facts, &sym, name))
		return false;
	facts_found(&sym, symbol);
	return true;
}

/*
 * {buckets, first symbol, words of the filter, shift}, the filter in 8-byte words, the buckets, and
 * for each symbol from the first on its hash, whose lowest bit ends the bucket.
 */
static int facts_by_gnu_hash(struct facts *facts, const char *name, struct facts_symbol *symbol)
{
	uint32_t hash = 5381, head[4], index, word;
	uint64_t filter, buckets, chain;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (uint8_t)*c;
	if (!facts_read(facts, facts->gnu_hash, head, sizeof(head)) || head[0] == 0 ||
	    head[2] == 0 || head[3] >= 32)
		return -ENOENT;
	filter = facts->gnu_hash + sizeof(head);
	buckets = filter + 8 * (uint64_t)head[2];
	chain = buckets + 4 * (uint64_t)head[0];
	if (!facts_read(facts, filter + 8 * (uint64_t)(hash / 64 % head[2]), &filter, 8) ||
	    !(filter >> (hash % 64) & filter >> ((hash >> head[3]) % 64) & 1) ||
	    !facts_read(facts, buckets + 4 * (uint64_t)(hash % head[0]), &index, 4) ||
	    index < head[1])
		return -ENOENT;
	for (uint32_t i = 0; i < CHAIN_MAX; i++, index++) {
		if (!facts_read(facts, chain + 4 * (uint64_t)(index - head[1]), &word, 4))
			return -ENOENT;
		if ((word | 1) == (hash | 1) && facts_try(facts, index, name, symbol))
			return 0;
		if (word & 1)
			break;
	}
	return -ENOENT;
}

/* {buckets, symbols}, the first symbol of each bucket, and for each symbol the next one. */
static int facts_by_hash(struct facts *facts, const char *name, struct facts_symbol *symbol)
{
	uint32_t hash = 0, head[2], index;

	for (const char *c = name; *c; c++) {
		hash = (hash << 4) + (uint8_t)*c;
		hash = (hash ^ (hash & 0xf0000000) >> 24) & 0x0fffffff;
	}
	if (!facts_read(facts, facts->hash, head, sizeof(head)) || head[0] == 0 ||
	    !facts_read(facts, facts->hash + 8 + 4 * (uint64_t)(hash % head[0]), &index, 4))
		return -ENOENT;
	for (uint32_t i = 0; i < CHAIN_MAX && index && index < head[1]; i++) {
		if (facts_try(facts, index, name, symbol))
			return 0;
		if (!facts_read(facts, facts->hash + 8 + 4 * ((uint64_t)head[0] + index), &index,
				4))
			break;
	}
	return -ENOENT;
}

int facts_symbol(struct facts *facts, const char *name, struct facts_symbol *symbol)
{
	if (!facts->symbols || !facts->strings)
		return -ENOENT;
	if (facts->gnu_hash)
		return facts_by_gnu_hash(facts, name, symbol);
	return facts->hash ? facts_by_hash(facts, name, symbol) : -ENOENT;
}

static int facts_pass(struct facts *facts, const GElf_Shdr *header, const GElf_Shdr *names,
		      const char *name, struct facts_symbol *symbol)
{
	size_t bytes = strlen(name) + 1;
	uint64_t n = header->sh_size / sizeof(Elf64_Sym);
	const uint8_t *symbols = elffile_bytes(facts->elf, header->sh_offset, header->sh_size);
	const char *text =
	    (const char *)elffile_bytes(facts->elf, names->sh_offset, names->sh_size);

	for (uint64_t i = 1; symbols && text && i < n; i++) {
		Elf64_Sym sym;

		memcpy(&sym, symbols + i * sizeof(sym), sizeof(sym));
		if (sym.st_shndx == SHN_UNDEF || sym.st_name >= names->sh_size ||
		    bytes > names->sh_size - sym.st_name || memcmp(text + sym.st_name, name, bytes))
			continue;
		facts_found(&sym, symbol);
		return 0;
	}
	return -ENOENT;
}

int facts_any_symbol(struct facts *facts, const char *name, struct facts_symbol *symbol)
{
	Elf *elf = facts->elf->elf;
	GElf_Shdr header, names;

	if (facts_symbol(facts, name, symbol) == 0)
		return 0;
	for (Elf_Scn *s = elf_nextscn(elf, NULL); s; s = elf_nextscn(elf, s)) {
		Elf_Scn *linked;

		if (!gelf_getshdr(s, &header) || header.sh_type != SHT_SYMTAB)
			continue;
		linked =
		    header.sh_link < ELFFILE_SECTIONS_MAX ? elf_getscn(elf, header.sh_link) : NULL;
		if (!linked || !gelf_getshdr(linked, &names) || names.sh_type != SHT_STRTAB ||
		    header.sh_size / sizeof(Elf64_Sym) > ELFFILE_SYMBOLS_MAX ||
		    ((header.sh_flags | names.sh_flags) & SHF_COMPRESSED))
			return -ENOENT;
		return facts_pass(facts, &header, &names, name, symbol);
	}
	return -ENOENT;
}
