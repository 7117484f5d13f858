/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of unwind tables: what is published is whole and checked, room is not written before
 * its time, the coldest goes first. Memfds stand for BPF's maps.
 */
#define _GNU_SOURCE
#include "sampler/store.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampler/inbox.h"
#include "shm/table.h"
#include "tests/sampler/tables_fake.h"

#define CHUNK_FD 200 /* and on */
#define CHUNKS_MAX 3
#define SECOND 1000000000ull
#define RANGES 256u
#define PAGE_ROWS 60000u

static struct store store;
static int files_fd;
static uint64_t now_ns;

static int sized(int at, size_t bytes)
{
	int fd = memfd_create("map", 0);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (at >= 0) {
		assert_int_equal(dup2(fd, at), at);
		close(fd);
	}
	return at >= 0 ? at : fd;
}

static void reopen(void)
{
	if (store.files) {
		munmap(store.files, (TABLES_FILES_MAX + 1) * sizeof(struct bpf_file));
		munmap(store.words, CHUNKS_MAX * TABLES_CHUNK_BYTES);
	}
	memset(&store, 0, sizeof(store));
}

static int setup(void **state)
{
	(void)state;
	reopen();
	if (files_fd)
		close(files_fd);
	files_fd = sized(-1, (TABLES_FILES_MAX + 1) * sizeof(struct bpf_file));
	sized(CHUNK_FD, TABLES_CHUNK_BYTES);
	for (int i = 1; i < CHUNKS_MAX; i++)
		close(CHUNK_FD + i);
	now_ns = 100 * SECOND;
	return store_open(&store, files_fd, CHUNK_FD, CHUNKS_MAX * (uint64_t)TABLES_CHUNK_BYTES);
}

/* A table with so many rows and rules, sound unless the caller damages it. Caller frees. */
static struct table_header *table_new(uint32_t rows, uint32_t rules, uint32_t *bytes)
{
	uint32_t pages = (rows + PAGE_ROWS - 1) / PAGE_ROWS, *to;
	struct table_header *table;
	struct table_page *page;

	*bytes = (uint32_t)(sizeof(*table) + 4 * TABLE_WORDS(pages, rows, rules));
	table = calloc(1, *bytes);
	*table = (struct table_header){TABLE_MAGIC, TABLE_VERSION, 0, 3, pages, rows, rules, 0};
	page = (struct table_page *)(table + 1);
	to = (uint32_t *)(page + pages);
	for (uint32_t i = 0; i < rows; i++) {
		page[i / PAGE_ROWS].count++;
		page[i / PAGE_ROWS].first = i / PAGE_ROWS * PAGE_ROWS;
		to[i] = i % PAGE_ROWS | i % rules << 16;
	}
	return table;
}

static int memory(const void *data, size_t bytes, int seals)
{
	int fd = memfd_create("table", MFD_ALLOW_SEALING);

	assert_int_equal(write(fd, data, bytes), bytes);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static int install(uint32_t file_id, uint32_t rows, uint32_t rules)
{
	uint32_t bytes;
	struct table_header *table = table_new(rows, rules, &bytes);
	int fd = memory(table, bytes, F_SEAL_SHRINK | F_SEAL_GROW);
	int err = store_install(&store, file_id, 0, fd, bytes, now_ns);
	const struct bpf_file *file = &store.files[file_id % TABLES_FILES_MAX];

	if (!err) {
		assert_int_equal(file->file_id, file_id);
		assert_int_equal(file->flags, BPF_FILE_TABLE);
		assert_int_equal(file->first_page, 3);
		assert_int_equal(file->rows, rows);
		assert_int_equal(file->rules, rules);
		assert_memory_equal(store.words + file->first, table + 1, bytes - sizeof(*table));
		/* No rule in two chunks. */
		assert_int_equal((file->first + 2 * file->pages + file->rows) % 4, 0);
	}
	close(fd);
	free(table);
	return err;
}

static bool published(uint32_t file_id)
{
	return store.files[file_id % TABLES_FILES_MAX].file_id == file_id;
}

static void test_install_and_refuse(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < 200; i++)
		assert_int_equal(install(i, i, 1 + i % 7), 0);
	assert_int_equal(store.tables, 199);
	assert_int_equal(install(5, 5, 6), -EEXIST);
	assert_int_equal(store.refused, 1);
	for (uint32_t i = 1; i < 200; i++)
		assert_true(published(i));
}

static void test_unsound_tables(void **state)
{
	uint32_t bytes;
	struct table_header *table = table_new(100, 3, &bytes);
	int seals = F_SEAL_SHRINK | F_SEAL_GROW, ends[2];

	(void)state;
	for (int kind = 0; kind < 7; kind++) {
		int fd = memory(table, bytes, kind == 0 ? 0 : seals);
		uint32_t say = kind == 1 ? bytes + 4 : kind == 2 ? bytes - 4 : bytes;

		if (kind == 3)
			assert_int_equal(pwrite(fd, &(uint32_t){0xffff0001}, 4, 32 + 8 + 40), 4);
		if (kind == 4) {
			close(fd);
			assert_int_equal(pipe(ends), 0);
			fd = ends[0];
			close(ends[1]);
		}
		if (kind == 5)
			say = UINT32_MAX;
		if (kind == 6)
			say = 0;
		assert_int_equal(store_install(&store, 9, 0, fd, say, now_ns), -EPROTO);
		assert_false(published(9));
		close(fd);
	}
	free(table);
	assert_int_equal(store.tables, 0);
	assert_int_equal(install(9, 100, 3), 0);
}

static void test_another_file_in_the_slot(void **state)
{
	uint32_t first;

	(void)state;
	assert_int_equal(install(77, 1000, 3), 0);
	first = store.files[77].first;
	assert_int_equal(install(77 + TABLES_FILES_MAX, 1000, 3), 0);
	assert_false(published(77));
	assert_true(published(77 + TABLES_FILES_MAX));
	assert_int_not_equal(store.files[77].first, first);
	assert_int_equal(store.tables, 1);
}

/* Files of which nothing is known are waited for from the start; those that have no table are not. */
static void test_files_without_a_table(void **state)
{
	(void)state;
	store_install_none(&store, 4, 0, false, now_ns);
	assert_true(published(4));
	assert_int_equal(store.files[4].flags, 0);
	assert_int_equal(store.files[TABLES_FILES_MAX].flags, BPF_FILE_DEFER);
	assert_int_equal(install(5, 10, 1), 0);
	assert_int_equal(store.files[TABLES_FILES_MAX].flags, BPF_FILE_DEFER);
	assert_int_equal(install(4 + TABLES_FILES_MAX, 10, 1), 0);
	/* A worker's word does not take the place of a table. */
	store_install_none(&store, 5, 1, false, now_ns);
	assert_int_equal(store.files[5].flags, BPF_FILE_TABLE);
	/* When the file was overwritten nothing is known of it again; what is not there stays so. */
	store_install_none(&store, 5, 1, true, now_ns);
	assert_false(published(5));
	assert_int_equal(store.tables, 1);
	store_install_none(&store, 6, 1, true, now_ns);
	assert_false(published(6));
	assert_int_equal(install(5, 20, 1), 0);
}

static void test_growth(void **state)
{
	uint32_t n = 0;

	(void)state;
	/* Larger than a chunk: it waits for a second one, and then lies in both. */
	assert_int_equal(install(1, 1200000, 5), -ENOSPC);
	assert_true(store.wants_chunk);
	assert_int_equal(store_add_chunk(&store, sized(CHUNK_FD + 1, TABLES_CHUNK_BYTES)), 0);
	assert_false(store.wants_chunk);
	assert_int_equal(install(1, 1200000, 5), 0);
	while (!store.wants_chunk && n < 1000)
		install(2 + n++, 10000, 5);
	assert_in_range(n, 10, 100);
	assert_int_equal(store.evicted, 0);
	assert_int_equal(store_add_chunk(&store, sized(CHUNK_FD + 2, TABLES_CHUNK_BYTES)), 0);
	assert_int_equal(store_add_chunk(&store, CHUNK_FD + 2), -ENOSPC);
	assert_int_equal(install(1001, 900000, 5), 0);
}

static void test_eviction_of_the_coldest(void **state)
{
	uint32_t n = 0;

	(void)state;
	store.chunks_max = 1;
	while (install(1 + n, 100000, 5) == 0)
		n++;
	assert_in_range(n, 8, 12);
	/* All are warm: nobody goes. */
	assert_int_equal(store.evicted, 0);
	now_ns += 60 * SECOND;
	for (uint32_t i = 1; i <= n; i++)
		store.files[i].used_ns = now_ns - (i == 4 ? 20 : i == 6 ? 30 : 1) * SECOND;
	assert_int_equal(install(100, 90000, 5), -ENOSPC);
	assert_false(published(6));
	assert_int_equal(store.evicted, 1);
	/* Its room waits: BPF may look at it. */
	now_ns += TABLES_GRACE_NS - 1;
	assert_int_equal(install(100, 90000, 5), -ENOSPC);
	assert_true(published(4));
	now_ns++;
	assert_int_equal(install(100, 90000, 5), 0);
	assert_int_equal(store.evicted, 1);
	/* Again, and now the other cold one is the coldest. */
	assert_int_equal(install(101, 90000, 5), -ENOSPC);
	assert_false(published(4));
}

static void test_room_comes_back(void **state)
{
	(void)state;
	store.chunks_max = 1;
	srandom(1);
	for (int round = 0; round < 3000; round++, now_ns += SECOND / 4) {
		install(1 + (uint32_t)random() % 50 + TABLES_FILES_MAX * (uint32_t)(round / 100),
			(uint32_t)random() % 100000 + 1, 4);
	}
	assert_true(store.evicted > 100 && store.tables > 5);
	store_withdraw(&store, 0, now_ns);
	assert_int_equal(store.tables, 0);
	assert_int_equal(store.bytes, 0);
	now_ns += TABLES_GRACE_NS;
	assert_int_equal(install(1000000, 1000000, 4), 0);
}

static void test_withdrawal_and_restart(void **state)
{
	(void)state;
	assert_int_equal(install(1, 10, 1), 0);
	assert_int_equal(install(2, 10, 1), 0);
	store.files[2].worker = 1;
	store_withdraw(&store, 0, now_ns);
	assert_false(published(1));
	assert_true(published(2));
	sized(CHUNK_FD + 1, TABLES_CHUNK_BYTES);
	reopen();
	assert_int_equal(store_open(&store, files_fd, CHUNK_FD,
				    CHUNKS_MAX * (uint64_t)TABLES_CHUNK_BYTES),
			 1);
	assert_int_equal(store.chunks, 2);
	assert_false(published(2));
	assert_int_equal(install(3, 10, 1), 0);
}

/* --- As a worker sends them. --- */

static struct channel worker_end, sampler_end;
static struct inbox inbox;
static struct introduce introduce;
static struct files files;
static struct processes processes;
static struct record_range ranges[RANGES];
static struct workers workers;
static struct table_header *small;
static uint32_t small_bytes;

static int setup_inbox(void **state)
{
	int fds[2], err = setup(state);

	if (err || channel_pair(fds))
		return -1;
	memset(&files, 0, sizeof(files));
	files_init(&files, 0);
	introduce = (struct introduce){
	    .files = &files, .processes = &processes, .workers = &workers, .now_ns = now_ns};
	inbox.introduce = &introduce;
	inbox.store = &store;
	memset(&processes, 0, sizeof(processes));
	processes_init(&processes, 4, ranges, RANGES, store.files);
	channel_init(&worker_end, fds[0], ROLE_SYMBOLIZER, ROLE_SAMPLER, true);
	channel_init(&sampler_end, fds[1], ROLE_SAMPLER, ROLE_SYMBOLIZER, true);
	if (!small)
		small = table_new(100, 3, &small_bytes);
	return 0;
}

static int say_that(const struct table_header *table, uint32_t table_bytes, uint32_t file_id,
		    uint32_t bytes, int worker)
{
	struct message_table message = {file_id, bytes};
	int fd = memory(table, table_bytes, F_SEAL_SHRINK | F_SEAL_GROW), err;

	assert_int_equal(channel_send(&worker_end, MESSAGE_TABLE, &message, &fd, 1), 0);
	close(fd);
	err = inbox_read(&inbox, &sampler_end, worker);
	/* Whatever came of it, the fd was closed again. */
	assert_int_equal(dup(0), fd);
	close(fd);
	return err;
}

static int say_table(uint32_t file_id, uint32_t bytes, int worker)
{
	return say_that(small, small_bytes, file_id, bytes, worker);
}

static void test_messages(void **state)
{
	struct file *file = files_of(&files, 1, 2, 3, 0, "");
	struct message_table none = {0, 0};

	(void)state;
	assert_int_equal(say_table(file->id, small_bytes, 0), 0);
	assert_false(published(file->id)); /* it was not handed to this worker */
	file->asked = 2;
	assert_int_equal(say_table(file->id, small_bytes, 0), 0);
	assert_false(published(file->id));
	assert_int_equal(say_table(file->id + 1, small_bytes, 1), 0);
	assert_false(published(file->id + 1));
	assert_int_equal(say_table(file->id, small_bytes, 1), 0);
	assert_true(published(file->id));
	assert_int_equal(store.files[file->id].worker, 1);
	/* What is none ends its worker, and all of its work goes. */
	file = files_of(&files, 1, 2, 4, 0, "");
	file->asked = 2;
	assert_int_equal(say_table(file->id, small_bytes + 4, 1), -EPROTO);
	assert_int_equal(store.tables, 0);
	none.file_id = file->id;
	assert_int_equal(channel_send(&worker_end, MESSAGE_NO_TABLE, &none, NULL, 0), 0);
	assert_int_equal(inbox_read(&inbox, &sampler_end, 1), 0);
	assert_true(published(file->id));
}

/* A table that tells of a runtime: room for it is counted, and BPF hears which processes run it. */
static void test_runtime(void **state)
{
	struct file *file = files_of(&files, 1, 2, 3, 0, "");
	struct record_range range = {.start = 0x1000, .end = 0x2000, .file_id = file->id};
	uint32_t bytes = small_bytes + sizeof(struct table_runtime);
	struct table_header *table = calloc(1, bytes);
	struct process *p;

	(void)state;
	memcpy(table, small, small_bytes);
	table->runtimes = 1;
	file->asked = 2;
	tables_clear();
	processes_exec(&processes, 10, now_ns);
	processes_map(&processes, 10, &range, now_ns + 1);
	p = processes_find(&processes, 10);
	p->exec_known = true;
	processes_publish(&processes, p);
	assert_int_equal(tables_fake_find(10)->made_by, 0);
	assert_int_equal(say_table(file->id, small_bytes, 1), 0);
	assert_int_equal(tables_fake_find(10)->made_by, 0);
	store_withdraw(&store, 1, now_ns);
	assert_int_equal(say_that(table, bytes, file->id, bytes, 1), 0);
	assert_int_equal(store.files[file->id].flags, BPF_FILE_TABLE | BPF_FILE_RUNTIME);
	assert_int_equal(store.bytes, bytes - sizeof(*table));
	assert_int_equal(tables_fake_find(10)->made_by, 1);
	store_withdraw(&store, 1, now_ns);
	assert_int_equal(store.bytes, 0);
	free(table);
}

/* That the process was gone by way of which one worker was to get a file takes nothing from another. */
static void test_file_that_came_to_one_only(void **state)
{
	struct file *file = files_of(&files, 1, 2, 3, 0, "");
	struct message_file_key gone = {.file_id = file->id, .worker = 1, .error = ESRCH};
	struct channel broker_end, to_broker;
	int fds[2];

	(void)state;
	file->asked = 3;
	assert_int_equal(channel_pair(fds), 0);
	channel_init(&broker_end, fds[0], ROLE_BROKER, ROLE_SAMPLER, true);
	channel_init(&to_broker, fds[1], ROLE_SAMPLER, ROLE_BROKER, true);
	assert_int_equal(channel_send(&broker_end, MESSAGE_FILE_KEY, &gone, NULL, 0), 0);
	assert_int_equal(inbox_read(&inbox, &to_broker, 0), 0);
	assert_int_equal(file->asked, 1);
	assert_int_equal(say_table(file->id, small_bytes, 1), 0);
	assert_false(published(file->id));
	assert_int_equal(say_table(file->id, small_bytes, 0), 0);
	assert_true(published(file->id));
	close(fds[0]);
	close(fds[1]);
}

/* A worker that begins anew: what the one before it made goes, and no other's. */
static void test_new_worker(void **state)
{
	struct file *file = files_of(&files, 1, 2, 3, 0, ""), *other = files_of(&files, 1, 2, 4, 0, "");
	struct message_need_file all = {.file_id = 0};

	(void)state;
	file->asked = 2;
	other->asked = 1;
	assert_int_equal(say_table(file->id, small_bytes, 1), 0);
	assert_int_equal(say_table(other->id, small_bytes, 0), 0);
	assert_int_equal(store.tables, 2);
	assert_int_equal(channel_send(&worker_end, MESSAGE_NEED_FILE, &all, NULL, 0), 0);
	assert_int_equal(inbox_read(&inbox, &sampler_end, 1), 0);
	assert_false(published(file->id));
	assert_true(published(other->id));
	assert_int_equal(file->asked, 0);
	assert_int_equal(other->asked, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_install_and_refuse, setup),
	    cmocka_unit_test_setup(test_unsound_tables, setup),
	    cmocka_unit_test_setup(test_another_file_in_the_slot, setup),
	    cmocka_unit_test_setup(test_files_without_a_table, setup),
	    cmocka_unit_test_setup(test_growth, setup),
	    cmocka_unit_test_setup(test_eviction_of_the_coldest, setup),
	    cmocka_unit_test_setup(test_room_comes_back, setup),
	    cmocka_unit_test_setup(test_withdrawal_and_restart, setup),
	    cmocka_unit_test_setup(test_messages, setup_inbox),
	    cmocka_unit_test_setup(test_runtime, setup_inbox),
	    cmocka_unit_test_setup(test_file_that_came_to_one_only, setup_inbox),
	    cmocka_unit_test_setup(test_new_worker, setup_inbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
