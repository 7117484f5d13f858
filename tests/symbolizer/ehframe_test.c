/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables of files made by hand: every instruction of call frame information, every limit,
 * code that is known by its form; then the same files damaged at random, and table_check() on
 * damaged tables.
 */
#define _GNU_SOURCE
#include "symbolizer/ehframe.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/symbolizer/cfi_image.h"
#include "tests/symbolizer/tables.h"

/* Of the functions in the image; each has 64 bytes. */
#define TEXT_AT CFI_IMAGE_TEXT_OFFSET

static void expect(const struct tables_result *r, uint64_t offset, const char *want)
{
	char text[TABLES_TEXT_BYTES];
	struct table_rule rule;

	assert_int_equal(r->err, 0);
	assert_true(tables_find(r->table, TEXT_AT + offset, &rule));
	if (strcmp(tables_text(&rule, text), want))
		fail_msg("at %lu: %s, not %s", (unsigned long)offset, text, want);
}

static struct tables_result compile(const struct cfi_image *image)
{
	static uint8_t bytes[CFI_IMAGE_BYTES_MAX];
	size_t n = cfi_image_write(image, bytes);

	cfi_image_keep(bytes, n);
	return tables_compile_bytes(bytes, n);
}

/* What holds at bytes 0, 1, 2, ... 6 of the function, for a program in which each advance is 1. */
struct program_case {
	const char *name, *code;
	size_t bytes;
	const char *want[7];
};
#define CODE(text) text, sizeof(text) - 1
#define START	   "sp+8 fp= ra@cfa-8"

static const struct program_case programs[] = {
    {"none", CODE(""), {START}},
    {"advance",
     CODE("\x41\x0e\x10\x02\x01\x0e\x18\x03\x01\0\x0e\x20\x04\x01\0\0\0\x0e\x28"
	  "\x1d\1\0\0\0\0\0\0\0\x0e\x30"),
     {START, "sp+16 fp= ra@cfa-8", "sp+24 fp= ra@cfa-8", "sp+32 fp= ra@cfa-8", "sp+40 fp= ra@cfa-8",
      "sp+48 fp= ra@cfa-8"}},
    {"push rbp",
     CODE("\x41\x0e\x10\x86\x02\x43\x0d\x06\x41\x0c\x07\x08\xc6"),
     {START, "sp+16 fp@cfa-16 ra@cfa-8", NULL, NULL, "fp+16 fp@cfa-16 ra@cfa-8", START}},
    {"set_loc backwards", CODE("\x42\x01\0\0\0\0\0\0\0\0"), {START, START, "invalid", "invalid"}},
    {"offsets",
     CODE("\x05\x06\x02\x41\x11\x06\x03\x41\x2f\x06\x02\x41\x11\x06\x7f"),
     {"sp+8 fp@cfa-16 ra@cfa-8", "sp+8 fp@cfa-24 ra@cfa-8", "sp+8 fp@cfa+16 ra@cfa-8",
      "sp+8 fp@cfa+8 ra@cfa-8"}},
    {"val_offset",
     CODE("\x14\x06\x02\x41\x08\x06\x41\x15\x06\x01\x41\x07\x06\x41\x08\x06\x14\x07\x00\x41\x14\x07"
	  "\x01"),
     {"sp+8 fp? ra@cfa-8", START, "sp+8 fp? ra@cfa-8", "sp+8 fp? ra@cfa-8", START, "invalid"}},
    {"registers",
     CODE("\x09\x10\x05\x0e\x00\x41\x09\x06\x09\x41\x09\x06\x06\x41\x09\x07\x08"),
     {"sp+0 fp= ra=rdi", "sp+0 fp? ra=rdi", "sp+0 fp= ra=rdi", "invalid"}},
    {"ra elsewhere",
     CODE("\x09\x10\x11\x41\x08\x10\x41\x14\x10\x01\x41\x07\x10\x41\xd0"),
     {"invalid", "invalid", "invalid", "stop", START}},
    {"restore_extended", CODE("\x86\x02\x41\x06\x06"), {"sp+8 fp@cfa-16 ra@cfa-8", START}},
    {"remember",
     CODE("\x0a\x41\x0e\x20\x86\x04\x0a\x41\x0c\x06\x10\x41\x0b\x41\x0b"),
     {START, "sp+32 fp@cfa-32 ra@cfa-8", "fp+16 fp@cfa-32 ra@cfa-8", "sp+32 fp@cfa-32 ra@cfa-8",
      START}},
    {"restore without remember", CODE("\x41\x0b"), {START, "invalid", "invalid"}},
    {"remember too often",
     CODE("\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x41\x0e\x10\x41\x0a"),
     {START, "sp+16 fp= ra@cfa-8", "invalid", "invalid"}},
    {"def_cfa",
     CODE("\x0c\x0a\x00\x41\x12\x0d\x7f\x41\x13\x7e\x41\x0d\x00\x41\x0c\x10\x00\x41\x0c\xff\xff\xff"
	  "\xff\xff\xff\x01\x00"),
     {"r10+0 fp= ra@cfa-8", "r13+8 fp= ra@cfa-8", "r13+16 fp= ra@cfa-8", "rax+16 fp= ra@cfa-8",
      "invalid", "invalid"}},
    {"cfa too large", CODE("\x0e\xff\xff\xff\xff\xff\x01"), {"invalid"}},
    {"saved too far away",
     CODE("\x05\x06\xff\xff\x01\x41\x11\x10\xff\xff\x02"),
     {"sp+8 fp? ra@cfa-8", "invalid"}},
    {"below the stack", CODE("\x0e\x00"), {"stop"}},
    {"realigned",
     CODE("\x0f\x03\x76\x58\x06\x10\x06\x02\x76\x00"),
     {"*(fp-40)+0 fp@fp+0 ra@cfa-8"}},
    {"saved sp",
     CODE("\x0f\x06\x77\x98\x01\x06\x23\x08\x41\x0f\x06\x77\x78\x06\x38\x22\x9f"),
     {"*(sp+152)+8 fp= ra@cfa-8", "invalid"}},
    {"saved sp, by constants",
     CODE("\x0f\x05\x77\x00\x06\x38\x22\x41\x0f\x06\x77\x00\x06\x08\x40\x22"
	  "\x41\x0f\x06\x77\x00\x06\x09\xf8\x1c\x41\x0f\x05\x77\x00\x06\x38\x1c"),
     {"*(sp+0)+8 fp= ra@cfa-8", "*(sp+0)+64 fp= ra@cfa-8", "*(sp+0)+8 fp= ra@cfa-8", "invalid"}},
    {"sums",
     CODE("\x0f\x02\x77\x10\x41\x0f\x04\x92\x07\x10\x96\x41\x0f\x03\x92\x07\x18\x41"
	  "\x0f\x04\x77\x08\x23\x08"),
     {"sp+16 fp= ra@cfa-8", "invalid", "sp+24 fp= ra@cfa-8", "sp+16 fp= ra@cfa-8"}},
    {"indexed", CODE("\x0f\x0a\x77\x08\x79\x00\x38\x1e\x22\x06\x23\x08"), {"invalid"}},
    {"no expression", CODE("\x0f\x00\x41\x0f\x05\x77"), {"invalid", "invalid"}},
    {"offset of an expression",
     CODE("\x0f\x02\x77\x10\x41\x0e\x10"),
     {"sp+16 fp= ra@cfa-8", "invalid", "invalid"}},
    {"plt",
     CODE("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22\x41"
	  "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3a\x2a\x33\x24\x22\x41"
	  "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x4a\x2a\x33\x24\x22"),
     {"plt11 fp= ra@cfa-8", "plt10 fp= ra@cfa-8", "invalid"}},
    {"saved by an expression",
     CODE("\x10\x06\x02\x77\x10\x41\x10\x06\x02\x23\x10\x41\x10\x06\x02\x70\x00\x41"
	  "\x16\x06\x02\x77\x10\x41\x10\x10\x02\x77\x00"),
     {"sp+8 fp@cfa+8 ra@cfa-8", "sp+8 fp@cfa+16 ra@cfa-8", "sp+8 fp? ra@cfa-8", "sp+8 fp? ra@cfa-8",
      "sp+8 fp? ra@cfa-8"}},
    {"args_size and nop", CODE("\x2e\x20\0\0\x41\x0e\x10"), {START, "sp+16 fp= ra@cfa-8"}},
    {"unknown", CODE("\x41\x3f\x41\x0e\x10"), {START, "invalid", "invalid"}},
    {"cut off", CODE("\x41\x0c\x07"), {START, "invalid"}},
    {"cut off block", CODE("\x41\x0f\x7f\x77\x08"), {START, "invalid"}},
    {"beyond the end", CODE("\x41\x0e\x10\x02\xff\x0e\x18"), {START, "sp+16 fp= ra@cfa-8"}},
    {"wraps", CODE("\x1d\xff\xff\xff\xff\xff\xff\xff\xff\x0e\x10"), {"invalid"}},
    {"not followed",
     CODE("\x83\x03\x41\x07\x03\x41\x09\x03\x02\x41\x10\x0c\x02\x77\x00"),
     {START, START, START, START}},
};

static void test_programs(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const struct program_case *c = &programs[i];
		struct cfi_image image = cfi_image_start(false);
		struct tables_result r;

		cfi_image_cie(&image, "", CFI_IMAGE_PROGRAM, sizeof(CFI_IMAGE_PROGRAM) - 1);
		cfi_image_fde(&image, 0, 64, c->code, c->bytes);
		r = compile(&image);
		for (int k = 0; k < 7; k++)
			if (c->want[k]) {
				print_message("%s: %d\n", c->name, k);
				expect(&r, (uint64_t)k, c->want[k]);
			}
		expect(&r, 64, "invalid");
		free(r.table);
	}
}

static void test_augmentations(void **state)
{
	static const struct {
		const char *letters, *data;
		size_t bytes;
		bool good;
	} cases[] = {
	    {"", CODE(""), true},
	    {"zR", CODE("\x00"), true},
	    {"zR", CODE("\x04"), true},			  /* udata8 */
	    {"zR", CODE("\x0c"), true},			  /* sdata8 */
	    {"zPLR", CODE("\x9b\1\2\3\4\x00\x1b"), true}, /* indirect pcrel sdata4 */
	    {"zPLR", CODE("\x00\1\2\3\4\5\6\7\x08\x00\x1b"), true},
	    {"zPR", CODE("\x01\x80\x01\x00"), true},  /* uleb128 */
	    {"zPR", CODE("\x50\1\2\3\4\x00"), false}, /* aligned */
	    {"zRB", CODE("\x00"), true},
	    {"zR", CODE("\x80"), false}, /* indirect: not in the file */
	    {"zR", CODE("\x30"), false}, /* relative to what only a process has */
	    {"zR", CODE("\x05"), false},
	    {"zRX", CODE("\x00"), false},
	    {"eh", CODE(""), false},
	    {"zR", CODE(""), false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cfi_image image = cfi_image_start(false);
		struct tables_result r;

		cfi_image_cie_data(&image, cases[i].letters, cases[i].data, cases[i].bytes,
				   CFI_IMAGE_PROGRAM, sizeof(CFI_IMAGE_PROGRAM) - 1);
		image.pcrel = !strcmp(cases[i].letters, "zPLR");
		cfi_image_fde(&image, 0, 64, "\x41\x0e\x10", 3);
		r = compile(&image);
		print_message("%zu: %s\n", i, cases[i].letters);
		assert_int_equal(r.err, cases[i].good ? 0 : -ENOENT);
		if (cases[i].good)
			expect(&r, 1, "sp+16 fp= ra@cfa-8");
		free(r.table);
	}
}

static const char sigreturn_code[] = "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05";

static void test_signal(void **state)
{
	static const char program[] = "\x0f\x04\x77\xa0\x01\x06\x10\x06\x03\x77\xf8\x00"
				      "\x10\x07\x03\x77\xa0\x01\x10\x10\x03\x77\xa8\x01";
	char broken[sizeof(program)];
	struct cfi_image image = cfi_image_start(false);
	struct tables_result r;

	(void)state;
	memcpy(broken, program, sizeof(program));
	broken[17] = 2; /* sp at another place than a sigcontext has it */
	cfi_image_cie_data(&image, "zRS", "\x00", 1, CFI_IMAGE_PROGRAM,
			   sizeof(CFI_IMAGE_PROGRAM) - 1);
	cfi_image_fde(&image, 64, 16, program, sizeof(program) - 1);
	cfi_image_fde(&image, 128, 16, program, sizeof(program) - 1);
	cfi_image_fde(&image, 192, 16, broken, sizeof(program) - 1);
	cfi_image_text(&image, 128, sigreturn_code, sizeof(sigreturn_code) - 1);
	r = compile(&image);
	expect(&r, 63, "invalid"); /* the library has seen to it */
	expect(&r, 64, "signal+40");
	expect(&r, 126, "invalid");
	expect(&r, 127, "signal+40");
	expect(&r, 143, "signal+40");
	expect(&r, 192, "invalid");
	free(r.table);
}

static const char thread_code[] = "\x31\xed\x5f\x41\xff\xd1\x89\xc7\x31\xc0\xb0\x3c\x0f\x05";

static void test_forms(void **state)
{
	struct cfi_image image = cfi_image_start(false);
	struct tables_result r;

	(void)state;
	cfi_image_cie(&image, "", CFI_IMAGE_PROGRAM, sizeof(CFI_IMAGE_PROGRAM) - 1);
	cfi_image_fde(&image, 64, 16, "", 0);
	/* The entry, of musl; a sigreturn without a note; one that has a note of its own; a thread. */
	cfi_image_text(&image, 0,
		       "\x48\x31\xed\x48\x89\xe7\x48\x8d\x35\1\2\3\4\x48\x83\xe4\xf0\xe8\1\2\3\4",
		       22);
	cfi_image_text(&image, 200, sigreturn_code, sizeof(sigreturn_code) - 1);
	cfi_image_text(&image, 65, sigreturn_code, sizeof(sigreturn_code) - 1);
	cfi_image_text(&image, 240, thread_code, sizeof(thread_code) - 1);
	r = compile(&image);
	expect(&r, 0, "stop");
	expect(&r, 21, "stop");
	expect(&r, 22, "invalid");
	expect(&r, 66, START);
	expect(&r, 198, "invalid");
	expect(&r, 199, "signal+40");
	expect(&r, 208, "signal+40");
	expect(&r, 209, "invalid");
	expect(&r, 240, "stop");
	expect(&r, 253, "stop");
	expect(&r, 254, "invalid");
	free(r.table);
}

/* A function without a note, which one that has a note calls; nobody calls the one behind it. */
static void test_code(void **state)
{
	struct cfi_image image = cfi_image_start(false);
	struct tables_result r;

	(void)state;
	cfi_image_cie(&image, "", CFI_IMAGE_PROGRAM, sizeof(CFI_IMAGE_PROGRAM) - 1);
	cfi_image_fde(&image, 64, 16, "", 0);
	cfi_image_text(&image, 64, "\xe8\xbb\0\0\0\xc3", 6);
	cfi_image_text(&image, 256, "\x53\x5b\xc3", 3);
	cfi_image_text(&image, 262, "\x53\x5b\xc3", 3);
	r = compile(&image);
	expect(&r, 70, START);
	expect(&r, 255, "invalid");
	expect(&r, 256, START);
	expect(&r, 257, "sp+16 fp= ra@cfa-8");
	expect(&r, 258, START);
	expect(&r, 259, "invalid");
	expect(&r, 263, "invalid");
	free(r.table);
}

static void test_gaps(void **state)
{
	struct cfi_image image = cfi_image_start(false);
	struct tables_result r;

	(void)state;
	cfi_image_cie(&image, "", CFI_IMAGE_PROGRAM, sizeof(CFI_IMAGE_PROGRAM) - 1);
	cfi_image_fde(&image, 100, 10, "\x0e\x30", 2);
	cfi_image_fde(&image, 0, 10, "\x0e\x10", 2);
	cfi_image_fde(&image, 24, 10, "\x0e\x20", 2); /* 14 bytes on: padding */
	cfi_image_fde(&image, 49, 20, "\x0e\x28", 2); /* 15 bytes on: a gap */
	cfi_image_fde(&image, 59, 20, "\x0e\x38", 2); /* over the end of the one before */
	cfi_image_fde(&image, 59, 30, "\x0e\x40", 2); /* the same beginning: the first one stays */
	cfi_image_fde(&image, 1u << 20, 30, "", 0);   /* no code there */
	r = compile(&image);
	expect(&r, 12, "sp+16 fp= ra@cfa-8");
	expect(&r, 33, "sp+32 fp= ra@cfa-8");
	expect(&r, 34, "invalid");
	expect(&r, 58, "sp+40 fp= ra@cfa-8");
	expect(&r, 59, "sp+56 fp= ra@cfa-8");
	expect(&r, 79, "invalid");
	expect(&r, 109, "sp+48 fp= ra@cfa-8");
	expect(&r, 110, "invalid");
	free(r.table);
}

static void test_pages(void **state)
{
	const uint64_t page = 1u << TABLE_PAGE_SHIFT;
	struct cfi_image image = cfi_image_start(false);
	const struct table_page *pages;
	struct tables_result r;

	(void)state;
	image.text_bytes = 3 * page; /* of which the file has zeroes */
	cfi_image_cie(&image, "", CFI_IMAGE_PROGRAM, sizeof(CFI_IMAGE_PROGRAM) - 1);
	/* Through page 1, changing on its first byte; then nothing. */
	cfi_image_fde(&image, 0, (uint32_t)(2 * page),
		      "\x04\x00\xf0\x00\x00\x0e\x10\x04\x10\x00\x00\x00\x0e\x18", 14);
	r = compile(&image);
	expect(&r, 0, START);
	expect(&r, page - TEXT_AT - 1, START);
	expect(&r, page - TEXT_AT, "sp+16 fp= ra@cfa-8");
	expect(&r, page - TEXT_AT + 16, "sp+24 fp= ra@cfa-8");
	expect(&r, 2 * page - 1, "sp+24 fp= ra@cfa-8");
	expect(&r, 2 * page, "invalid");
	pages = (const struct table_page *)(r.table + 1);
	assert_int_equal(r.table->pages, 4);
	assert_int_equal(pages[1].count, 2);
	assert_int_equal(pages[2].count, 2);
	assert_int_equal(pages[3].count, 1);
	free(r.table);
}

static void test_debug_frame(void **state)
{
	struct cfi_image image = cfi_image_start(true);
	struct tables_result r;

	(void)state;
	cfi_image_cie(&image, "", CFI_IMAGE_PROGRAM, sizeof(CFI_IMAGE_PROGRAM) - 1);
	cfi_image_fde(&image, 0, 64, "\x41\x0e\x10", 3);
	r = compile(&image);
	expect(&r, 0, START);
	expect(&r, 1, "sp+16 fp= ra@cfa-8");
	free(r.table);
}

/* Without section headers .eh_frame is found by the program headers, and the table is the same. */
static void test_no_sections(void **state)
{
	static const char *const paths[] = {"/lib/x86_64-linux-gnu/libc.so.6",
					    "/lib64/ld-linux-x86-64.so.2", "/usr/bin/bash"};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct tables_result whole, bare;
		FILE *file = fopen(paths[i], "r");
		uint8_t *bytes = malloc(16u << 20);
		Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;
		size_t n;

		if (!file) {
			free(bytes);
			continue;
		}
		assert_non_null(bytes);
		n = fread(bytes, 1, 16u << 20, file);
		fclose(file);
		whole = tables_compile_bytes(bytes, n);
		header->e_shoff = 0;
		header->e_shnum = header->e_shstrndx = 0;
		bare = tables_compile_bytes(bytes, n);
		assert_int_equal(whole.err, 0);
		assert_int_equal(bare.err, 0);
		assert_int_equal(whole.bytes, bare.bytes);
		assert_memory_equal(whole.table, bare.table, bare.bytes);
		free(whole.table);
		free(bare.table);
		free(bytes);
	}
}

/* The only limit that can be reached with a file of some size: rows. */
static void test_too_many_rows(void **state)
{
	struct cfi_image image = cfi_image_start(false);
	size_t n = 3000000;
	char *program = malloc(2 * n);
	uint8_t *bytes;
	struct tables_result r;

	(void)state;
	assert_non_null(program);
	memset(program, 0x41, 2 * n); /* rows that say the same are none */
	image.text_bytes = 8u << 20;
	image.big = program;
	image.big_bytes = 2 * n;
	cfi_image_cie(&image, "", CFI_IMAGE_PROGRAM, sizeof(CFI_IMAGE_PROGRAM) - 1);
	bytes = malloc(CFI_IMAGE_BYTES_MAX + image.text_bytes + 2 * n);
	assert_non_null(bytes);
	cfi_image_fde(&image, 0, 8u << 20, NULL, 0);
	r = tables_compile_bytes(bytes, cfi_image_write(&image, bytes));
	assert_int_equal(r.err, 0);
	assert_true(r.table->rows < 300);
	free(r.table);
	for (size_t i = 0; i + 2 < 2 * n; i += 4) {
		memcpy(program + i, "\x41\x86\x01\x41", 4);
		program[i + 2] = i % 8 ? 2 : 1; /* rbp saved here, or there: no push says that */
	}
	r = tables_compile_bytes(bytes, cfi_image_write(&image, bytes));
	assert_int_equal(r.err, 0);
	assert_true(r.table->rows > 1000000);
	print_message("%u rows of %zu bytes of program in %.0f ms\n", r.table->rows, 2 * n, r.ms);
	free(r.table);
	free(bytes);
	free(program);
}

static uint64_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

static size_t whole_image(uint8_t *bytes)
{
	struct cfi_image image = cfi_image_start(false);

	cfi_image_cie_data(&image, "zPLR", "\x9b\1\2\3\4\x00\x1b", 7, CFI_IMAGE_PROGRAM,
			   sizeof(CFI_IMAGE_PROGRAM) - 1);
	image.pcrel = true;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		cfi_image_fde(&image, (uint32_t)i * 64, 60, programs[i].code, programs[i].bytes);
	return cfi_image_write(&image, bytes);
}

/* Anything may come out but a crash, or a table that table_check() refuses (tables.c). */
static void test_damaged(void **state)
{
	static uint8_t whole[CFI_IMAGE_BYTES_MAX], damaged[CFI_IMAGE_BYTES_MAX];
	size_t n = whole_image(whole), good = 0;
	uint64_t seed = 1;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		struct tables_result r;
		size_t from = round % 2 ? CFI_IMAGE_CFI_OFFSET : 0;

		memcpy(damaged, whole, n);
		for (uint64_t k = random_next(&seed) % 8; k < 9; k++)
			damaged[from + random_next(&seed) % (n - from)] =
			    (uint8_t)random_next(&seed);
		r = tables_compile_bytes(damaged, round % 7 ? n : random_next(&seed) % n);
		good += r.err == 0;
		free(r.table);
	}
	print_message("%zu of 3000 damaged files gave a table\n", good);
	assert_true(good > 500);
}

static void test_check(void **state)
{
	static uint8_t whole[CFI_IMAGE_BYTES_MAX];
	struct tables_result r = tables_compile_bytes(whole, whole_image(whole));
	struct table_header *t = r.table, *copy = malloc(r.bytes);
	uint32_t *words = (uint32_t *)copy;
	uint64_t seed = 2;
	int refused = 0;

	(void)state;
	assert_int_equal(r.err, 0);
	assert_non_null(copy);
	for (size_t n = 0; n < r.bytes; n++)
		assert_int_equal(table_check(t, n), -EINVAL);
	for (int round = 0; round < 20000; round++) {
		memcpy(copy, t, r.bytes);
		words[random_next(&seed) % (r.bytes / 4)] ^= 1u << random_next(&seed) % 32;
		if (table_check(copy, r.bytes)) {
			refused++;
			continue;
		}
		/* What passes may be looked up anywhere. */
		for (uint64_t at = 0; at < CFI_IMAGE_BYTES_MAX; at += 61) {
			struct table_rule rule;

			assert_true(!tables_find(copy, at, &rule) ||
				    (rule.cfa <= RULE_NOTED &&
				     rule.cfa_register < RULE_REGISTER_COUNT));
		}
	}
	assert_true(refused > 1000);
	/* Two pages with the same rows would make a check of the square of the rows. */
	memcpy(copy, t, r.bytes);
	copy->pages = 0;
	assert_int_equal(table_check(copy, r.bytes), -EINVAL);
	free(copy);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_programs),	cmocka_unit_test(test_augmentations),
	    cmocka_unit_test(test_signal),	cmocka_unit_test(test_forms), cmocka_unit_test(test_code),
	    cmocka_unit_test(test_gaps),	cmocka_unit_test(test_pages),
	    cmocka_unit_test(test_debug_frame), cmocka_unit_test(test_too_many_rows),
	    cmocka_unit_test(test_no_sections), cmocka_unit_test(test_damaged),
	    cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
