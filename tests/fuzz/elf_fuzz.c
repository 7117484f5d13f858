/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an ELF file: identities, index, look-ups, demangling. Built by hand:
 *   make build/tests/fuzz/elf_fuzz && build/tests/fuzz/elf_fuzz CORPUS
 * The corpus of ehframe_fuzz and some small programs, with symbols and without, are a beginning.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolizer/demangle.h"
#include "symbolizer/elffile.h"
#include "symbolizer/reader.h"
#include "symbolizer/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(struct symbols *symbols)
{
	char readable[256];

	for (uint32_t i = 0; i < symbols->entries_n && i < 64; i++) {
		const char *name = symbols_find(symbols, symbols->entries[i].start);

		if (!name)
			__builtin_trap();
		demangle(name, readable, sizeof(readable));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct reader reader;
	static int ready;
	struct elffile_ids ids;
	struct symbols *symbols;
	struct elffile file;
	int fd = memfd_create("input", MFD_CLOEXEC), slot;

	if (!ready++)
		reader_open(&reader, false);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	slot = reader_add(&reader, fd);
	elffile_htlhash(&reader, slot, size, ids.htlhash);
	if (elffile_open(&file, &reader, slot, size) == 0) {
		elffile_build_ids(&file, &ids);
		symbols = symbols_build(&file, 1 << 20);
		if (symbols)
			look(symbols);
		symbols_free(symbols);
		elffile_close(&file);
	}
	reader_remove(&reader, slot);
	return 0;
}
