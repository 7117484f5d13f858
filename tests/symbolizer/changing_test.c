/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that their owner changes while they are read: cut, grown again, overwritten with another
 * file and with noise. Whatever is made of them then is in order, and when the owner is through
 * with it, it is what the file says.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "shm/table.h"
#include "symbolizer/ehframe.h"
#include "symbolizer/reader.h"
#include "symbolizer/symbols.h"

#define ROUNDS	    200
#define SECONDS	    5 /* enough, on a machine that is slow */
#define INDEX_BYTES (64u << 20)
#define NOISE_BYTES 64

struct content {
	char *bytes;
	size_t n;
};

/* What was made of a file. */
struct made {
	struct elffile_ids ids;
	struct symbols *symbols;
	struct table_header *table;
	size_t table_bytes;
};

struct owner {
	int fd;
	struct content contents[2];
	atomic_bool over;
	unsigned seed;
};

static struct content content(const char *path)
{
	struct content c = {0};
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	c.n = (size_t)st.st_size;
	c.bytes = malloc(c.n);
	assert_non_null(c.bytes);
	assert_int_equal(read(fd, c.bytes, c.n), (ssize_t)c.n);
	close(fd);
	return c;
}

static void put(int fd, const struct content *c)
{
	if (pwrite(fd, c->bytes, c->n, 0) != (ssize_t)c->n || ftruncate(fd, (off_t)c->n))
		abort();
}

static void *change(void *arg)
{
	struct owner *owner = arg;
	char noise[NOISE_BYTES];

	while (!atomic_load(&owner->over)) {
		const struct content *c = &owner->contents[rand_r(&owner->seed) % 2];
		/* The headers are what most depends on. */
		size_t at = (size_t)rand_r(&owner->seed) % (rand_r(&owner->seed) % 2 ? 512 : c->n);

		switch (rand_r(&owner->seed) % 3) {
		case 0:
			if (ftruncate(owner->fd, (off_t)at))
				abort();
			break;
		case 1:
			for (size_t i = 0; i < sizeof(noise); i++)
				noise[i] = (char)rand_r(&owner->seed);
			if (pwrite(owner->fd, noise, sizeof(noise), (off_t)at) < 0)
				abort();
			break;
		default:
			put(owner->fd, c);
		}
	}
	return NULL;
}

/* As the worker does it: the size is what it was when the file was opened. */
static struct made make(struct reader *reader, int slot, size_t size)
{
	struct made made = {0};
	struct elffile file;

	elffile_htlhash(reader, slot, size, made.ids.htlhash);
	if (elffile_open(&file, reader, slot, size) == 0) {
		if (ehframe_compile(&file, 7, &made.table, &made.table_bytes))
			made.table = NULL;
		elffile_close(&file);
	}
	if (elffile_open(&file, reader, slot, size) == 0) {
		elffile_build_ids(&file, &made.ids);
		made.symbols = symbols_build(&file, INDEX_BYTES);
		elffile_close(&file);
	}
	return made;
}

static void check(const struct made *made)
{
	const struct symbols *s = made->symbols;

	if (made->table)
		assert_int_equal(table_check(made->table, made->table_bytes), 0);
	for (uint32_t i = 0; s && i < s->entries_n; i++) {
		const char *name = symbols_find(s, s->entries[i].start);

		assert_true(i == 0 || s->entries[i].start >= s->entries[i - 1].start);
		assert_true(!name || strlen(name) > 0);
	}
}

static void forget(struct made *made)
{
	free(made->table);
	symbols_free(made->symbols);
}

static void same(const struct made *a, const struct made *b)
{
	assert_memory_equal(&a->ids, &b->ids, sizeof(a->ids));
	assert_int_equal(a->table_bytes, b->table_bytes);
	assert_memory_equal(a->table, b->table, a->table_bytes);
	assert_int_equal(a->symbols->entries_n, b->symbols->entries_n);
	for (uint32_t i = 0; i < a->symbols->entries_n; i++) {
		const struct symbols_entry *x = &a->symbols->entries[i];
		const struct symbols_entry *y = &b->symbols->entries[i];

		assert_true(x->start == y->start && x->bytes == y->bytes);
		assert_string_equal(a->symbols->names + x->name, b->symbols->names + y->name);
	}
}

static void disturbed(struct reader *reader, int slot, struct owner *owner, const char *way)
{
	time_t end = time(NULL) + SECONDS;
	int rounds = 0, tables = 0, indexes = 0;
	pthread_t thread;

	atomic_store(&owner->over, false);
	assert_int_equal(pthread_create(&thread, NULL, change, owner), 0);
	for (; rounds < ROUNDS && time(NULL) < end; rounds++) {
		struct made made = make(reader, slot, owner->contents[rounds % 2].n);

		check(&made);
		tables += made.table != NULL;
		indexes += made.symbols != NULL;
		forget(&made);
	}
	atomic_store(&owner->over, true);
	pthread_join(thread, NULL);
	print_message("%s: %d rounds, %d with a table, %d with names\n", way, rounds, tables,
		      indexes);
}

static void test_way(bool with_ring)
{
	char path[] = "changing-test-XXXXXX";
	struct owner owner = {
	    .fd = mkstemp(path),
	    .contents = {content("/proc/self/exe"), content("/lib/x86_64-linux-gnu/libm.so.6")},
	    .seed = 1};
	static struct reader reader;
	struct made before, after;
	int slot;

	unlink(path);
	put(owner.fd, &owner.contents[0]);
	reader_open(&reader, with_ring);
	slot = reader_add(&reader, dup(owner.fd));
	before = make(&reader, slot, owner.contents[0].n);
	assert_true(before.table && before.symbols && before.ids.htlhash[0]);
	disturbed(&reader, slot, &owner, reader.uring ? "io_uring" : "pread");
	put(owner.fd, &owner.contents[0]);
	after = make(&reader, slot, owner.contents[0].n);
	same(&before, &after);
	forget(&before);
	forget(&after);
	reader_close(&reader);
	close(owner.fd);
	free(owner.contents[0].bytes);
	free(owner.contents[1].bytes);
}

static void test_uring(void **state)
{
	(void)state;
	test_way(true);
}

static void test_pread(void **state)
{
	(void)state;
	test_way(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_uring),
	    cmocka_unit_test(test_pread),
	};
	const char *tmp = getenv("TMPDIR");

	alarm(110);
	if (chdir(tmp ? tmp : "/tmp"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
