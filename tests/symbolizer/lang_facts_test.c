/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read out of a runtime's file: symbols against readelf, in the libraries of the runtimes
 * that are here; the forms of code in small programs of several compilers; all of it in damaged
 * files.
 */
#define _GNU_SOURCE
#include "symbolizer/lang/facts.h"

#include <elf.h>
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

#include "symbolizer/x86.h"

#define EVERY	41
#define DAMAGES 400

static struct reader reader;
static struct elffile elf;
static struct facts facts;
static int slot;

static bool open_fd(int fd)
{
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	slot = reader_add(&reader, fd);
	assert_true(slot >= 0);
	if (elffile_open(&elf, &reader, slot, (uint64_t)st.st_size) == 0) {
		if (facts_open(&facts, &elf) == 0)
			return true;
		elffile_close(&elf);
	}
	reader_remove(&reader, slot);
	return false;
}

static bool open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && open_fd(fd);
}

static void close_file(void)
{
	elffile_close(&elf);
	reader_remove(&reader, slot);
}

static void open_form(const char *name)
{
	char path[512], self[400];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	/* build/MODE/tests/symbolizer/x: the forms are beside it, or in the build without a mode.
	 */
	assert_true(n > 0);
	self[n] = 0;
	*strrchr(self, '/') = 0;
	snprintf(path, sizeof(path), "%s/forms/%s", self, name);
	if (access(path, R_OK))
		snprintf(path, sizeof(path), "%s/../../../tests/symbolizer/forms/%s", self, name);
	assert_true(open_file(path));
}

static uint64_t at(const char *name)
{
	struct facts_symbol symbol;

	assert_int_equal(facts_any_symbol(&facts, name, &symbol), 0);
	return symbol.vaddr;
}

/* --- Real files. --- */

static const char *const runtimes[] = {
    "/usr/bin/python3.11",
    "/root/.pyenv/versions/3.13.0/lib/libpython3.13.so.1.0",
    "/root/.pyenv/versions/3.6.15/lib/libpython3.6m.so.1.0",
    "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1",
    "/usr/bin/perl",
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
};

static int check_symbols(const char *path)
{
	char command[512], line[2048], type[32], index[32], name[1024];
	struct facts_symbol symbol;
	unsigned long addr, size;
	int checked = 0, i = 0;
	FILE *out;

	if (!open_file(path))
		return 0;
	snprintf(command, sizeof(command), "readelf -W --dyn-syms %s", path);
	out = popen(command, "r");
	assert_non_null(out);
	while (fgets(line, sizeof(line), out)) {
		/* Of several versions of one name any is right. */
		if (sscanf(line, " %*d: %lx %li %31s %*s %*s %31s %1023s", &addr, &size, type,
			   index, name) != 5 ||
		    !strcmp(index, "UND") || strchr(name, '@') || i++ % EVERY)
			continue;
		assert_int_equal(facts_symbol(&facts, name, &symbol), 0);
		assert_int_equal(symbol.vaddr, addr);
		assert_int_equal(symbol.size, size);
		assert_int_equal(symbol.thread_local_, !strcmp(type, "TLS"));
		checked++;
	}
	pclose(out);
	assert_int_equal(facts_symbol(&facts, "no such symbol", &symbol), -ENOENT);
	assert_int_equal(facts_any_symbol(&facts, "no such symbol", &symbol), -ENOENT);
	assert_int_equal(facts_libc(&facts), TABLE_GLIBC);
	close_file();
	return checked;
}

static void symbols_are_readelfs(void **state)
{
	int checked = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		checked += check_symbols(runtimes[i]);
	assert_true(checked > 100);
}

/* Debian's Ruby is stripped, and asks for its variable in the general way. */
static void ruby_finds_its_thread(void **state)
{
	struct table_runtime runtime = {0};
	uint64_t pair;

	(void)state;
	if (!open_file("/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1")) {
		print_message("no Ruby 3.1 here\n");
		skip();
	}
	assert_int_equal(facts_thread(&facts, at("rb_thread_current"), 0, &runtime), 0);
	assert_int_equal(runtime.thread, TABLE_THREAD_DTV);
	assert_int_equal(facts_relocation(&facts, "ruby_current_ec", R_X86_64_DTPMOD64, &pair), 0);
	assert_int_equal(runtime.thread_at, pair);
	assert_int_equal(facts_loop(&facts, at("rb_vm_exec"), &runtime), 0);
	assert_true(runtime.loops[0].end > runtime.loops[0].start && runtime.loops[1].end);
	close_file();
}

static void perl_finds_its_thread(void **state)
{
	uint64_t word;

	(void)state;
	if (!open_file("/usr/bin/perl")) {
		print_message("no Perl here\n");
		skip();
	}
	assert_int_equal(facts_relocation(&facts, "PL_current_context", R_X86_64_TPOFF64, &word),
			 0);
	assert_int_equal(facts_relocation_type(&facts, word), R_X86_64_TPOFF64);
	assert_int_equal(facts_relocation(&facts, "PL_current_context", R_X86_64_DTPMOD64, &word),
			 -ENOENT);
	close_file();
}

/* --- Code. --- */

static void check_thread(const char *form, enum table_thread how)
{
	struct table_runtime first = {0}, second = {0}, hidden = {0}, none = {0};

	open_form(form);
	assert_int_equal(facts_thread(&facts, at("forms_get_thread"), 0, &first), 0);
	assert_int_equal(first.thread, how);
	/* It uses both, in either order. */
	assert_int_equal(facts_thread(&facts, at("forms_get_second"), 0, &second), 0);
	if (second.thread_at == first.thread_at)
		assert_int_equal(facts_thread(&facts, at("forms_get_second"), 1, &second), 0);
	assert_int_equal(second.thread, how);
	assert_int_equal(facts_thread(&facts, at("forms_get_second"), 2, &none), -ENOENT);
	assert_int_equal(facts_thread(&facts, at("forms_get_field"), 0, &none), -ENOENT);
	assert_int_not_equal(first.thread_at, second.thread_at);
	/* In a library it is asked for with the offset behind the call. */
	assert_int_equal(facts_thread(&facts, at("forms_get_hidden"), 0, &hidden),
			 how == TABLE_THREAD_DTV ? -ENOENT : 0);
	if (how == TABLE_THREAD_TP) {
		struct facts_symbol a, b;

		assert_int_equal(facts_any_symbol(&facts, "forms_thread", &a), 0);
		assert_int_equal(facts_any_symbol(&facts, "forms_second", &b), 0);
		assert_true(a.thread_local_ && b.thread_local_);
		assert_int_equal(second.thread_at - first.thread_at, b.vaddr - a.vaddr);
		assert_true((int64_t)first.thread_at < 0);
	} else {
		uint64_t slot_at;

		assert_int_equal(
		    facts_relocation(&facts, "forms_thread",
				     how == TABLE_THREAD_GOT ? R_X86_64_TPOFF64 : R_X86_64_DTPMOD64,
				     &slot_at),
		    0);
		assert_int_equal(first.thread_at, slot_at);
	}
	close_file();
}

static void threads_are_found(void **state)
{
	(void)state;
	check_thread("program", TABLE_THREAD_TP);
	check_thread("fixed", TABLE_THREAD_TP);
	check_thread("clang", TABLE_THREAD_TP);
	check_thread("initial.so", TABLE_THREAD_GOT);
	check_thread("library.so", TABLE_THREAD_DTV);
	check_thread("noplt.so", TABLE_THREAD_DTV);
}

/* With descriptors the slot's second word is how far the variable is from the thread pointer. */
static void descriptors_are_found(void **state)
{
	struct table_runtime runtime = {0};

	(void)state;
	open_form("desc.so");
	assert_int_equal(facts_thread(&facts, at("forms_get_thread"), 0, &runtime), 0);
	assert_int_equal(runtime.thread, TABLE_THREAD_GOT);
	assert_int_equal(facts_relocation_type(&facts, runtime.thread_at - 8), R_X86_64_TLSDESC);
	close_file();
}

static void check_code(const char *form)
{
	int64_t field;
	uint64_t address;
	bool taken;

	open_form(form);
	assert_int_equal(facts_field(&facts, at("forms_get_field"), 0, &field), 0);
	assert_int_equal(field, 40);
	assert_int_equal(facts_field(&facts, at("forms_get_field"), 1, &field), 0);
	assert_int_equal(field, 40);
	assert_int_equal(facts_field(&facts, at("forms_get_field"), 2, &field), -ENOENT);
	assert_int_equal(facts_operand(&facts, at("forms_get_static"), 0, &address), 0);
	assert_int_equal(address, at("forms_static") + 40);
	assert_int_equal(facts_operand(&facts, at("forms_get_field"), 0, &address), -ENOENT);
	assert_int_equal(facts_key(&facts, at("forms_get_key"), &address, &taken), 0);
	assert_int_equal(address, at("forms_key"));
	assert_false(taken);
	assert_int_equal(facts_key(&facts, at("forms_give_key"), &address, &taken), 0);
	assert_int_equal(address, at("forms_key"));
	assert_true(taken);
	close_file();
}

static void fields_and_addresses_are_found(void **state)
{
	static const char *const forms[] = {"program",	  "fixed",    "clang",	"initial.so",
					    "library.so", "noplt.so", "desc.so"};

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		check_code(forms[i]);
}

static void trace_tells_of_chains(void **state)
{
	struct facts_step steps[8];

	(void)state;
	open_form("program");
	assert_int_equal(facts_trace(&facts, at("forms_get_field"), steps, 8), 2);
	assert_int_equal(steps[0].at.kind, FACTS_ARGUMENT);
	assert_int_equal(steps[0].at.of, X86_RDI);
	assert_int_equal(steps[0].into, X86_RAX);
	assert_int_equal(steps[1].at.kind, FACTS_LOADED);
	assert_int_equal(steps[1].at.of, 0);
	assert_int_equal(steps[1].bytes, 8);
	assert_int_equal(facts_trace(&facts, at("forms_get_field"), steps, 1), 1);
	close_file();
}

static void loop_has_its_cold_part(void **state)
{
	struct table_runtime runtime = {0};
	struct facts_symbol cold, hot;

	(void)state;
	open_form("program");
	assert_int_equal(facts_any_symbol(&facts, "forms_loop", &hot), 0);
	assert_int_equal(facts_any_symbol(&facts, "forms_loop.cold", &cold), 0);
	assert_int_equal(facts_loop(&facts, hot.vaddr + 3, &runtime), 0);
	assert_int_equal(runtime.loops[0].start + runtime.bias, hot.vaddr);
	assert_int_equal(runtime.loops[0].end + runtime.bias, hot.vaddr + hot.size);
	assert_int_equal(runtime.loops[1].start + runtime.bias, cold.vaddr);
	assert_int_equal(runtime.loops[1].end + runtime.bias, cold.vaddr + cold.size);
	assert_int_equal(runtime.loops[2].end, 0);
	/* Another one goes behind, as often as there is room. */
	assert_int_equal(facts_loop(&facts, at("forms_get_field"), &runtime), 0);
	assert_int_equal(runtime.loops[2].start + runtime.bias, at("forms_get_field"));
	assert_int_equal(facts_loop(&facts, at("forms_get_key"), &runtime), 0);
	assert_int_equal(facts_loop(&facts, at("forms_get_static"), &runtime), -ENOSPC);
	assert_int_equal(facts_loop(&facts, 1, &runtime), -ENOENT);
	close_file();
}

/* --- Whatever stands in it. --- */

static void ask_everything(void)
{
	struct table_runtime runtime = {0};
	struct facts_symbol symbol;
	uint64_t address;
	int64_t field;
	bool taken;

	facts_relocation(&facts, "forms_thread", R_X86_64_DTPMOD64, &address);
	facts_libc(&facts);
	facts_pointer(&facts, facts.constant, &address);
	if (facts_any_symbol(&facts, "forms_get_second", &symbol) == 0) {
		facts_thread(&facts, symbol.vaddr, 1, &runtime);
		facts_field(&facts, symbol.vaddr, 0, &field);
		facts_operand(&facts, symbol.vaddr, 0, &address);
		facts_key(&facts, symbol.vaddr, &address, &taken);
	}
	if (facts_any_symbol(&facts, "forms_loop", &symbol) == 0)
		facts_loop(&facts, symbol.vaddr, &runtime);
}

static void damaged_files_end(void **state)
{
	static uint8_t image[1u << 20], damaged[1u << 20];
	size_t n;
	int opened = 0;

	(void)state;
	open_form("library.so");
	n = (size_t)elf.size_bytes;
	assert_true(n <= sizeof(image));
	assert_int_equal(elffile_read(&elf, 0, image, n), 0);
	close_file();
	srandom(7);
	for (int i = 0; i < DAMAGES; i++) {
		int fd = memfd_create("damaged", MFD_CLOEXEC);

		memcpy(damaged, image, n);
		for (int k = 0; k < 1 + i % 60; k++)
			damaged[(size_t)random() % (k % 2 ? n : 0x1400)] = (uint8_t)random();
		assert_int_equal(write(fd, damaged, n), n);
		if (!open_fd(fd))
			continue;
		opened++;
		ask_everything();
		close_file();
	}
	assert_true(opened > DAMAGES / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(symbols_are_readelfs),
	    cmocka_unit_test(ruby_finds_its_thread),
	    cmocka_unit_test(perl_finds_its_thread),
	    cmocka_unit_test(threads_are_found),
	    cmocka_unit_test(descriptors_are_found),
	    cmocka_unit_test(fields_and_addresses_are_found),
	    cmocka_unit_test(trace_tells_of_chains),
	    cmocka_unit_test(loop_has_its_cold_part),
	    cmocka_unit_test(damaged_files_end),
	};

	reader_open(&reader, false);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
