/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/symbolizer/dwarf_libdw.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHAIN_MAX 256

struct dwarf_libdw {
	int fd, alt_fd;
	Dwarf *dwarf, *alt;
	Dwarf_Die *units; /* their roots */
	size_t units_n;
};

/* Its own search goes by .debug_aranges, which not all compilers write. */
static bool libdw_units(struct dwarf_libdw *libdw)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die root;
	uint8_t type;

	while (dwarf_get_units(libdw->dwarf, unit, &unit, NULL, &type, &root, NULL) == 0) {
		Dwarf_Die *grown;

		if (type != DW_UT_compile)
			continue;
		grown = realloc(libdw->units, (libdw->units_n + 1) * sizeof(*grown));
		if (!grown)
			return false;
		libdw->units = grown;
		libdw->units[libdw->units_n++] = root;
	}
	return libdw->units_n;
}

static Dwarf *libdw_begin(const char *path, int *fd)
{
	*fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	return *fd < 0 ? NULL : dwarf_begin(*fd, DWARF_C_READ);
}

struct dwarf_libdw *dwarf_libdw_open(const char *path, const char *alt)
{
	struct dwarf_libdw *libdw = calloc(1, sizeof(*libdw));

	if (!libdw)
		return NULL;
	libdw->dwarf = libdw_begin(path, &libdw->fd);
	libdw->alt = libdw_begin(alt, &libdw->alt_fd);
	if (libdw->dwarf && libdw->alt)
		dwarf_setalt(libdw->dwarf, libdw->alt);
	if (libdw->dwarf && libdw_units(libdw))
		return libdw;
	dwarf_libdw_close(libdw);
	return NULL;
}

void dwarf_libdw_close(struct dwarf_libdw *libdw)
{
	if (!libdw)
		return;
	dwarf_end(libdw->dwarf);
	dwarf_end(libdw->alt);
	if (libdw->fd >= 0)
		close(libdw->fd);
	if (libdw->alt_fd >= 0)
		close(libdw->alt_fd);
	free(libdw->units);
	free(libdw);
}

static Dwarf_Die *libdw_unit_of(struct dwarf_libdw *libdw, uint64_t vaddr)
{
	for (size_t i = 0; i < libdw->units_n; i++)
		if (dwarf_haspc(&libdw->units[i], vaddr) > 0)
			return &libdw->units[i];
	return NULL;
}

static const char *libdw_name(Dwarf_Die *die)
{
	static const unsigned names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name};
	Dwarf_Attribute attribute;

	for (int i = 0; i < 2; i++)
		if (dwarf_attr_integrate(die, names[i], &attribute))
			return dwarf_formstring(&attribute);
	return dwarf_diename(die);
}

static unsigned libdw_number(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	return dwarf_attr(die, name, &attribute) && dwarf_formudata(&attribute, &value) == 0
		   ? (unsigned)value
		   : 0;
}

static const char *libdw_file(Dwarf_Die *unit, unsigned number)
{
	Dwarf_Files *files;
	size_t n;

	return dwarf_getsrcfiles(unit, &files, &n) == 0 && number < n
		   ? dwarf_filesrc(files, number, NULL, NULL)
		   : NULL;
}

/* libdw leaves names relative to where the compiler ran as they are. */
static const char *libdw_whole(Dwarf_Die *unit, const char *file, char whole[PATH_MAX])
{
	Dwarf_Attribute attribute;
	const char *directory =
	    dwarf_attr(unit, DW_AT_comp_dir, &attribute) ? dwarf_formstring(&attribute) : NULL;

	if (!file || file[0] == '/' || !directory)
		return file;
	snprintf(whole, PATH_MAX, "%s/%s", directory, file);
	return whole;
}

static bool libdw_is_function(Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_subprogram || dwarf_tag(die) == DW_TAG_inlined_subroutine;
}

/* By its own search for scopes, innermost first. */
static int libdw_scopes(Dwarf_Die *unit, uint64_t vaddr, Dwarf_Die chain[CHAIN_MAX])
{
	Dwarf_Die *scopes = NULL, *around = NULL;
	int n = dwarf_getscopes(unit, vaddr, &scopes), functions = 0;

	/* From the innermost entry outwards, as they stand in one another. */
	n = n > 0 ? dwarf_getscopes_die(&scopes[0], &around) : 0;
	for (int i = 0; i < n && functions < CHAIN_MAX; i++)
		if (libdw_is_function(&around[i]))
			chain[functions++] = around[i];
	free(scopes);
	free(around);
	return functions;
}

/* Entries without code that functions with code may stand in: those of lambdas in others. */
static bool libdw_may_hold(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_subprogram || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

/*
 * That gives up where a function stands in a namespace or class, and where what is inlined comes
 * from another unit (-flto). So the same once more, entry by entry.
 */
static int libdw_walk(Dwarf_Die *around, uint64_t vaddr, Dwarf_Die chain[CHAIN_MAX])
{
	Dwarf_Die die;
	int n = 0;

	if (dwarf_child(around, &die))
		return 0;
	do {
		bool has = dwarf_haspc(&die, vaddr) > 0;

		if (!has && !libdw_may_hold(dwarf_tag(&die)))
			continue;
		n = libdw_walk(&die, vaddr, chain);
		if (has && libdw_is_function(&die) && n < CHAIN_MAX)
			chain[n++] = die;
		if (has || n)
			return n;
	} while (dwarf_siblingof(&die, &die) == 0);
	return n;
}

void dwarf_libdw_find(struct dwarf_libdw *libdw, uint64_t vaddr, dwarf_libdw_frame_fn *fn,
		      void *arg)
{
	Dwarf_Die *unit = libdw_unit_of(libdw, vaddr), chain[CHAIN_MAX];
	Dwarf_Line *row = unit ? dwarf_getsrc_die(unit, vaddr) : NULL;
	const char *file = row ? dwarf_linesrc(row, NULL, NULL) : NULL;
	int line = 0, n = unit ? libdw_scopes(unit, vaddr, chain) : 0;
	char whole[PATH_MAX];

	if (unit && n == 0)
		n = libdw_walk(unit, vaddr, chain);
	if (row)
		dwarf_lineno(row, &line);
	if (n == 0 && row)
		fn(arg, NULL, libdw_whole(unit, file, whole), (unsigned)line);
	for (int i = 0; i < n; i++) {
		fn(arg, libdw_name(&chain[i]), libdw_whole(unit, file, whole), (unsigned)line);
		if (dwarf_tag(&chain[i]) == DW_TAG_subprogram)
			break;
		file = libdw_file(unit, libdw_number(&chain[i], DW_AT_call_file));
		line = (int)libdw_number(&chain[i], DW_AT_call_line);
	}
}
