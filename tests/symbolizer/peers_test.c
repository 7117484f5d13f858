/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lending and borrowing of unwind tables. The test is worker 1, and the sampler; what it borrows
 * from and lends to is worker 0, whose modules run here.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolizer/filetable.h"
#include "symbolizer/peers.h"

#define SECOND 1000000000ull
#define FILES_TRIED 64

static struct reader reader;
static struct files files;
static struct filetables tables;
static struct peers peers;
static struct channel sampler, own_sampler, other; /* other: worker 1's end */
static struct message message;
static int message_fd;
static uint64_t now;

static int setup(void **state)
{
	int pair[2];

	(void)state;
	memset(&reader, 0, sizeof(reader));
	reader_open(&reader, false);
	now = tables.now_ns = 100 * SECOND;
	assert_int_equal(channel_pair(pair), 0);
	channel_init(&own_sampler, pair[0], ROLE_SYMBOLIZER, ROLE_SAMPLER, true);
	channel_init(&sampler, pair[1], ROLE_SAMPLER, ROLE_SYMBOLIZER, true);
	assert_int_equal(files_open(&files, &reader, &own_sampler, 1 << 20), 0);
	filetable_open(&tables, &files, &own_sampler, 64 << 20);
	peers_open(&peers, &tables, 2, 0);
	assert_int_equal(channel_pair(pair), 0);
	channel_init(&peers.peer[1].channel, pair[0], ROLE_SYMBOLIZER, ROLE_SYMBOLIZER, true);
	channel_init(&other, pair[1], ROLE_SYMBOLIZER, ROLE_SYMBOLIZER, true);
	peers.peer[1].introduced = true;
	tables.now_ns = now;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	files_close(&files);
	reader_close(&reader);
	close(own_sampler.fd);
	close(sampler.fd);
	close(peers.peer[1].channel.fd);
	close(other.fd);
	return 0;
}

/* The next message on a channel, 0 = none; its fd, if it has one, is in message_fd. */
static uint32_t next(struct channel *channel)
{
	int fds[MESSAGE_FDS_MAX];
	size_t n = 0;

	message_fd = -1;
	if (channel_recv(channel, &message, fds, &n))
		return 0;
	if (n)
		message_fd = fds[0];
	return message.type;
}

/* This program, under a key of its own. */
static void give(uint32_t id)
{
	struct message_file given = {.file_id = id, .path = "/bin/test"};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;

	assert_return_code(fstat(fd, &st), errno);
	given.key = (struct file_key){1, id, (uint64_t)st.st_size, 1};
	files_message(&files, &given, fd);
}

/* Give files until one is worker 1's to compile; worker 0 has asked for it then. */
static uint32_t give_theirs(void)
{
	for (uint32_t id = 1; id < FILES_TRIED; id++) {
		bool missing;

		give(id);
		if (!filetable_get(&tables, id, &missing) && missing)
			return id;
	}
	fail();
	return 0;
}

static int memory(const void *bytes, size_t n, bool sealed)
{
	int fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(write(fd, bytes, n), (ssize_t)n);
	if (sealed)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	return fd;
}

/* An empty page without rules but the first: as small as a table can be. */
struct small {
	struct table_header header;
	struct table_page page;
	uint32_t row;
	struct table_rule rule;
} __attribute__((packed));

static struct small small_table(void)
{
	return (struct small){.header = {.magic = TABLE_MAGIC, .version = TABLE_VERSION,
					 .pages = 1, .rows = 1, .rules = 1},
			      .page = {0, 1}};
}

static void say(enum message_type type, uint32_t id, uint32_t bytes, int fd)
{
	struct message_table lent = {.file_id = id, .bytes = bytes};

	assert_int_equal(channel_send(&other, type, &lent, &fd, fd >= 0), 0);
	if (fd >= 0)
		close(fd);
	peers_turn(&peers, now);
}

static void want(uint32_t id)
{
	struct message_need_file need = {.file_id = id};

	assert_int_equal(channel_send(&other, MESSAGE_WANT_TABLE, &need, NULL, 0), 0);
	peers_turn(&peers, now);
}

static void test_half_of_them_are_ours(void **state)
{
	uint32_t ours = 0;

	(void)state;
	for (uint32_t id = 1; id <= FILES_TRIED; id++) {
		bool missing;

		give(id);
		ours += filetable_get(&tables, id, &missing) != NULL;
	}
	assert_in_range(ours, FILES_TRIED / 4, FILES_TRIED * 3 / 4);
	assert_int_equal(tables.compiled, ours);
}

static void test_borrow(void **state)
{
	uint32_t id = give_theirs();
	uint64_t compiled = tables.compiled;
	struct small table = small_table();
	const struct table_header *got;
	bool missing;

	(void)state;
	assert_int_equal(next(&other), MESSAGE_WANT_TABLE);
	assert_int_equal(message.need_file.file_id, id);
	assert_null(filetable_get(&tables, id, &missing));
	assert_int_equal(next(&other), 0); /* one question is enough */
	while (next(&sampler))
		close(message_fd);
	say(MESSAGE_LEND_TABLE, id, sizeof(table), memory(&table, sizeof(table), true));
	got = filetable_get(&tables, id, &missing);
	assert_non_null(got);
	assert_false(missing);
	assert_memory_equal(got, &table, sizeof(table));
	assert_int_equal(tables.compiled, compiled);
	assert_int_equal(peers.borrowed, 1);
	assert_int_equal(next(&sampler), 0); /* that is the lender's to hand over */
	/* The kernel still does without: the lender is told, and the sampler is not. */
	now = tables.now_ns += 6 * SECOND;
	assert_non_null(filetable_get(&tables, id, &missing));
	assert_int_equal(next(&other), MESSAGE_WANT_TABLE);
	assert_int_equal(next(&sampler), 0);
	/* The lender begins anew: what it lent may have been its end. */
	want(0);
	assert_null(filetable_get(&tables, id, &missing));
	assert_true(missing);
	assert_int_equal(next(&other), MESSAGE_WANT_TABLE);
	say(MESSAGE_LEND_NONE, id, 0, -1);
	assert_null(filetable_get(&tables, id, &missing));
	assert_false(missing);
}

static void test_refused_and_silent(void **state)
{
	uint32_t id = give_theirs();
	uint64_t compiled = tables.compiled;
	bool missing;

	(void)state;
	say(MESSAGE_LEND_REFUSED, id, 0, -1);
	assert_non_null(filetable_get(&tables, id, &missing));
	assert_int_equal(tables.compiled, ++compiled);
	/* Nobody answers: waited for once, and then not for any file. */
	for (id = FILES_TRIED; give(id), filetable_get(&tables, id, &missing); id++)
		compiled++;
	assert_true(missing);
	now = tables.now_ns += PEERS_WAIT_NS;
	assert_non_null(filetable_get(&tables, id, &missing));
	compiled++;
	for (id++; id < 3 * FILES_TRIED; id++, compiled++) {
		give(id);
		assert_non_null(filetable_get(&tables, id, &missing));
	}
	assert_int_equal(tables.compiled, compiled);
}

/* What no honest worker sends: it is not listened to again, and the file is compiled here. */
static void test_liar(void **state)
{
	struct small table = small_table();
	bool missing;

	(void)state;
	for (int lie = 0; lie < 5; lie++) {
		uint32_t id = give_theirs(), bytes = sizeof(table);
		int fd;

		table = small_table();
		if (lie == 0)
			table.header.rows = 7;
		if (lie == 2)
			bytes *= 2;
		if (lie == 3)
			bytes = 8;
		fd = memory(&table, sizeof(table), lie != 1 && lie != 4);
		/* So large that to read it would take all memory. */
		if (lie == 4) {
			bytes = UINT32_MAX & ~3u;
			table.header.pages = TABLE_PAGES_MAX;
			assert_int_equal(ftruncate(fd, bytes), 0);
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
		}
		say(MESSAGE_LEND_TABLE, id, bytes, fd);
		assert_true(peers.peer[1].deaf);
		assert_int_equal(peers.refused, 1);
		assert_non_null(filetable_get(&tables, id, &missing));
		teardown(state);
		setup(state);
	}
	/* Not asked for, or another's to make: heard, and of no effect. */
	give(1);
	say(MESSAGE_LEND_TABLE, 1, sizeof(table), memory(&table, sizeof(table), true));
	say(MESSAGE_LEND_TABLE, 12345, sizeof(table), memory(&table, sizeof(table), true));
	assert_int_equal(peers.borrowed, 0);
	assert_false(peers.peer[1].deaf);
}

/* What a liar lent before it was found out is forgotten with it: it is not heard when it takes it back. */
static void test_lent_by_a_liar(void **state)
{
	uint32_t id = give_theirs();
	struct small table = small_table();
	bool missing;

	(void)state;
	say(MESSAGE_LEND_TABLE, id, sizeof(table), memory(&table, sizeof(table), true));
	assert_memory_equal(filetable_get(&tables, id, &missing), &table, sizeof(table));
	assert_int_equal(send(other.fd, "junk", 4, 0), 4);
	peers_turn(&peers, now);
	assert_true(peers.peer[1].deaf);
	assert_int_equal(filetable_get(&tables, id, &missing)->rows > 1, true);
}

/* Where there is no room to say that this worker is a new one, it is said later. */
static void test_introduction(void **state)
{
	struct message_need_file need = {.file_id = 1};
	int n = 0;

	(void)state;
	while (channel_send(&peers.peer[1].channel, MESSAGE_WANT_TABLE, &need, NULL, 0) == 0)
		n++;
	peers.peer[1].introduced = false;
	peers_turn(&peers, now);
	while (n--) {
		char bytes[64];

		assert_true(recv(other.fd, bytes, sizeof(bytes), 0) > 0);
	}
	assert_int_equal(next(&other), 0);
	peers_turn(&peers, now);
	assert_int_equal(next(&other), MESSAGE_WANT_TABLE);
	assert_int_equal(message.need_file.file_id, 0);
	peers_turn(&peers, now);
	assert_int_equal(next(&other), 0);
}

/* A sample has waited long enough for other files. */
static void test_given_up(void **state)
{
	uint32_t id = give_theirs();
	uint64_t compiled = tables.compiled;
	bool missing;

	(void)state;
	peers_give_up(files_get(&files, id));
	assert_non_null(filetable_get(&tables, id, &missing));
	assert_int_equal(tables.compiled, compiled + 1);
}

static void test_lend(void **state)
{
	struct message_file refused = {.file_id = 8, .error = ESRCH};
	struct table_header header;

	(void)state;
	want(7); /* which is not here: the sampler is asked */
	assert_int_equal(next(&sampler), MESSAGE_NEED_FILE);
	assert_int_equal(message.need_file.file_id, 7);
	assert_int_equal(next(&other), 0);
	give(7);
	peers_turn(&peers, now);
	assert_int_equal(next(&other), MESSAGE_LEND_TABLE);
	assert_int_equal(message.table.file_id, 7);
	assert_int_equal(pread(message_fd, &header, sizeof(header), 0), sizeof(header));
	assert_int_equal(header.magic, TABLE_MAGIC);
	assert_int_equal(fcntl(message_fd, F_GET_SEALS),
			 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
	close(message_fd);
	assert_int_equal(next(&sampler), MESSAGE_TABLE); /* once for all */
	close(message_fd);
	assert_int_equal(tables.compiled, 1);
	/* One that the broker could not open. */
	want(8);
	files_message(&files, &refused, -1);
	peers_turn(&peers, now);
	assert_int_equal(next(&other), MESSAGE_LEND_REFUSED);
	/* One that never comes, and more than can be kept. */
	for (uint32_t id = 9; id < 9 + 2 * PEERS_ASKED_MAX; id++)
		want(id);
	assert_int_equal(peers.asked_n, PEERS_ASKED_MAX);
	peers_turn(&peers, now + PEERS_WAIT_NS);
	assert_int_equal(peers.asked_n, 0);
	assert_int_equal(next(&other), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_half_of_them_are_ours, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_borrow, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_refused_and_silent, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_liar, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_lent_by_a_liar, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_introduction, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_given_up, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_lend, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
