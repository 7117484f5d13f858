/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed sections: as objcopy writes them, as other linkers do (several streams), and as nobody
 * should: claims that are not true, bombs, damage.
 */
#define _GNU_SOURCE
#include "symbolizer/sections.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/symbolizer/packed.h"

#define ROOM (4u << 20)

static struct reader reader;
static char directory[] = "/tmp/sections-test-XXXXXX";
static uint8_t *elf_bytes, *packed_bytes;

static int open_fd(struct elffile *file, int fd)
{
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	return elffile_open(file, &reader, reader_add(&reader, fd), (uint64_t)st.st_size);
}

static int open_bytes(struct elffile *file, const void *bytes, size_t n)
{
	int fd = memfd_create("made", MFD_CLOEXEC);

	assert_int_equal(write(fd, bytes, n), (ssize_t)n);
	return open_fd(file, fd);
}

static void close_file(struct elffile *file)
{
	int slot = file->slot;

	elffile_close(file);
	reader_remove(&reader, slot);
}

static int run(const char *format, const char *argument)
{
	char command[512];
	int n = snprintf(command, sizeof(command), "cd %s && ", directory);

	n += snprintf(command + n, sizeof(command) - (size_t)n, format, argument);
	return system(command);
}

static void open_name(struct elffile *file, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	assert_int_equal(open_fd(file, open(path, O_RDONLY | O_CLOEXEC)), 0);
}

/* What objcopy says that the section holds. */
static void check_against_objcopy(const char *name, const struct section *section)
{
	char path[256], command[256];
	uint8_t *bytes;
	FILE *file;

	snprintf(command, sizeof(command),
		 "objcopy -O binary --only-section=%s --set-section-flags %s=alloc plain dumped",
		 name, name);
	assert_int_equal(run("%s", command), 0);
	snprintf(path, sizeof(path), "%s/dumped", directory);
	file = fopen(path, "rb");
	bytes = malloc(section->bytes + 1);
	assert_non_null(file);
	assert_int_equal(fread(bytes, 1, section->bytes + 1, file), section->bytes);
	assert_memory_equal(bytes, section->data, section->bytes);
	free(bytes);
	fclose(file);
}

static void compare(const char *packed_name, const char *name, bool packed)
{
	struct section a, b;
	struct elffile plain, file;

	open_name(&plain, "plain");
	open_name(&file, packed_name);
	assert_int_equal(sections_find(&plain, name, &a), 0);
	assert_int_equal(sections_find(&file, name, &b), 0);
	assert_null(a.unpacked.data);
	if (packed)
		assert_non_null(b.unpacked.data);
	assert_int_equal(a.bytes, b.bytes);
	assert_memory_equal(a.data, b.data, a.bytes);
	if (!packed)
		check_against_objcopy(name, &a);
	assert_int_equal(sections_find(&file, ".debug_nothing", &a), -ENOENT);
	assert_int_equal(sections_find(&file, ".bss", &a), -ENOENT);
	close_file(&plain);
	close_file(&file);
	sections_free(&b); /* outlives the image */
}

static void test_objcopy(void **state)
{
	static const char *const forms[] = {"zlib-gabi", "zlib-gnu", "zstd"};
	int done = 0;

	(void)state;
	assert_int_equal(run("%s",
			     "for i in $(seq 200); do "
			     "echo \"static int u$i; int f$i(int x) { return x + $i + u$i; }\"; "
			     "done > a.c && gcc -g -c a.c -o plain"),
			 0);
	compare("plain", ".debug_info", false);
	compare("plain", ".debug_str", false);
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if (run("objcopy --compress-debug-sections=%s plain packed 2>/dev/null",
			forms[i])) {
			print_message("objcopy here knows no %s\n", forms[i]);
			continue;
		}
		compare("packed", ".debug_info", true);
		compare("packed", ".debug_line", true);
		compare("packed", ".text", false);
		done++;
	}
	assert_true(done >= 2);
}

static void fill(uint8_t *data, size_t n)
{
	uint64_t x = 88172645463325252ull;

	for (size_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		data[i] = (uint8_t)(x & 15); /* packs to a half */
	}
}

/* The result of looking for a section with these packed bytes. */
static int find_packed(enum packed_as as, size_t n, struct section *section)
{
	struct packed_section s = {.name = as == PACKED_ZDEBUG ? ".zdebug_x" : ".debug_x",
				   .flags = as == PACKED_ZDEBUG ? 0 : SHF_COMPRESSED,
				   .data = packed_bytes,
				   .bytes = n};
	size_t length = packed_elf(&s, 1, elf_bytes, ROOM);
	struct elffile file;
	int err;

	assert_true(n > 0 && length > 0);
	assert_int_equal(open_bytes(&file, elf_bytes, length), 0);
	err = sections_find(&file, ".debug_x", section);
	close_file(&file);
	return err;
}

static void test_forms(void **state)
{
	static const enum packed_as forms[] = {PACKED_ZLIB, PACKED_ZSTD, PACKED_ZDEBUG};
	static uint8_t data[700000];
	struct section section;
	size_t n;

	(void)state;
	fill(data, sizeof(data));
	for (size_t i = 0; i < 3; i++) {
		n = packed_data(forms[i], data, sizeof(data), sizeof(data), packed_bytes, ROOM);
		assert_int_equal(find_packed(forms[i], n, &section), 0);
		assert_int_equal(section.bytes, sizeof(data));
		assert_memory_equal(section.data, data, sizeof(data));
		sections_free(&section);
		/* More and less than it says, cut off, and a bit turned in the middle. */
		for (long wrong = -1; wrong <= 1; wrong += 2) {
			n = packed_data(forms[i], data, sizeof(data),
					sizeof(data) + (uint64_t)wrong, packed_bytes, ROOM);
			assert_true(find_packed(forms[i], n, &section) < 0);
		}
		n = packed_data(forms[i], data, sizeof(data), sizeof(data), packed_bytes, ROOM);
		assert_int_equal(find_packed(forms[i], n - 9, &section), -ENOEXEC);
		assert_int_equal(find_packed(forms[i], 7, &section), -ENOEXEC);
		packed_bytes[n / 2] ^= 4;
		/* zstd has no sum of its own where nobody asks for one: the size stays right. */
		if (forms[i] != PACKED_ZSTD)
			assert_true(find_packed(forms[i], n, &section) < 0);
		packed_bytes[0] ^= 4;
		assert_int_equal(find_packed(forms[i], n, &section), -ENOEXEC);
	}
}

/* As ld -r and parallel linkers write them. */
static void test_several_streams(void **state)
{
	static const enum packed_as forms[] = {PACKED_ZLIB, PACKED_ZSTD};
	static uint8_t data[300000];
	struct section section;
	size_t n, more;

	(void)state;
	fill(data, sizeof(data));
	for (size_t i = 0; i < 2; i++) {
		n = packed_data(forms[i], data, 200000, sizeof(data), packed_bytes, ROOM);
		more = packed_data(forms[i], data + 200000, 100000, 0, packed_bytes + n, ROOM - n);
		memmove(packed_bytes + n, packed_bytes + n + sizeof(Elf64_Chdr),
			more - sizeof(Elf64_Chdr));
		assert_int_equal(find_packed(forms[i], n + more - sizeof(Elf64_Chdr), &section), 0);
		assert_int_equal(section.bytes, sizeof(data));
		assert_memory_equal(section.data, data, sizeof(data));
		sections_free(&section);
	}
}

static void test_claims(void **state)
{
	static const uint64_t sizes[] = {UINT64_MAX, SECTIONS_UNPACKED_MAX + 1, 1ull << 40};
	struct section section;
	uint8_t data[4096];
	size_t n;

	(void)state;
	fill(data, sizeof(data));
	for (size_t i = 0; i < 3; i++) {
		n = packed_data(PACKED_ZLIB, data, sizeof(data), sizes[i], packed_bytes, ROOM);
		assert_int_equal(find_packed(PACKED_ZLIB, n, &section), -EFBIG);
	}
	n = packed_data(PACKED_ZLIB, data, sizeof(data), SECTIONS_UNPACKED_MAX / 2, packed_bytes,
			ROOM);
	assert_int_equal(find_packed(PACKED_ZLIB, n, &section), -ENOEXEC);
	n = packed_data(PACKED_ZLIB, data, sizeof(data), 0, packed_bytes, ROOM);
	assert_int_equal(find_packed(PACKED_ZLIB, n, &section), -ENOEXEC);
	packed_bytes[0] = 3; /* no such format */
	assert_int_equal(find_packed(PACKED_ZLIB, n, &section), -ENOEXEC);
}

/* 64 MiB of nothing in 64 KiB or less. */
static void test_bombs(void **state)
{
	static const enum packed_as forms[] = {PACKED_ZLIB, PACKED_ZSTD};
	const size_t bytes = 64u << 20;
	uint8_t *nothing = calloc(1, bytes);
	struct section section;
	size_t n;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		n = packed_data(forms[i], nothing, bytes, bytes, packed_bytes, ROOM);
		assert_in_range(n, 1, 66000);
		assert_int_equal(find_packed(forms[i], n, &section), -EFBIG);
		/* A million is nobody's harm. */
		n = packed_data(forms[i], nothing, 1000000, 1000000, packed_bytes, ROOM);
		assert_int_equal(find_packed(forms[i], n, &section), 0);
		sections_free(&section);
	}
	free(nothing);
}

/* All sections of a file together. */
static void test_sum(void **state)
{
	struct packed_section s = {.name = ".debug_x", .flags = SHF_COMPRESSED};
	const size_t bytes = 3u << 20;
	uint8_t *data = malloc(bytes);
	struct section section;
	struct elffile file;
	int done = 0, err;

	(void)state;
	fill(data, bytes);
	s.data = packed_bytes;
	s.bytes = packed_data(PACKED_ZSTD, data, bytes, bytes, packed_bytes, ROOM);
	assert_int_equal(open_bytes(&file, elf_bytes, packed_elf(&s, 1, elf_bytes, ROOM)), 0);
	while ((err = sections_find(&file, ".debug_x", &section)) == 0) {
		sections_free(&section);
		assert_true(++done < 100);
	}
	assert_int_equal(err, -EFBIG);
	assert_true(done > 80);
	close_file(&file);
	free(data);
}

static void see_symbol(void *arg, const struct elffile_symbol *symbol)
{
	char *names = arg;

	strncat(names, symbol->name, symbol->name_bytes);
	strcat(names, " ");
}

/* A symbol table and its names, each packed or not. */
static void test_symtab(void **state)
{
	static const char strings[] = "\0first\0second";
	Elf64_Sym symbols[3] = {{0},
				{.st_name = 1, .st_info = 2, .st_shndx = 1, .st_value = 0x1000},
				{.st_name = 7, .st_info = 2, .st_shndx = 1, .st_value = 0x1010}};

	(void)state;
	for (unsigned packed = 0; packed < 4; packed++) {
		struct packed_section s[2] = {{.name = ".symtab", .type = SHT_SYMTAB, .link = 2},
					      {.name = ".strtab", .type = SHT_STRTAB}};
		const void *plain[2] = {symbols, strings};
		size_t bytes[2] = {sizeof(symbols), sizeof(strings)};
		uint8_t out[2][512];
		struct elffile file;

		for (unsigned i = 0; i < 2; i++) {
			s[i].flags = packed >> i & 1 ? SHF_COMPRESSED : 0;
			s[i].data = out[i];
			s[i].bytes = packed_data(s[i].flags ? PACKED_ZLIB : PACKED_PLAIN, plain[i],
						 bytes[i], bytes[i], out[i], sizeof(out[i]));
		}
		assert_int_equal(open_bytes(&file, elf_bytes, packed_elf(s, 2, elf_bytes, ROOM)),
				 0);
		file.segments[file.segments_n++] = (struct elffile_segment){0, 0x1000, 0x1000};
		/* Twice: what was unpacked stays. */
		for (int i = 0; i < 2; i++) {
			char names[64] = "";

			assert_int_equal(elffile_symbols(&file, false, see_symbol, names), 2);
			assert_string_equal(names, "first second ");
		}
		close_file(&file);
	}
}

static int unpack_memory(void *arg, uint64_t at, void *buf, size_t bytes)
{
	memcpy(buf, (uint8_t *)arg + at, bytes);
	return 0;
}

static void test_xz(void **state)
{
	static uint8_t data[700000];
	struct unpack_source source = {unpack_memory, packed_bytes, 0};
	struct unpacked out;

	(void)state;
	fill(data, sizeof(data));
	source.bytes = packed_data(PACKED_XZ, data, sizeof(data), 0, packed_bytes, ROOM);
	assert_int_equal(unpack(UNPACK_XZ, &source, 1u << 20, &out), 0);
	assert_int_equal(out.bytes, sizeof(data));
	assert_memory_equal(out.data, data, sizeof(data));
	unpack_free(&out);
	assert_int_equal(unpack(UNPACK_XZ, &source, sizeof(data), &out), 0);
	unpack_free(&out);
	assert_int_equal(unpack(UNPACK_XZ, &source, sizeof(data) - 1, &out), -EFBIG);
	for (size_t n = 1; n < source.bytes; n += source.bytes / 13) {
		struct unpack_source cut = {unpack_memory, packed_bytes, n};

		assert_int_equal(unpack(UNPACK_XZ, &cut, 1u << 20, &out), -ENOEXEC);
	}
	packed_bytes[source.bytes / 2] ^= 1;
	assert_int_equal(unpack(UNPACK_XZ, &source, 1u << 20, &out), -ENOEXEC);
}

static int setup(void **state)
{
	(void)state;
	reader_open(&reader, true);
	elf_bytes = malloc(ROOM);
	packed_bytes = malloc(ROOM);
	return mkdtemp(directory) && elf_bytes && packed_bytes ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(elf_bytes);
	free(packed_bytes);
	reader_close(&reader);
	return run("rm -rf %s", directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_objcopy),
	    cmocka_unit_test(test_forms),
	    cmocka_unit_test(test_several_streams),
	    cmocka_unit_test(test_claims),
	    cmocka_unit_test(test_bombs),
	    cmocka_unit_test(test_sum),
	    cmocka_unit_test(test_xz),
	    cmocka_unit_test(test_symtab),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, setup, teardown);
}
