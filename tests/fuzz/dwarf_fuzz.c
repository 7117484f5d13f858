/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a program with debug information, and as the file that belongs to it (.dwo, .dwp and
 * dwz's common file at once). An input is four bytes, the length of the program, then the program,
 * then the other file.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolizer/dwarf.h"
#include "symbolizer/reader.h"
#include "tests/fuzz/fuzz.h"

#define BYTES_MAX (1u << 20)
/* Windows on the sections of four files, of which none is larger than an input. */
#define BYTES_SLACK (4u << 20)
#define PROBES	    48

const unsigned fuzz_mutations = 1000;

static const char *const seeds[][2] = {
    {"seed-gcc2", NULL},
    {"seed-gcc3", NULL},
    {"seed-gcc4", NULL},
    {"seed-gcc5", NULL},
    {"seed-clang4", NULL},
    {"seed-clang5", NULL},
    {"seed-packed", NULL},
    {"seed-gcc-split4", "seed-gcc-split4.dwo"},
    {"seed-clang-split5", "seed-clang-split5.dwo"},
    {"seed-clang-split4", "seed-clang-split4.dwp"},
    {"seed-gcc-split5", "seed-gcc-split5.dwp"},
    {"seed-dwz", "seed-dwz.alt"},
};

static struct reader *reader_get(void)
{
	static struct reader reader;
	static int ready;

	if (!ready++)
		reader_open(&reader, false);
	return &reader;
}

static int file_open(struct elffile *file, const uint8_t *data, size_t size)
{
	int fd = memfd_create("input", MFD_CLOEXEC), slot;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		__builtin_trap();
	slot = reader_add(reader_get(), fd);
	if (elffile_open(file, reader_get(), slot, size) == 0)
		return slot;
	reader_remove(reader_get(), slot);
	return -1;
}

static void ask(struct dwarf *dwarf, uint64_t vaddr, struct elffile *other)
{
	static struct lines lines;
	struct dwarf_want want;

	dwarf_find(dwarf, vaddr, vaddr & 1 ? "symbol" : NULL, &lines);
	if (lines.n > SYMBOL_LINES_MAX || dwarf_bytes(dwarf) > BYTES_MAX + BYTES_SLACK)
		__builtin_trap();
	for (uint32_t i = 0; i < lines.n; i++)
		if (strlen(lines.line[i].name) >= SYMBOL_STRING_BYTES_MAX ||
		    (lines.line[i].file && strlen(lines.line[i].file) >= SYMBOL_STRING_BYTES_MAX))
			__builtin_trap();
	if (dwarf_wants(dwarf, &want) && dwarf_give(dwarf, want.dwo_id, other) == 0)
		dwarf_find(dwarf, vaddr, NULL, &lines);
}

static void ask_segments(struct dwarf *dwarf, const struct elffile *file, struct elffile *other)
{
	for (uint32_t i = 0; i < file->segments_n; i++)
		for (uint64_t k = 0; k < PROBES; k++)
			ask(dwarf,
			    file->segments[i].vaddr + k *
							  (file->segments[i].bytes < 1u << 20
							       ? file->segments[i].bytes
							       : 1u << 20) /
							  PROBES,
			    other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct elffile file, other;
	struct dwarf_parts parts = {.debug = &file};
	int slot, other_slot = -1;
	struct dwarf *dwarf;
	uint32_t length;

	if (size < sizeof(length))
		return 0;
	memcpy(&length, data, sizeof(length));
	data += sizeof(length);
	size -= sizeof(length);
	if (length > size)
		length = (uint32_t)size;
	slot = file_open(&file, data, length);
	if (slot < 0)
		return 0;
	if (length < size)
		other_slot = file_open(&other, data + length, size - length);
	if (other_slot >= 0)
		parts.alt = parts.dwp = &other;
	dwarf = dwarf_open(&parts, BYTES_MAX);
	if (dwarf)
		ask_segments(dwarf, &file, other_slot >= 0 ? &other : NULL);
	dwarf_close(dwarf);
	elffile_close(&file);
	reader_remove(reader_get(), slot);
	if (other_slot < 0)
		return 0;
	elffile_close(&other);
	reader_remove(reader_get(), other_slot);
	return 0;
}

/* build/[asan/]tests/fuzz/x -> build/tests/symbolizer/dwarf/name */
static size_t seed_read(const char *name, uint8_t *data, size_t room)
{
	char here[PATH_MAX], path[PATH_MAX + 64], *tests;
	ssize_t n = readlink("/proc/self/exe", here, sizeof(here) - 1);
	size_t got;
	FILE *file;

	here[n > 0 ? n : 0] = 0;
	tests = strstr(here, "/tests/fuzz");
	if (!tests)
		return 0;
	*tests = 0;
	snprintf(path, sizeof(path), "%s/tests/symbolizer/dwarf/%s", here, name);
	if (access(path, R_OK))
		snprintf(path, sizeof(path), "%s/../tests/symbolizer/dwarf/%s", here, name);
	file = fopen(path, "rb");
	if (!file) {
		perror(path);
		_exit(1);
	}
	got = fread(data, 1, room, file);
	fclose(file);
	if (got == room)
		__builtin_trap();
	return got;
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	uint32_t length;
	size_t other = 0;

	if (n >= sizeof(seeds) / sizeof(seeds[0]))
		return 0;
	length = (uint32_t)seed_read(seeds[n][0], data + sizeof(length),
				     FUZZ_BYTES_MAX - sizeof(length));
	memcpy(data, &length, sizeof(length));
	if (seeds[n][1])
		other = seed_read(seeds[n][1], data + sizeof(length) + length,
				  FUZZ_BYTES_MAX - sizeof(length) - length);
	return sizeof(length) + length + other;
}
