/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for Go: the steps and the rules of a function made by hand, old and new prologues; a real
 * program (make workloads) against what libdw says of its .debug_frame, which Go's linker writes
 * for debuggers; and that program, damaged.
 */
#define _GNU_SOURCE
#include <dwarf.h>
#include <elfutils/libdw.h>
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

#include "symbolizer/gotable.h"
#include "tests/symbolizer/cfi_image.h"
#include "tests/symbolizer/tables.h"

#define START	 0x401000u
#define ROUNDS	 150
#define FORMATS	 4
#define AT_TABLE 96
#define AT_STEPS 400

/* One function, "f", in a table of the given format. */
struct image {
	uint8_t bytes[512];
	struct gotable go;
	struct pclntab_function function;
};

static void put(struct image *image, size_t at, uint64_t value, size_t n)
{
	memcpy(image->bytes + at, &value, n);
}

/* The parts that pclntab_open() would find; the header itself is tested with a real program. */
static void image_make(struct image *image, uint32_t magic, const char *name, uint8_t flags,
		       const char *steps, size_t steps_n, const char *code, size_t code_n)
{
	bool old = magic == 0xfffffffb, wide = old || magic == 0xfffffffa;
	size_t n = wide ? 8 : 4, table = AT_TABLE, at = table + 4 * n, base = old ? 0 : table;
	struct pclntab *tab = &image->go.tab;

	memset(image, 0, sizeof(*image));
	put(image, 0, magic, 4);
	put(image, table, wide ? START : 0, n);
	put(image, table + n, at - base, n);
	put(image, table + 2 * n, (wide ? START : 0) + code_n, n);
	put(image, at + n, 300 - (old ? 0 : 200), 4);
	put(image, at + n + 12, AT_STEPS - (old ? 0 : 8), 4);
	put(image, at + n + 32 + (magic == 0xfffffff1 ? 4 : 0) + 1, flags, 1);
	strcpy((char *)image->bytes + 300, name);
	memcpy(image->bytes + AT_STEPS, steps, steps_n);
	*tab = (struct pclntab){.bytes = image->bytes,
				.size = sizeof(image->bytes),
				.text = wide ? 0 : START,
				.names = old ? 0 : 200,
				.steps = old ? 0 : 8,
				.table = table,
				.functions = 1,
				.magic = magic,
				.entry_bytes = (unsigned)n};
	image->go.code = (const uint8_t *)code;
	image->go.code_start = START;
	image->go.code_bytes = code_n;
	assert_true(pclntab_function(tab, 0, &image->function));
	assert_string_equal(image->function.name, name);
	assert_int_equal(image->function.start, START);
	assert_int_equal(image->function.end, START + code_n);
}

struct lines {
	char text[1024];
	uint64_t last;
};

static void add_line(void *arg, uint64_t vaddr, const struct table_rule *rule)
{
	struct lines *lines = arg;
	char one[TABLES_TEXT_BYTES];
	size_t n = strlen(lines->text);

	assert_true(vaddr >= lines->last);
	lines->last = vaddr;
	snprintf(lines->text + n, sizeof(lines->text) - n, "%u: %s%s\n", (unsigned)(vaddr - START),
		 rule->cfa == RULE_SWITCH  ? "switch "
		 : rule->cfa == RULE_NOTED ? "noted "
					   : "",
		 tables_text(rule, one));
}

static const char *run(struct image *image)
{
	static struct lines lines;

	memset(&lines, 0, sizeof(lines));
	gotable_run(&image->go, &image->function, add_line, &lines);
	return lines.text;
}

/* push %rbp; mov %rsp,%rbp; sub $16,%rsp; nop; add $16,%rsp; pop %rbp; ret */
static const char new_code[] = "\x55\x48\x89\xe5\x48\x83\xec\x10\x90\x48\x83\xc4\x10\x5d\xc3";
/* 0 for 1 byte, 8 for 7, 24 for 5, 8 for 1, 0 for 1; the first value counts from -1 */
static const char new_steps[] = "\x02\x01\x10\x07\x20\x05\x1f\x01\x0f\x01\x00";

static void test_formats(void **state)
{
	static const uint32_t magics[FORMATS] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};
	struct image image;

	(void)state;
	for (size_t i = 0; i < FORMATS; i++) {
		image_make(&image, magics[i], "f", 0, new_steps, sizeof(new_steps) - 1, new_code,
			   sizeof(new_code) - 1);
		assert_string_equal(run(&image), "0: sp+8 fp= ra@cfa-8\n"
						 "1: sp+16 fp@cfa-16 ra@cfa-8\n"
						 "8: sp+32 fp@cfa-16 ra@cfa-8\n"
						 "13: sp+16 fp@cfa-16 ra@cfa-8\n"
						 "14: sp+8 fp= ra@cfa-8\n");
	}
}

/* Before Go 1.21: sub $24,%rsp; mov %rbp,16(%rsp); lea 16(%rsp),%rbp; ... */
static void test_old_prologue(void **state)
{
	static const char code[] = "\x48\x83\xec\x18\x48\x89\x6c\x24\x10\x48\x8d\x6c\x24\x10"
				   "\x48\x8b\x6c\x24\x10\x48\x83\xc4\x18\xc3";
	static const char steps[] = "\x02\x04\x30\x13\x2f\x01\x00";
	struct image image;

	(void)state;
	image_make(&image, 0xfffffff0, "f", 0, steps, sizeof(steps) - 1, code, sizeof(code) - 1);
	assert_string_equal(run(&image), "0: sp+8 fp= ra@cfa-8\n"
					 "4: sp+32 fp= ra@cfa-8\n"
					 "9: sp+32 fp@cfa-16 ra@cfa-8\n"
					 "23: sp+8 fp= ra@cfa-8\n");
}

static void test_special(void **state)
{
	struct image image;

	(void)state;
	image_make(&image, 0xfffffff1, "runtime.systemstack", PCLNTAB_WRITES_SP, new_steps,
		   sizeof(new_steps) - 1, new_code, sizeof(new_code) - 1);
	assert_string_equal(run(&image), "0: sp+8 fp= ra@cfa-8\n"
					 "1: sp+16 fp@cfa-16 ra@cfa-8\n"
					 "4: switch fp+16 fp@cfa-16 ra@cfa-8\n"
					 "8: switch fp+16 fp@cfa-16 ra@cfa-8\n"
					 "13: switch fp+16 fp@cfa-16 ra@cfa-8\n"
					 "14: sp+8 fp= ra@cfa-8\n");
	image_make(&image, 0xfffffff1, "runtime.goexit", PCLNTAB_TOP, "\x02\x02", 3, "\x90\xc3", 2);
	assert_string_equal(run(&image), "0: stop\n");
	image_make(&image, 0xfffffffa, "runtime.mstart", 0, "\x02\x02", 3, "\x90\xc3", 2);
	assert_string_equal(run(&image), "0: stop\n");
	/* nop; mov 0x38(%rbx),%rsp; ret */
	image_make(&image, 0xfffffff1, "runtime.morestack", PCLNTAB_WRITES_SP, "\x02\x06", 3,
		   "\x90\x48\x8b\x63\x38\xc3", 6);
	assert_string_equal(run(&image), "0: sp+8 fp= ra@cfa-8\n5: stop\n");
	image_make(&image, 0xfffffffa, "runtime.mcall", 0, "\x02\x06", 3,
		   "\x90\x48\x8b\x63\x38\xc3", 6);
	assert_string_equal(run(&image), "0: sp+8 fp= ra@cfa-8\n5: stop\n");
	image_make(&image, 0xfffffff1, "gogo", PCLNTAB_WRITES_SP, "\x02\x06", 3,
		   "\x90\x48\x8b\x63\x38\xc3", 6);
	assert_string_equal(run(&image), "0: sp+8 fp= ra@cfa-8\n5: invalid\n");
	/* nop; mov %rsi,%rsp; ret */
	image_make(&image, 0xfffffff1, "runtime.clone", PCLNTAB_WRITES_SP, "\x02\x05", 3,
		   "\x90\x48\x89\xf4\xc3", 5);
	assert_string_equal(run(&image), "0: sp+8 fp= ra@cfa-8\n4: stop\n");
	/* pop %r12; syscall; push %r12; ret */
	image_make(&image, 0xfffffff1, "f", 0, "\x02\x02\x0f\x04\x10\x01", 7,
		   "\x41\x5c\x0f\x05\x41\x54\xc3", 7);
	assert_string_equal(run(&image), "0: sp+8 fp= ra@cfa-8\n"
					 "2: sp+0 fp= ra=r12\n"
					 "6: sp+8 fp= ra@cfa-8\n");
	/* mov 0x38(%rsi),%rsp; sub $0x40,%rsp; mov %rdi,0x28(%rsp); call *%rax; mov %rsi,%rsp; ret;
	 * sub $0x40,%rsp; mov %rdx,0x28(%rsp); call *%rax; mov %rsi,%rsp; ret */
	image_make(&image, 0xfffffff0, "runtime.asmcgocall", PCLNTAB_WRITES_SP, "\x02\x22", 3,
		   "\x48\x8b\x66\x38\x48\x83\xec\x40\x48\x89\x7c\x24\x28\xff\xd0\x48\x89\xf4\xc3"
		   "\x48\x83\xec\x40\x48\x89\x54\x24\x28\xff\xd0\x48\x89\xf4\xc3",
		   34);
	assert_string_equal(run(&image), "0: sp+8 fp= ra@cfa-8\n"
					 "4: invalid\n"
					 "8: invalid\n"
					 "13: noted sp+40 fp= ra@cfa-8\n"
					 "18: sp+8 fp= ra@cfa-8\n"
					 "23: invalid\n"
					 "28: noted sp+40 fp= ra@cfa-8\n"
					 "33: sp+8 fp= ra@cfa-8\n");
	/* Since 1.21 with push %rbp; mov %rsp,%rbp before all that: by the frame pointer. */
	image_make(&image, 0xfffffff1, "runtime.asmcgocall", PCLNTAB_WRITES_SP, "\x02\x01\x10\x16", 5,
		   "\x55\x48\x89\xe5\x48\x8b\x66\x38\x48\x89\x7c\x24\x28\x48\x89\x54\x24\x28"
		   "\x48\x89\xf4\x5d\xc3",
		   23);
	assert_string_equal(run(&image), "0: sp+8 fp= ra@cfa-8\n"
					 "1: sp+16 fp@cfa-16 ra@cfa-8\n"
					 "4: switch fp+16 fp@cfa-16 ra@cfa-8\n");
	image_make(&image, 0xfffffff1, "runtime.sigreturn", 0, "\x02\x09", 3,
		   "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
	assert_string_equal(run(&image), "0: signal+40\n");
}

static void test_bad_steps(void **state)
{
	static const struct {
		const char *steps;
		size_t n;
		const char *text;
	} cases[] = {
	    {"\x00\x00", 2, ""},				       /* no way on */
	    {"\xff\xff\xff\xff\xff\xff\x01\x01", 8, ""},	       /* a number without end */
	    {"\x02\xff\xff\xff\xff\x0f", 6, "0: sp+8 fp= ra@cfa-8\n"}, /* far behind the end */
	    {"\x01\x01", 2, "0: invalid\n"},		     /* below the return address */
	    {"\xfe\xff\xff\xff\x0f\x01", 6, "0: invalid\n"}, /* 2 GiB */
	};
	struct image image;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		image_make(&image, 0xfffffff1, "f", 0, cases[i].steps, cases[i].n, new_code,
			   sizeof(new_code) - 1);
		assert_string_equal(run(&image), cases[i].text);
	}
}

static int open_workload(const char *name)
{
	const char *build = getenv("SCONCE_BUILD");
	char path[512];

	snprintf(path, sizeof(path), "%s/bench/workloads/go/%s", build ? build : "build", name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* sp + what, according to libdw, and up to where; 0 when it says something else. */
static int64_t libdw_cfa(Dwarf_CFI *cfi, uint64_t vaddr, uint64_t *end)
{
	Dwarf_Frame *frame;
	Dwarf_Addr start;
	Dwarf_Op *ops;
	int64_t offset = 0;
	size_t n;

	if (dwarf_cfi_addrframe(cfi, vaddr, &frame))
		return 0;
	if (dwarf_frame_cfa(frame, &ops, &n) == 0 && n == 1) {
		if (ops[0].atom == DW_OP_breg7)
			offset = (int64_t)ops[0].number;
		if (ops[0].atom == DW_OP_bregx && ops[0].number == 7)
			offset = (int64_t)ops[0].number2;
	}
	dwarf_frame_info(frame, &start, end, NULL);
	free(frame);
	return offset;
}

struct figures {
	unsigned compared, same, other;
};

/* Wherever either of the two changes, in the text that goes by sp. */
static void compare(const struct tables_result *r, Dwarf_CFI *cfi, struct figures *figures)
{
	for (uint32_t i = 0; i < r->segments_n; i++) {
		const struct elffile_segment *s = &r->segments[i];
		uint64_t next;

		for (uint64_t at = s->offset; at < s->offset + s->bytes; at = next) {
			uint64_t end = UINT64_MAX;
			struct table_rule rule;
			int64_t cfa;

			next = tables_next(r->table, at, s->offset + s->bytes);
			assert_true(tables_find(r->table, at, &rule));
			if (rule.cfa != RULE_REGISTER)
				continue;
			cfa = libdw_cfa(cfi, at - s->offset + s->vaddr, &end);
			if (!cfa)
				continue;
			if (end - s->vaddr + s->offset < next)
				next = end - s->vaddr + s->offset;
			figures->compared++;
			if (cfa == rule.cfa_offset && rule.cfa_register == RULE_SP)
				figures->same++;
			else if (figures->other++ < 5)
				print_message("%#lx: %d, libdw has %ld\n",
					      (unsigned long)(at - s->offset + s->vaddr),
					      rule.cfa_offset, (long)cfa);
		}
	}
}

/* The same function in a file, with the header that leads to it. */
static void test_in_a_file(void **state)
{
	static const uint32_t magics[] = {0xfffffffa, 0xfffffff0, 0xfffffff1};
	static const char *const want[] = {"sp+8 fp= ra@cfa-8", "sp+16 fp@cfa-16 ra@cfa-8",
					   "sp+32 fp@cfa-16 ra@cfa-8"};
	static const uint8_t places[][2] = {{0, 0},  {1, 1},  {7, 1}, {8, 2},
					    {12, 2}, {13, 1}, {14, 0}};
	static uint8_t bytes[CFI_IMAGE_BYTES_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		struct cfi_image file = cfi_image_start(false);
		struct image image;
		struct tables_result r;
		size_t n, more = i ? 8 : 0; /* from 1.18 on the text's address stands before */

		image_make(&image, magics[i], "f", 0, new_steps, sizeof(new_steps) - 1, new_code,
			   sizeof(new_code) - 1);
		put(&image, 4, 0x08010000, 4);
		put(&image, 8, 1, 8);
		put(&image, 24, START, 8);
		put(&image, 24 + more, 200, 8);
		put(&image, 48 + more, 8, 8);
		put(&image, 56 + more, AT_TABLE, 8);
		file.go = true;
		file.cfi_bytes = sizeof(image.bytes);
		memcpy(file.cfi, image.bytes, sizeof(image.bytes));
		cfi_image_text(&file, 0, new_code, sizeof(new_code) - 1);
		n = cfi_image_write(&file, bytes);
		cfi_image_keep(bytes, n);
		r = tables_compile_bytes(bytes, n);
		assert_int_equal(r.err, 0);
		for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
			char text[TABLES_TEXT_BYTES];
			struct table_rule rule;

			assert_true(
			    tables_find(r.table, CFI_IMAGE_TEXT_OFFSET + places[k][0], &rule));
			assert_string_equal(tables_text(&rule, text), want[places[k][1]]);
		}
		free(r.table);
	}
}

static void test_libdw(void **state)
{
	struct figures figures = {0, 0, 0};
	struct tables_result r;
	int fd = open_workload("go-chain");
	Dwarf *dwarf;

	(void)state;
	if (fd < 0) {
		print_message("no Go here (make workloads)\n");
		skip();
	}
	dwarf = dwarf_begin(fd, DWARF_C_READ);
	assert_non_null(dwarf);
	r = tables_compile(dup(fd));
	assert_int_equal(r.err, 0);
	compare(&r, dwarf_getcfi(dwarf), &figures);
	print_message("%u rows, %zu bytes, %u compared, %u differ\n", r.table->rows, r.bytes,
		      figures.compared, figures.other);
	assert_true(figures.compared > 5000);
	assert_int_equal(figures.other, 0);
	free(r.table);
	dwarf_end(dwarf);
	close(fd);
}

/* Bytes of Go's table, and of what leads to it, are something else. The end is what is tested. */
static void test_damaged(void **state)
{
	int fd = open_workload("go-bare");
	struct stat st;
	uint32_t seed = 1;
	char *bytes;

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(fstat(fd, &st), 0);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	assert_true(bytes != MAP_FAILED);
	for (unsigned i = 0; i < ROUNDS; i++) {
		static const uint8_t header[] = {0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8};
		uint8_t *table = memmem(bytes, (size_t)st.st_size, header, sizeof(header));
		struct tables_result r;
		size_t at, left;
		char was[8];

		assert_non_null(table);
		left = (size_t)((uint8_t *)bytes + st.st_size - table);
		seed = seed * 1664525 + 1013904223;
		/* Every other one in the header, behind its magic number. */
		at = i % 2 ? 8 + (seed >> 8) % 64 : 8 + (seed >> 8) % (left - 16);
		memcpy(was, table + at, sizeof(was));
		memset(table + at, i % 3 ? 0xff : (int)(seed >> 4), 1 + i % sizeof(was));
		r = tables_compile_bytes(bytes, (size_t)st.st_size);
		free(r.err ? NULL : r.table);
		memcpy(table + at, was, sizeof(was));
	}
	munmap(bytes, (size_t)st.st_size);
	close(fd);
}

/* Of these files, for bench/: rows, bytes per MB of text, time. */
static void report(const char *path)
{
	struct tables_result r = tables_compile(open(path, O_RDONLY | O_CLOEXEC));
	uint64_t text = 0;

	for (uint32_t i = 0; i < r.segments_n; i++)
		text += r.segments[i].bytes;
	if (r.err) {
		printf("%s: error %d\n", path, r.err);
		return;
	}
	printf("%s: %.1f MB of text, %u rows, %u rules, %zu bytes, %.0f per MB, %.1f ms\n", path,
	       (double)text / 1e6, r.table->rows, r.table->rules, r.bytes,
	       (double)r.bytes * 1e6 / (double)text, r.ms);
	free(r.table);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_formats),   cmocka_unit_test(test_old_prologue),
	    cmocka_unit_test(test_special),   cmocka_unit_test(test_bad_steps),
	    cmocka_unit_test(test_in_a_file), cmocka_unit_test(test_libdw),
	    cmocka_unit_test(test_damaged),
	};

	for (int i = 1; i < argc; i++)
		report(argv[i]);
	return argc > 1 ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
