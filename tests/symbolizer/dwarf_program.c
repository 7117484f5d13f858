/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/symbolizer/dwarf_program.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolizer/elfparts.h"

#define SYMBOL_BYTES_MAX (256u << 20)

static bool dwarf_program_elf(struct dwarf_program *p, struct elffile *file, const char *path)
{
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1, slot;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return false;
	slot = reader_add(&p->reader, fd);
	if (elffile_open(file, &p->reader, slot, (uint64_t)st.st_size) == 0)
		return true;
	reader_remove(&p->reader, slot);
	return false;
}

bool dwarf_program_open(struct dwarf_program *p, const char *path, const char *alt, const char *dwp,
			size_t bytes_max)
{
	static struct elffile alt_file, dwp_file;
	struct dwarf_parts parts = {.debug = &p->file};
	const char *slash = strrchr(path, '/');

	memset(p, 0, sizeof(*p));
	reader_open(&p->reader, false);
	if (!dwarf_program_elf(p, &p->file, path))
		return false;
	snprintf(p->directory, sizeof(p->directory), "%.*s", slash ? (int)(slash - path) : 1,
		 slash ? path : ".");
	if (dwarf_program_elf(p, &alt_file, alt))
		parts.alt = &alt_file;
	if (dwarf_program_elf(p, &dwp_file, dwp))
		parts.dwp = &dwp_file;
	p->symbols = symbols_build(&p->file, SYMBOL_BYTES_MAX);
	p->dwarf = dwarf_open(&parts, bytes_max);
	if (parts.alt)
		elffile_close(&alt_file);
	if (parts.dwp)
		elffile_close(&dwp_file);
	return true;
}

void dwarf_program_close(struct dwarf_program *p)
{
	dwarf_close(p->dwarf);
	symbols_free(p->symbols);
	elffile_close(&p->file);
	reader_close(&p->reader);
}

static bool dwarf_program_give(struct dwarf_program *p)
{
	static struct elffile dwo;
	char path[2 * DWARF_PROGRAM_PATH];
	struct dwarf_want want;
	bool found;
	int err;

	if (!dwarf_wants(p->dwarf, &want))
		return false;
	snprintf(path, sizeof(path), "%s/%s", p->directory, want.name);
	found = dwarf_program_elf(p, &dwo, path);
	err = dwarf_give(p->dwarf, want.dwo_id, found ? &dwo : NULL);
	if (found)
		elffile_close(&dwo);
	p->dwos += found && err == 0;
	p->dwos_missing += !found || err;
	return found && err == 0;
}

void dwarf_program_find(struct dwarf_program *p, uint64_t vaddr, struct lines *lines)
{
	const char *symbol = p->symbols ? symbols_find(p->symbols, vaddr) : NULL;

	lines->n = 0;
	if (p->dwarf) {
		dwarf_find(p->dwarf, vaddr, symbol, lines);
		if (dwarf_program_give(p))
			dwarf_find(p->dwarf, vaddr, symbol, lines);
	}
	if (lines->n == 0 && symbol)
		lines->line[lines->n++] = (struct line){.name = symbol};
}

uint64_t dwarf_program_code(struct dwarf_program *p, uint64_t *bytes)
{
	GElf_Shdr header;

	*bytes = 0;
	if (elfparts_find(&p->file, ".text", &header))
		return 0;
	*bytes = header.sh_size;
	return header.sh_addr;
}
