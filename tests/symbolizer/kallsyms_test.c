/* SPDX-License-Identifier: Apache-2.0 */
/* kallsyms: names, modules, what is left out, hidden addresses, reading again. */
#define _GNU_SOURCE
#include "symbolizer/kallsyms.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND 1000000000ull

static int text_fd(const char *text)
{
	int fd = memfd_create("text", 0);

	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

static void rewrite(int fd, const char *text)
{
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

static void expect(struct kallsyms *k, uint64_t addr, const char *name, const char *module,
		   uint64_t offset)
{
	struct kallsyms_found found;

	assert_true(kallsyms_find(k, addr, &found));
	assert_string_equal(found.name, name);
	assert_string_equal(found.module, module);
	assert_int_equal(found.offset, offset);
}

static void test_names(void **state)
{
	int fd = text_fd("0000000000000000 A percpu_start\n"
			 "ffffffff80000f00 t early_entry\n"
			 "ffffffff81000000 T _stext\n"
			 "ffffffff81000000 T _text\n"
			 "ffffffff81000100 t __pi_copy\n"
			 "ffffffff81000100 T copy\n"
			 "ffffffff81000100 W copy_alias\n"
			 "ffffffff81000180 d data_is_no_code\n"
			 "ffffffff81000200 T last\n"
			 "ffffffffc0002000 t second\t[mod]\n"
			 "ffffffffc0001000 t first\t[mod]\n"
			 "ffffffffc0100000 t bpf_prog_1234_x\t[bpf]\n"
			 "nonsense\n"
			 "ffffffffc0200000\n"
			 "ffffffffc0200000 T \n"
			 "ffffffffc0300000 t unended\t[mod");
	struct kallsyms_found found;
	struct kallsyms k;

	(void)state;
	kallsyms_open(&k, fd, -1);
	expect(&k, 0xffffffff81000123, "copy", "", 0x123);
	expect(&k, 0xffffffff81000100, "copy", "", 0x100);
	expect(&k, 0xffffffff810001ff, "copy", "", 0x1ff);
	expect(&k, 0xffffffff81000200, "last", "", 0x200);
	expect(&k, 0xffffffff80000f10, "early_entry", "", 0x10);
	expect(&k, 0xffffffffc0001fff, "first", "mod", 0xfff);
	expect(&k, 0xffffffffc0002001, "second", "mod", 0x1001);
	expect(&k, 0xffffffffc0100004, "bpf_prog_1234_x", "bpf", 4);
	assert_false(kallsyms_find(&k, 0x1000, &found));
	/* Far behind the last one is not in it. */
	assert_false(kallsyms_find(&k, 0xffffffffffff0000, &found));
	kallsyms_close(&k);
	close(fd);
}

static void test_hidden(void **state)
{
	int fd = text_fd("0000000000000000 T _text\n0000000000000000 T copy\n");
	struct kallsyms_found found;
	struct kallsyms k;

	(void)state;
	kallsyms_open(&k, fd, -1);
	assert_false(kallsyms_find(&k, 0xffffffff81000123, &found));
	kallsyms_close(&k);
	close(fd);
}

static void test_refresh(void **state)
{
	int fd = text_fd("ffffffff81000000 T _text\nffffffffc0001000 t old\t[mod]\n");
	int modules = text_fd("mod 16384 1 - Live 0xffffffffc0001000\n");
	struct kallsyms k;

	(void)state;
	kallsyms_open(&k, fd, modules);
	expect(&k, 0xffffffffc0001001, "old", "mod", 1);
	assert_false(kallsyms_refresh(&k, 100 * SECOND));
	rewrite(fd, "ffffffff81000000 T _text\nffffffffc0001000 t new\t[dom]\n");
	/* A use count is no change. */
	rewrite(modules, "mod 16384 2 - Live 0xffffffffc0001000\n");
	assert_false(kallsyms_refresh(&k, 111 * SECOND));
	rewrite(modules, "dom 16384 1 - Live 0xffffffffc0001000\n");
	assert_false(kallsyms_refresh(&k, 112 * SECOND)); /* too early to look */
	assert_true(kallsyms_refresh(&k, 122 * SECOND));
	expect(&k, 0xffffffffc0001001, "new", "dom", 1);
	assert_false(kallsyms_refresh(&k, 140 * SECOND));
	kallsyms_close(&k);
	close(fd);
	close(modules);
}

#define KERNEL "ffffffff81000000 T _text\nffffffff81000100 T copy\n"
#define MODULE "ffffffffc0001000 t first\t[mod]\n"

/* BPF programs come and go, and no list of modules says so. */
static void test_programs(void **state)
{
	int fd = text_fd(KERNEL MODULE);
	int modules = text_fd("mod 16384 1 - Live 0xffffffffc0001000\n");
	struct kallsyms_found found;
	struct kallsyms k;

	(void)state;
	kallsyms_open(&k, fd, modules);
	expect(&k, 0xffffffff81000101, "copy", "", 0x101);
	assert_false(kallsyms_refresh(&k, 100 * SECOND));
	rewrite(fd, KERNEL MODULE "ffffffffc0040000 t bpf_prog_6deef7357e7b4530_one\t[bpf]\n");
	/* As long as nobody asks nothing is read. */
	expect(&k, 0xffffffff81000102, "copy", "", 0x102);
	assert_false(kallsyms_refresh(&k, 200 * SECOND));
	/* Behind the last function of a module is not that function. */
	assert_false(kallsyms_find(&k, 0xffffffffc0040010, &found));
	assert_true(kallsyms_refresh(&k, 201 * SECOND));
	expect(&k, 0xffffffffc0040010, "bpf_prog_6deef7357e7b4530_one", "bpf", 0x10);
	/* Another in its place: the address says nothing, but it is asked for. */
	rewrite(fd, KERNEL MODULE "ffffffffc0040000 t bpf_prog_bcf7977d3b93787c_two\t[bpf]\n");
	assert_false(kallsyms_refresh(&k, 202 * SECOND)); /* too early */
	assert_true(kallsyms_refresh(&k, 212 * SECOND));
	expect(&k, 0xffffffffc0040010, "bpf_prog_bcf7977d3b93787c_two", "bpf", 0x10);
	/* In vain, less and less often: after 10 s, 20 s, 40 s. */
	assert_false(kallsyms_refresh(&k, 223 * SECOND));
	expect(&k, 0xffffffffc0040020, "bpf_prog_bcf7977d3b93787c_two", "bpf", 0x20);
	rewrite(fd, KERNEL MODULE);
	assert_false(kallsyms_refresh(&k, 242 * SECOND));
	assert_true(kallsyms_refresh(&k, 244 * SECOND));
	assert_false(kallsyms_find(&k, 0xffffffffc0040020, &found));
	kallsyms_close(&k);
	close(fd);
	close(modules);
}

/* Nobody asks any more, because the answer is kept: once in ten minutes all the same. */
static void test_programs_late(void **state)
{
	int fd = text_fd(KERNEL "ffffffffc0040000 t bpf_prog_6deef7357e7b4530_one\t[bpf]\n");
	struct kallsyms k;

	(void)state;
	kallsyms_open(&k, fd, -1);
	expect(&k, 0xffffffffc0040010, "bpf_prog_6deef7357e7b4530_one", "bpf", 0x10);
	assert_false(kallsyms_refresh(&k, 100 * SECOND));
	assert_false(kallsyms_refresh(&k, 111 * SECOND)); /* it is the same */
	rewrite(fd, KERNEL "ffffffffc0040000 t bpf_prog_bcf7977d3b93787c_two\t[bpf]\n");
	assert_false(kallsyms_refresh(&k, 600 * SECOND));
	assert_true(kallsyms_refresh(&k, 752 * SECOND));
	expect(&k, 0xffffffffc0040010, "bpf_prog_bcf7977d3b93787c_two", "bpf", 0x10);
	kallsyms_close(&k);
	close(fd);
}

/* Lines that straddle the pieces in which the file is read. */
static void test_long(void **state)
{
	int fd = memfd_create("text", 0);
	FILE *out = fdopen(dup(fd), "w");
	struct kallsyms k;
	char name[64];

	(void)state;
	for (int i = 0; i < 20000; i++)
		fprintf(out, "%016llx t function_number_%d%s\n", 0xffffffff81000000ull + 16ull * i,
			i, i % 3 ? "" : "_with_a_longer_name");
	fclose(out);
	kallsyms_open(&k, fd, -1);
	for (int i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "function_number_%d%s", i,
			 i % 3 ? "" : "_with_a_longer_name");
		expect(&k, 0xffffffff81000000ull + 16ull * i + 5, name, "", 16ull * i + 5);
	}
	kallsyms_close(&k);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_hidden),
	    cmocka_unit_test(test_refresh),
	    cmocka_unit_test(test_programs),
	    cmocka_unit_test(test_programs_late),
	    cmocka_unit_test(test_long),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
