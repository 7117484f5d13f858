/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/symbolizer/dwarf_program.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
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

/* A file that has debug information alone has its code without bytes. */
static void dwarf_program_segments(struct elffile *file)
{
	GElf_Phdr phdr;
	size_t n = 0;

	if (file->segments_n || elf_getphdrnum(file->elf, &n))
		return;
	for (size_t i = 0; i < n && file->segments_n < ELFFILE_SEGMENTS_MAX; i++)
		if (gelf_getphdr(file->elf, (int)i, &phdr) && phdr.p_type == PT_LOAD &&
		    (phdr.p_flags & PF_X))
			file->segments[file->segments_n++] =
			    (struct elffile_segment){phdr.p_offset, phdr.p_vaddr, phdr.p_memsz};
}

/* Where its debug file would be, in the root that is so many folders above it. */
static bool dwarf_program_debug_path(struct dwarf_program *p, const char *program, unsigned above)
{
	char root[DWARF_PROGRAM_PATH];
	struct elffile_ids ids;
	int n;

	elffile_build_ids(&p->file, &ids);
	if (strlen(ids.gnu) < 4 || !realpath(program, root))
		return false;
	for (unsigned i = 0; i <= above; i++) {
		if (!root[0])
			return false;
		*strrchr(root, '/') = 0;
	}
	n = snprintf(p->debug_path, sizeof(p->debug_path),
		     "%s/usr/lib/debug/.build-id/%.2s/%s.debug", root, ids.gnu, ids.gnu + 2);
	return n > 0 && (size_t)n < sizeof(p->debug_path);
}

/* As symbolizer/filenames takes it: symbols and debug information of the other one, if it lacks
 * them. */
static bool dwarf_program_open_debug(struct dwarf_program *p, const char *program)
{
	GElf_Shdr header;

	if (elfparts_find(&p->file, ".debug_info", &header) == 0 ||
	    elfparts_find(&p->file, ".zdebug_info", &header) == 0)
		return false;
	for (unsigned above = 0; dwarf_program_debug_path(p, program, above); above++)
		if (dwarf_program_elf(p, &p->debug, p->debug_path)) {
			memcpy(p->debug.segments, p->file.segments, sizeof(p->debug.segments));
			p->debug.segments_n = p->file.segments_n;
			return true;
		}
	p->debug_path[0] = 0;
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
	dwarf_program_segments(&p->file);
	p->named = &p->file;
	if (dwarf_program_open_debug(p, path))
		p->named = parts.debug = &p->debug;
	snprintf(p->directory, sizeof(p->directory), "%.*s", slash ? (int)(slash - path) : 1,
		 slash ? path : ".");
	if (dwarf_program_elf(p, &alt_file, alt))
		parts.alt = &alt_file;
	if (dwarf_program_elf(p, &dwp_file, dwp))
		parts.dwp = &dwp_file;
	p->symbols = symbols_build(p->named, SYMBOL_BYTES_MAX);
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
	elffile_close(&p->debug);
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
