/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which map is whose, and when it is asked for, read and given up: with files that grow, shrink, or
 * are of somebody else's time, and a clock that the test turns.
 */
#define _GNU_SOURCE
#include "symbolizer/jit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define S    1000000000ull
#define ROOM (4u << 20)
#define PID  4711

static struct {
	struct jit jit;
	struct files files;
	struct reader reader;
	struct channel worker, sampler;
	struct processes processes;
	struct process *process;
	uint64_t now_ns;
	char path[32];
	int map; /* the file of the process; what is written here is what it says */
} world;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * S + (uint64_t)t.tv_nsec;
}

static int setup(void **state)
{
	int fds[2];

	(void)state;
	memset(&world, 0, sizeof(world));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
	channel_init(&world.worker, fds[0], ROLE_SYMBOLIZER, ROLE_SAMPLER, true);
	channel_init(&world.sampler, fds[1], ROLE_SAMPLER, ROLE_SYMBOLIZER, true);
	reader_open(&world.reader, false);
	assert_int_equal(files_open(&world.files, &world.reader, &world.worker, ROOM), 0);
	assert_int_equal(processes_open(&world.processes, 64, 1024), 0);
	assert_int_equal(jit_open(&world.jit, &world.files, &world.worker, ROOM), 0);
	world.now_ns = clock_ns(CLOCK_BOOTTIME);
	world.process = processes_get(&world.processes, PID, world.now_ns - S / 10);
	world.process->exec_id = 7;
	strcpy(world.path, "/tmp/jit_test-XXXXXX");
	world.map = mkstemp(world.path);
	assert_true(world.map >= 0);
	jit_turn(&world.jit, &world.processes, world.now_ns);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	jit_close(&world.jit);
	assert_int_equal(world.jit.bytes, 0);
	assert_int_equal(world.jit.maps, 0);
	processes_close(&world.processes);
	files_close(&world.files);
	reader_close(&world.reader);
	close(world.worker.fd);
	close(world.sampler.fd);
	unlink(world.path); /* perhaps for the second time */
	close(world.map);
	return 0;
}

static void after(uint64_t ns)
{
	world.now_ns += ns;
	jit_turn(&world.jit, &world.processes, world.now_ns);
}

static const char *name_at(uint64_t address)
{
	static struct lines lines;

	jit_find(&world.jit, world.process, address, world.now_ns, &lines);
	return lines.n ? lines.line[0].name : "-";
}

/* How many questions came since the last time. */
static int questions(void)
{
	struct message message;
	int n = 0;

	while (channel_recv(&world.sampler, &message, NULL, NULL) == 0) {
		assert_int_equal(message.type, MESSAGE_NEED_OTHER);
		assert_int_equal(message.need_other.kind, OTHER_PERF_MAP);
		n++;
	}
	return n;
}

static void answer(int error)
{
	struct message_other message = {.need = {.pid = PID, .kind = OTHER_PERF_MAP},
					.start_lo_ns = world.process->start_lo_ns,
					.file.error = error};
	struct stat st;

	assert_int_equal(fstat(world.map, &st), 0);
	message.file.key =
	    (struct file_key){st.st_dev, st.st_ino, (uint64_t)st.st_size,
			      (uint64_t)st.st_mtim.tv_sec * S + (uint64_t)st.st_mtim.tv_nsec};
	jit_message(&world.jit, &message, error ? -1 : dup(world.map));
}

static void say(const char *text)
{
	assert_int_equal(write(world.map, text, strlen(text)), strlen(text));
}

static void test_asked_less_and_less_often(void **state)
{
	int n;

	(void)state;
	assert_non_null(jit_begin(&world.jit, world.process));
	for (int i = 0; i < 1000; i++)
		assert_string_equal(name_at(0x1000), "-");
	assert_int_equal(questions(), 1);
	answer(ENOENT);
	assert_null(jit_begin(&world.jit, world.process));
	n = 0;
	for (int i = 0; i < 3600; i++) {
		after(S);
		name_at(0x1000);
		n += questions();
	}
	/* 1, 2, 4, ... 32 s, then once a minute. */
	assert_true(n >= 60 && n <= 70);
	world.process->exited = true;
	after(100 * S);
	name_at(0x1000);
	assert_int_equal(questions(), 0);
}

static void test_grows(void **state)
{
	(void)state;
	name_at(0x1000);
	say("1000 10 one\n2000 10 tw");
	answer(0);
	assert_string_equal(name_at(0x1000), "one");
	assert_string_equal(name_at(0x2000), "-");
	say("o\n1000 10 other\n");
	/* Not read again at once; after a frame in vain sooner than without. */
	assert_string_equal(name_at(0x1000), "one");
	after(S / 5);
	assert_string_equal(name_at(0x2000), "-");
	after(S / 5);
	assert_string_equal(name_at(0x2000), "two");
	assert_string_equal(name_at(0x1000), "other");
	say("1000 10 third\n");
	after(S / 2);
	assert_string_equal(name_at(0x1000), "other");
	after(S / 2);
	assert_string_equal(name_at(0x1000), "third");
	assert_int_equal(world.jit.names, 4);
	assert_int_equal(questions(), 1);
	/* Another one may take its place. */
	assert_int_equal(unlink(world.path), 0);
	after(S);
	assert_string_equal(name_at(0x1000), "third");
	assert_int_equal(questions(), 1);
}

static void test_much_comes_bit_by_bit(void **state)
{
	static char text[1 << 20];
	size_t n = 0;
	int turns = 0;

	(void)state;
	name_at(0x1000);
	for (unsigned i = 0; n < sizeof(text) - 64; i++)
		n += (size_t)sprintf(text + n, "%x 10 f\n", 0x100000 + 16 * (i % 1000));
	for (int i = 0; i < 4; i++)
		assert_int_equal(write(world.map, text, n), n);
	say("1000 10 last\n");
	answer(0);
	while (strcmp(name_at(0x1000), "last")) {
		after(S / 50);
		assert_true(++turns < 10);
	}
	assert_true(turns >= 3);
}

/* Over and over again something else: at last it is enough. */
static void test_not_for_ever(void **state)
{
	struct jit_process *p;

	(void)state;
	name_at(0x1000);
	say("1000 10 one\n");
	answer(0);
	assert_string_equal(name_at(0x1000), "one");
	p = lru_peek(&world.jit.processes, PID);
	assert_int_equal(p->read_bytes, 12);
	p->read_bytes = JIT_READ_MAX;
	say("1000 10 two\n");
	after(S);
	assert_string_equal(name_at(0x1000), "one");
	/* Another program begins anew. */
	world.process->exec_id = 8;
	name_at(0x1000);
	usleep(20000);
	say("1000 10 new\n");
	answer(0);
	assert_string_equal(name_at(0x1000), "new");
}

static void test_truncated(void **state)
{
	(void)state;
	name_at(0x1000);
	say("1000 10 one\n2000 10 two\n");
	answer(0);
	assert_string_equal(name_at(0x2000), "two");
	assert_int_equal(ftruncate(world.map, 0), 0);
	assert_int_equal(lseek(world.map, 0, SEEK_SET), 0);
	say("1000 10 new\n");
	after(S);
	assert_string_equal(name_at(0x1000), "new");
	assert_string_equal(name_at(0x2000), "-");
}

/* Of a process that had the pid before; of the program before. */
static void test_of_another_time(void **state)
{
	struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

	(void)state;
	name_at(0x1000);
	say("1000 10 one\n");
	assert_int_equal(futimens(world.map, times), 0);
	answer(0);
	assert_string_equal(name_at(0x1000), "-");
	assert_int_equal(world.jit.maps, 0);
	say("2000 10 two\n");
	answer(0);
	assert_string_equal(name_at(0x1000), "one");
	world.process->exec_id = 8;
	assert_string_equal(name_at(0x1000), "-");
	assert_int_equal(world.jit.maps, 0);
	answer(0);
	after(S);
	assert_string_equal(name_at(0x1000), "-");
	/* The new program writes into it as well. */
	usleep(20000);
	say("1000 10 new\n");
	answer(0);
	after(S);
	assert_string_equal(name_at(0x1000), "new");
}

static void test_pid_of_another(void **state)
{
	(void)state;
	name_at(0x1000);
	say("1000 10 one\n");
	answer(0);
	assert_string_equal(name_at(0x1000), "one");
	world.process = processes_get(&world.processes, PID, world.now_ns + S);
	assert_string_equal(name_at(0x1000), "-");
	assert_int_equal(world.jit.maps, 0);
	/* The answer to a question about the one before. */
	world.process->start_lo_ns += 5 * S;
	answer(0);
	world.process->start_lo_ns -= 5 * S;
	assert_int_equal(world.jit.maps, 0);
}

static void test_goes_with_its_process(void **state)
{
	struct process *other;

	(void)state;
	name_at(0x1000);
	say("1000 10 one\n");
	answer(0);
	assert_string_equal(name_at(0x1000), "one");
	assert_int_equal(world.jit.maps, 1);
	for (uint32_t i = 0; i < 64; i++) {
		other = processes_get(&world.processes, 10000 + i, world.now_ns);
		assert_non_null(other);
	}
	after(2 * S);
	assert_int_equal(world.jit.maps, 0);
	assert_int_equal(world.jit.processes.count, 0);
	world.process = other;
}

static void test_room(void **state)
{
	static char text[2 << 20];
	size_t n = 0;

	(void)state;
	for (unsigned i = 0; n < sizeof(text) - 64; i++)
		n += (size_t)sprintf(text + n, "%x 10 function number %u\n", 0x1000 + 16 * i, i);
	assert_int_equal(write(world.map, text, n), n);
	for (uint32_t i = 0; i < 8; i++) {
		world.process = processes_get(&world.processes, 10000 + i, world.now_ns);
		name_at(0x1000);
		questions();
		{
			struct message_other message = {.need.pid = 10000 + i,
							.start_lo_ns = world.now_ns};

			message.file.key =
			    (struct file_key){1, 100 + i, n, clock_ns(CLOCK_REALTIME) + 60 * S};
			jit_message(&world.jit, &message, dup(world.map));
		}
		for (int k = 0; k < 10; k++) {
			after(S / 50);
			assert_string_equal(name_at(0x1000), "function number 0");
		}
		assert_true(world.jit.bytes <= ROOM);
		assert_int_equal(world.files.jit_bytes, world.jit.bytes);
	}
	assert_true(world.jit.evictions >= 3);
}

/* --- A dump is a file that the process has mapped. --- */

static void write_dump(int fd, uint64_t time_ns, uint64_t start, const char *name)
{
	uint64_t words[] = {(56ull + strlen(name) + 1) << 32, time_ns, PID, start, start, 16, 1};

	words[0] = ((56ull + strlen(name) + 1 + 16) << 32);
	assert_int_equal(write(fd, words, sizeof(words)), sizeof(words));
	assert_int_equal(write(fd, name, strlen(name) + 1), strlen(name) + 1);
	assert_int_equal(write(fd, words, 16), 16);
}

static void map_dump(uint32_t file_id, int fd, const char *path, uint64_t at)
{
	struct record_process process = {.header = {sizeof(process), RECORD_PROCESS, 0},
					 .pid = PID,
					 .start_lo_ns = world.process->start_lo_ns,
					 .start_hi_ns = world.process->start_hi_ns,
					 .exec_id = 7};
	struct record_mapping mapping = {.header = {sizeof(mapping), RECORD_MAPPING, 0},
					 .pid = PID,
					 .range = {at, at + 4096, 0, file_id, 0}};
	struct message_file file = {.file_id = file_id};
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	file.key = (struct file_key){st.st_dev, st.st_ino, (uint64_t)st.st_size, 1};
	snprintf(file.path, sizeof(file.path), "%s", path);
	if (!world.process->introduced)
		assert_true(processes_record(&world.processes, &process.header));
	assert_true(processes_record(&world.processes, &mapping.header));
	files_message(&world.files, &file, dup(fd));
}

static int new_dump(uint64_t time_ns)
{
	uint64_t header[] = {1ull << 32 | 0x4a695444, 62ull << 32 | 40, (uint64_t)PID << 32,
			     time_ns, 0};
	int fd = memfd_create("dump", 0);

	assert_int_equal(write(fd, header, sizeof(header)), sizeof(header));
	return fd;
}

static void test_dumps(void **state)
{
	uint64_t mono_ns = clock_ns(CLOCK_MONOTONIC);
	int parents = new_dump(mono_ns - 5 * S), own = new_dump(mono_ns - 4 * S);

	(void)state;
	write_dump(parents, mono_ns - 4 * S, 0x1000, "inherited");
	write_dump(parents, mono_ns - 4 * S, 0x2000, "inherited too");
	write_dump(own, mono_ns - 3 * S, 0x1000, "own");
	assert_string_equal(name_at(0x1000), "-");
	map_dump(5, own, "/srv/jit-1.dump", 0x10000);
	map_dump(6, parents, "/srv/jit-4710.dump", 0x20000);
	map_dump(7, parents, "/srv/jit-x.dump", 0x30000);
	after(S);
	assert_string_equal(name_at(0x1000), "own");
	assert_string_equal(name_at(0x2000), "inherited too");
	write_dump(own, mono_ns - S, 0x1000, "replaced");
	after(S);
	assert_string_equal(name_at(0x1000), "replaced");
	assert_int_equal(world.jit.dumps.count, 2);
	/* What is gone is gone: it begins anew. */
	assert_int_equal(ftruncate(own, 40), 0);
	after(S);
	assert_string_equal(name_at(0x1000), "inherited");
	close(parents);
	close(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_asked_less_and_less_often, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_grows, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_much_comes_bit_by_bit, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_not_for_ever, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_truncated, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_of_another_time, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_pid_of_another, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_goes_with_its_process, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_room, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_dumps, setup, teardown),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
