/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files are asked whether they are a runtime, what is kept of the answer, and how the table
 * of such a file carries it. The language is made up: /bin/sh is its runtime, and /bin/ls one that
 * it does not understand.
 */
#define _GNU_SOURCE
#include "symbolizer/runtimes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "shm/unread.h"
#include "symbolizer/filetable.h"
#include "symbolizer/peers.h"

static int asked;

static bool made_up_name(struct remote *remote, const struct lang_runtime *runtime,
			 const struct lang_frame *frame, struct lang_function *function)
{
	(void)remote, (void)runtime, (void)frame, (void)function;
	return false;
}

static int made_up_recognize(struct elffile *elf, const char *module, struct lang_runtime *runtime)
{
	(void)elf, (void)module, (void)runtime;
	return -ENOENT;
}

static const struct lang python = {"python", "cpython", made_up_recognize, made_up_name},
			 php = {"php", "php", made_up_recognize, made_up_name},
			 ruby = {"ruby", "ruby", made_up_recognize, made_up_name},
			 perl = {"perl", "perl", made_up_recognize, made_up_name};
const struct lang *const langs[LANG_COUNT] = {
    [LANG_PYTHON] = &python, [LANG_PHP] = &php, [LANG_RUBY] = &ruby, [LANG_PERL] = &perl};

int lang_recognize(struct elffile *elf, const char *module, struct lang_runtime *runtime)
{
	asked++;
	assert_non_null(elf->elf);
	runtime->walk.language = LANG_RUBY;
	runtime->walk.fields[3] = 333;
	runtime->layout[1] = 77;
	snprintf(runtime->version, sizeof(runtime->version), "9.8.7");
	return !strcmp(module, "ruby-sh") ? 0 : !strcmp(module, "ruby-ls") ? -ENOTSUP : -ENOENT;
}

static struct {
	struct reader reader;
	struct files files;
	struct filetables tables;
	struct peers peers;
	struct runtimes runtimes;
	struct ledger ledger;
	struct channel sampler;
} world;

static int setup(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	asked = 0;
	reader_open(&world.reader, false);
	world.sampler.fd = -1;
	assert_int_equal(files_open(&world.files, &world.reader, &world.sampler, 1 << 20), 0);
	filetable_open(&world.tables, &world.files, &world.sampler, 1 << 26);
	peers_open(&world.peers, &world.tables, 1, 0);
	world.tables.runtimes = &world.runtimes;
	world.runtimes.ledger = &world.ledger;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	files_close(&world.files);
	reader_close(&world.reader);
	return 0;
}

static struct file *give(uint32_t id, const char *path, const char *called)
{
	struct message_file message = {.file_id = id};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	assert_return_code(fd, errno);
	assert_int_equal(fstat(fd, &st), 0);
	message.key = (struct file_key){st.st_dev, st.st_ino, (uint64_t)st.st_size, 1};
	snprintf(message.path, sizeof(message.path), "/opt/%s", called);
	files_message(&world.files, &message, fd);
	return files_get(&world.files, id);
}

static void test_table_carries_it(void **state)
{
	const struct table_runtime *runtime;
	const struct table_header *table;
	struct file *file = give(1, "/bin/sh", "ruby-sh"), *other = give(2, "/bin/sh", "sh");
	bool missing;

	(void)state;
	table = filetable_get(&world.tables, 1, &missing);
	assert_non_null(table);
	assert_int_equal(table->runtimes, 1);
	assert_int_equal(table_check(table, file->table_bytes), 0);
	runtime = (const void *)((const char *)table + file->table_bytes - sizeof(*runtime));
	assert_int_equal(runtime->language, LANG_RUBY);
	assert_int_equal(runtime->fields[3], 333);
	assert_int_equal(world.runtimes.found, 1);
	assert_int_equal(asked, 1);
	/* And again, when the table was given up for room. */
	filetable_forget(&world.tables, file);
	table = filetable_get(&world.tables, 1, &missing);
	assert_int_equal(table->runtimes, 1);
	assert_int_equal(asked, 1);
	assert_int_equal(runtimes_get(&world.runtimes, &world.files, file)->layout[1], 77);

	table = filetable_get(&world.tables, 2, &missing);
	assert_int_equal(table->runtimes, 0);
	assert_int_equal(table_check(table, other->table_bytes), 0);
	assert_null(runtimes_get(&world.runtimes, &world.files, other));
	assert_int_equal(asked, 1);
	assert_int_equal(world.runtimes.found, 1);
	assert_int_equal(world.runtimes.unknown, 0);
}

/* Of a table that was lent nothing is known but what it says. */
static void test_found_when_needed(void **state)
{
	struct file *file = give(1, "/bin/sh", "ruby-sh");

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_string_equal(runtimes_get(&world.runtimes, &world.files, file)->version,
				    "9.8.7");
	assert_int_equal(asked, 1);
	/* Somebody has written into it. */
	give(1, "/bin/ls", "ls");
	assert_null(runtimes_get(&world.runtimes, &world.files, file));
	assert_null(runtimes_get(&world.runtimes, &world.files, files_get(&world.files, 3)));
}

static void test_unknown(void **state)
{
	struct file *file = give(1, "/bin/ls", "ruby-ls");
	struct unread_runtime runtime;
	const struct table_header *table;
	uint32_t at = 0;
	bool missing;

	(void)state;
	table = filetable_get(&world.tables, 1, &missing);
	assert_int_equal(table->runtimes, 0);
	assert_null(runtimes_get(&world.runtimes, &world.files, file));
	assert_int_equal(asked, 1);
	assert_int_equal(world.runtimes.unknown, 1);
	assert_true(unread_next(&world.ledger, &at, &runtime));
	assert_string_equal(runtime.language, "ruby");
	assert_string_equal(runtime.version, "9.8.7");
	assert_string_equal(runtime.path, "/opt/ruby-ls");
	assert_false(unread_next(&world.ledger, &at, &runtime));
}

static int64_t look_ns; /* in all */

static bool may_be(const char *path, const char *module, bool *elf_file)
{
	int slot = reader_add(&world.reader, open(path, O_RDONLY | O_CLOEXEC));
	struct timespec begin, end;
	bool result = false;
	struct elffile elf;
	struct stat st;

	*elf_file = false;
	if (slot < 0)
		return false;
	if (reader_stat(&world.reader, slot, &st) == 0 && S_ISREG(st.st_mode) &&
	    elffile_open(&elf, &world.reader, slot, (uint64_t)st.st_size) == 0) {
		*elf_file = true;
		clock_gettime(CLOCK_MONOTONIC, &begin);
		result = runtimes_may_be(&elf, module);
		clock_gettime(CLOCK_MONOTONIC, &end);
		look_ns += (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
		elffile_close(&elf);
	}
	reader_remove(&world.reader, slot);
	return result;
}

/* By what it exports, whatever it is called. */
static void test_real_ones(void **state)
{
	static const char *const programs[] = {"/usr/bin/python3", "/usr/bin/perl", "/usr/bin/php"};
	bool elf;

	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		if (access(programs[i], R_OK)) {
			print_message("%s is not installed\n", programs[i]);
			continue;
		}
		assert_true(may_be(programs[i], "x", &elf));
	}
	assert_true(may_be("/bin/ls", "libruby-3.1.so.3.1", &elf));
	assert_false(may_be("/bin/ls", "ls", &elf));
	assert_true(elf);
}

/* Of the libraries of the machine next to none is asked. */
static void test_libraries(void **state)
{
	static const char folder[] = "/usr/lib/x86_64-linux-gnu";
	DIR *dir = opendir(folder);
	int all = 0, may = 0;
	struct dirent *entry;
	bool elf;

	(void)state;
	if (!dir) {
		print_message("skipped: no %s\n", folder);
		skip();
	}
	look_ns = 0;
	while ((entry = readdir(dir)) && (all < 200 || getenv("RUNTIMES_ALL"))) {
		char path[512];

		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (!strstr(entry->d_name, ".so"))
			continue;
		if (may_be(path, entry->d_name, &elf)) {
			may++;
			print_message("asked: %s\n", entry->d_name);
		}
		all += elf;
	}
	closedir(dir);
	print_message("%d of %d asked, %.1f us each to see that\n", may, all,
		      (double)look_ns / 1e3 / (all ? all : 1));
	assert_true(all > 0 && may <= 8 + all / 100);
}

static void test_unread(void **state)
{
	struct unread_runtime runtime;
	struct ledger *ledger = &world.ledger;
	uint32_t at = 0, n = 0;
	char version[8], path[200];

	(void)state;
	assert_false(unread_next(NULL, &at, &runtime));
	memset(path, 'p', sizeof(path));
	memcpy(path + sizeof(path) - 12, "/<x>\"\n/php8", 12);
	unread_add(ledger, "php", "8.9", path);
	assert_true(unread_next(ledger, &at, &runtime));
	assert_int_equal(strlen(runtime.path), sizeof(runtime.path) - 1);
	assert_string_equal(runtime.path + strlen(runtime.path) - 12, "p/?x?"
								      "?"
								      "?/php8");
	for (int i = 0; i < 100; i++) {
		snprintf(version, sizeof(version), "3.%d", i % 20);
		unread_add(ledger, "python", version, "/usr/bin/python3");
		unread_add(ledger, "python", version, "/usr/bin/python3");
	}
	for (at = 0; unread_next(ledger, &at, &runtime); n++)
		assert_string_equal(runtime.language, "python");
	assert_int_equal(n, LEDGER_UNREAD);
	at = 0;
	assert_true(unread_next(ledger, &at, &runtime));
	assert_string_equal(runtime.version, "3.19");
	/* Whatever its owner writes. */
	memset(ledger->unread, 0xff, sizeof(ledger->unread));
	for (at = n = 0; unread_next(ledger, &at, &runtime); n++)
		assert_int_equal(strlen(runtime.language), sizeof(runtime.language) - 1);
	assert_int_equal(n, LEDGER_UNREAD);
	unread_clear(ledger);
	at = 0;
	assert_false(unread_next(ledger, &at, &runtime));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_table_carries_it), TEST(test_found_when_needed), TEST(test_unknown),
	    TEST(test_real_ones),	 TEST(test_libraries),	       TEST(test_unread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
