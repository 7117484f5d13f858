/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/gomodule.h"

#include <string.h>

#include "symbolizer/elfparts.h"

#define GOMODULE_SECTION_MAX (64u << 20)
#define GOMODULE_TRIES_MAX   8 /* places that begin as it does */

/*
 * Words of struct moduledata (runtime/symtab.go). A slice is three: address, length, room. Behind
 * the text gofunc is word 38 in 1.18, 40 from 1.20 to 1.26 and 43 in 1.27.
 */
enum gomodule_word {
	WORD_TABLE = 0,
	WORD_NAMES = 1,
	WORD_UNITS = 4,
	WORD_FILES = 7,
	WORD_STEPS = 10,
	WORD_FUNCTIONS = 13,
	WORD_ENTRIES = 16,
	WORD_ENTRIES_N = 17,
	WORD_START = 20,
	WORD_END = 21,
	WORD_TEXT = 22,
	WORD_PARTS = 38,
	WORDS = WORD_PARTS + GOMODULE_PARTS,
};

struct gomodule {
	struct elffile *file;
	const struct pclntab *tab;
	uint64_t start, end;	    /* of all functions */
	const uint8_t *relocations; /* Elf64_Rela */
	uint64_t relocations_n;
	unsigned tries;
	uint64_t words[WORDS];
};

static Elf64_Rela gomodule_relocation(const struct gomodule *m, uint64_t i)
{
	Elf64_Rela rela;

	memcpy(&rela, m->relocations + i * sizeof(rela), sizeof(rela));
	return rela;
}

static void gomodule_read_relocations(struct gomodule *m)
{
	static const char *const sections[] = {".rela.dyn", ".rela"};
	GElf_Shdr header;

	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (elfparts_find(m->file, sections[i], &header) ||
		    header.sh_size > GOMODULE_SECTION_MAX ||
		    elfparts_section(m->file, sections[i], &header, &m->relocations))
			continue;
		m->relocations_n = header.sh_size / sizeof(Elf64_Rela);
		return;
	}
}

/* Linkers other than Go's leave zeros where the dynamic linker is to write. */
static void gomodule_relocate(struct gomodule *m, uint64_t vaddr)
{
	for (uint64_t i = 0; i < m->relocations_n; i++) {
		Elf64_Rela rela = gomodule_relocation(m, i);

		if (ELF64_R_TYPE(rela.r_info) == R_X86_64_RELATIVE && rela.r_offset >= vaddr &&
		    rela.r_offset - vaddr < sizeof(m->words) && (rela.r_offset - vaddr) % 8 == 0)
			m->words[(rela.r_offset - vaddr) / 8] = (uint64_t)rela.r_addend;
	}
}

static bool gomodule_is_true(const struct gomodule *m)
{
	const struct pclntab *tab = m->tab;
	const uint64_t *words = m->words;

	return words[WORD_TABLE] == tab->vaddr && words[WORD_NAMES] == tab->vaddr + tab->names &&
	       words[WORD_UNITS] == tab->vaddr + tab->units &&
	       words[WORD_FILES] == tab->vaddr + tab->files &&
	       words[WORD_STEPS] == tab->vaddr + tab->steps &&
	       words[WORD_FUNCTIONS] == tab->vaddr + tab->table &&
	       words[WORD_ENTRIES] == tab->vaddr + tab->table &&
	       words[WORD_ENTRIES_N] == tab->functions + 1ull && words[WORD_TEXT] == tab->text &&
	       words[WORD_START] == m->start && words[WORD_END] == m->end;
}

static bool gomodule_try(struct gomodule *m, uint64_t vaddr)
{
	const uint8_t *bytes;

	if (m->tries++ >= GOMODULE_TRIES_MAX)
		return false;
	bytes = elfparts_data(m->file, vaddr, sizeof(m->words));
	if (!bytes)
		return false;
	memcpy(m->words, bytes, sizeof(m->words));
	gomodule_relocate(m, vaddr);
	return gomodule_is_true(m);
}

static bool gomodule_in_section(struct gomodule *m, const char *name)
{
	const uint8_t *bytes;
	GElf_Shdr header;
	uint64_t word;

	if (elfparts_find(m->file, name, &header) || header.sh_size > GOMODULE_SECTION_MAX ||
	    elfparts_section(m->file, name, &header, &bytes))
		return false;
	for (uint64_t i = 0; i + sizeof(m->words) <= header.sh_size; i += 8) {
		memcpy(&word, bytes + i, sizeof(word));
		if (word == m->tab->vaddr && gomodule_try(m, header.sh_addr + i))
			return true;
	}
	return false;
}

static bool gomodule_in_relocations(struct gomodule *m)
{
	for (uint64_t i = 0; i < m->relocations_n; i++) {
		Elf64_Rela rela = gomodule_relocation(m, i);

		if (ELF64_R_TYPE(rela.r_info) == R_X86_64_RELATIVE &&
		    (uint64_t)rela.r_addend == m->tab->vaddr && gomodule_try(m, rela.r_offset))
			return true;
	}
	return false;
}

bool gomodule_find(struct elffile *file, const struct pclntab *tab, uint64_t parts[GOMODULE_PARTS])
{
	/* A section of its own since 1.26; else among the data without pointers to the heap. */
	static const char *const sections[] = {".go.module", ".noptrdata", ".data", ".data.rel.ro"};
	struct gomodule m = {.file = file, .tab = tab};
	struct pclntab_function first, last;
	bool found = false;

	if (!tab->functions || !pclntab_function(tab, 0, &first) ||
	    !pclntab_function(tab, tab->functions - 1, &last))
		return false;
	m.start = first.start;
	m.end = last.end;
	gomodule_read_relocations(&m);
	for (size_t i = 0; !found && i < sizeof(sections) / sizeof(sections[0]); i++)
		found = gomodule_in_section(&m, sections[i]);
	if (!found && !gomodule_in_relocations(&m))
		return false;
	memcpy(parts, m.words + WORD_PARTS, GOMODULE_PARTS * sizeof(parts[0]));
	return true;
}
