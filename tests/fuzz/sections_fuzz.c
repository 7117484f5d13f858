/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an ELF file with packed sections, and as what is packed. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolizer/debugdata.h"
#include "symbolizer/sections.h"
#include "tests/fuzz/fuzz.h"
#include "tests/symbolizer/packed.h"

const unsigned fuzz_mutations = 400;

/* Every byte is there to be read. */
static void fuzz_touch(const uint8_t *data, uint64_t bytes)
{
	uint8_t sum = 0;

	for (uint64_t i = 0; i < bytes; i += 61)
		sum ^= data[i];
	sum ^= data[bytes - 1];
	__asm__ volatile("" : : "r"(sum));
}

static void fuzz_symbol(void *arg, const struct elffile_symbol *symbol)
{
	(void)arg;
	fuzz_touch((const uint8_t *)symbol->name, symbol->name_bytes);
}

static void fuzz_symbols(struct elffile *file)
{
	struct elffile inside;

	file->segments[0] = (struct elffile_segment){0, 0, UINT64_MAX / 4};
	file->segments_n = 1;
	elffile_symbols(file, false, fuzz_symbol, NULL);
	if (debugdata_open(file, &inside) == 0) {
		elffile_symbols(&inside, false, fuzz_symbol, NULL);
		elffile_close(&inside);
	}
}

static void fuzz_elf(const uint8_t *data, size_t size)
{
	static const char *const names[] = {".debug_info", ".debug_str", ".text"};
	static struct reader reader;
	static int ready;
	struct section section;
	struct elffile file;
	int fd = memfd_create("input", MFD_CLOEXEC), slot;

	if (!ready++)
		reader_open(&reader, false);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return;
	slot = reader_add(&reader, fd);
	if (elffile_open(&file, &reader, slot, size) == 0) {
		for (size_t i = 0; i < 3; i++)
			if (sections_find(&file, names[i], &section) == 0) {
				fuzz_touch(section.data, section.bytes);
				sections_free(&section);
			}
		fuzz_symbols(&file);
		elffile_close(&file);
	}
	reader_remove(&reader, slot);
}

static int fuzz_read(void *arg, uint64_t at, void *buf, size_t bytes)
{
	memcpy(buf, (const uint8_t *)arg + at, bytes);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unpack_source source = {fuzz_read, (void *)data, size};
	struct unpacked out;

	if (size > FUZZ_BYTES_MAX)
		return 0;
	fuzz_elf(data, size);
	for (int format = UNPACK_ZLIB; format <= UNPACK_XZ; format++)
		if (unpack((enum unpack_format)format, &source, 8u << 20, &out) == 0) {
			fuzz_touch(out.data, out.bytes);
			unpack_free(&out);
		}
	return 0;
}

/* A symbol table, packed or in a file of its own in `.gnu_debugdata`. */
static size_t fuzz_seed_symbols(bool inside, uint8_t data[FUZZ_BYTES_MAX])
{
	static uint8_t strings[2][512], elf[8192], packed[8192];
	struct packed_section s[2] = {{.name = ".symtab", .type = SHT_SYMTAB, .link = 2},
				      {.name = ".strtab", .type = SHT_STRTAB}};
	struct packed_section debugdata = {.name = ".gnu_debugdata", .data = packed};
	Elf64_Sym symbols[4] = {{0}};

	for (uint32_t i = 1; i < 4; i++)
		symbols[i] = (Elf64_Sym){.st_name = 5 * i, .st_info = 2, .st_shndx = 1};
	memset(strings[0] + 1, 'x', 30);
	for (int i = 0; i < 2; i++)
		s[i].flags = inside ? 0 : SHF_COMPRESSED;
	s[0].data = inside ? (const void *)symbols : packed;
	s[0].bytes = inside ? sizeof(symbols)
			    : packed_data(PACKED_ZLIB, symbols, sizeof(symbols), sizeof(symbols),
					  packed, sizeof(packed));
	s[1].data = strings[!inside];
	s[1].bytes =
	    inside ? 40
		   : packed_data(PACKED_ZSTD, strings[0], 40, 40, strings[1], sizeof(strings[1]));
	if (!inside)
		return packed_elf(s, 2, data, FUZZ_BYTES_MAX);
	debugdata.bytes = packed_data(PACKED_XZ_BARE, elf, packed_elf(s, 2, elf, sizeof(elf)), 0,
				      packed, sizeof(packed));
	return packed_elf(&debugdata, 1, data, FUZZ_BYTES_MAX);
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	static const enum packed_as forms[] = {PACKED_ZLIB, PACKED_ZSTD, PACKED_ZDEBUG};
	static uint8_t text[20000], a[32768], b[8192];
	struct packed_section s[2] = {{.name = ".debug_info", .data = a},
				      {.name = ".debug_str", .data = b}};

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i % 97 ^ i / 311);
	if (n >= 3)
		return n == 3	? packed_data(PACKED_XZ_BARE, text, sizeof(text), 0, data,
					      FUZZ_BYTES_MAX)
		       : n <= 5 ? fuzz_seed_symbols(n == 5, data)
				: 0;
	s[0].bytes = packed_data(forms[n], text, sizeof(text), sizeof(text), a, sizeof(a));
	s[1].bytes = packed_data(forms[n], text, 999, 999, b, sizeof(b));
	for (int i = 0; i < 2; i++)
		s[i].flags = n == 2 ? 0 : SHF_COMPRESSED;
	if (n == 2) {
		s[0].name = ".zdebug_info";
		s[1].name = ".zdebug_str";
	}
	return packed_elf(s, 2, data, FUZZ_BYTES_MAX);
}
