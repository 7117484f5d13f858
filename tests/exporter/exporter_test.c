/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter as it is run: the program with its fds (proto/fds.h), fed by a worker that this test
 * plays, shipping to a receiver that this test plays. It is killed with -9 again and again; in the
 * end what was pushed = what arrived + what was counted as lost.
 *
 * argv[1], if given, is the program; otherwise it is found beside the tests.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "exporter/positions.h"
#include "profile/otlp.h"
#include "proto/channel.h"
#include "proto/fds.h"
#include "shm/queue.h"
#include "shm/symbol.h"
#include "supervisor/child.h"
#include "tests/exporter/server.h"

#define MS	  1000000ull
#define LOG_BYTES (1 << 20)
#define FDS_HIGH  500 /* the harness keeps its own fds above those of the exporter */

static char program[4096];

struct harness {
	struct segment config_segment, ledger_segment, spools[DESTINATION_COUNT], logs[2];
	struct queue_segments queue_segments;
	int channel[2], output;
	struct channel supervisor; /* our end, renewed with every start */
	struct config *config;
	const struct ledger *ledger;
	struct queue queue;
	struct symbol_log *log[2];
	uint32_t epoch, next[SYMBOL_KIND_COUNT];
	uint64_t epoch_began[2];
	uint64_t pushed, seq;
	pid_t pid;
	struct server server;
	char dir[64], socket_path[96];
};

/* ---- the worker ---- */

static void *define(struct harness *h, enum symbol_kind kind, size_t bytes, void *room)
{
	struct symbol_header *header = room;

	header->len_bytes = (uint32_t)((bytes + 7) & ~(size_t)7);
	header->kind = (uint16_t)kind;
	header->id = ++h->next[kind];
	return room;
}

static uint32_t append(struct harness *h, const void *record)
{
	struct symbol_log *log = h->log[h->epoch & 1];
	const struct symbol_header *header = record;
	uint64_t len = atomic_load(&log->len_bytes);

	assert_true(len + header->len_bytes <= log->capacity);
	memcpy((char *)log + SYMBOL_LOG_HEADER_BYTES + len, record, header->len_bytes);
	atomic_store(&log->len_bytes, len + header->len_bytes);
	return header->id;
}

static uint32_t define_string(struct harness *h, const char *text)
{
	_Alignas(8) char room[512] = {0};
	struct symbol_string *s =
	    define(h, SYMBOL_STRING, sizeof(struct symbol_string) + strlen(text) + 1, room);

	s->bytes = (uint32_t)strlen(text);
	memcpy(s->text, text, s->bytes);
	return append(h, room);
}

static uint32_t define_location(struct harness *h, const char *name, uint64_t address)
{
	_Alignas(8) char room[128] = {0};
	struct symbol_function f = {.name = define_string(h, name)};
	struct symbol_mapping m = {.file = define_string(h, "/usr/bin/thing")};
	struct symbol_location *l;
	uint32_t function, mapping;

	function = append(h, define(h, SYMBOL_FUNCTION, sizeof(f), &f));
	mapping = append(h, define(h, SYMBOL_MAPPING, sizeof(m), &m));
	l = define(h, SYMBOL_LOCATION, sizeof(*l) + sizeof(struct symbol_line), room);
	l->mapping = mapping;
	l->address = address;
	l->lines_n = 1;
	l->lines[0].function = function;
	return append(h, room);
}

static uint32_t define_stack(struct harness *h, const char *leaf)
{
	_Alignas(8) char room[64] = {0};
	uint32_t locations[2] = {define_location(h, leaf, 0x10), define_location(h, "main", 0x20)};
	struct symbol_stack *s = define(h, SYMBOL_STACK, sizeof(*s) + 2 * sizeof(uint32_t), room);

	s->locations_n = 2;
	memcpy(s->locations, locations, sizeof(locations));
	return append(h, room);
}

static uint32_t define_process(struct harness *h, const char *executable, const char *unit)
{
	struct symbol_process p = {.pid = 77, .start_ns = 5};

	p.executable = define_string(h, executable);
	p.cgroup = define_string(h, "/system.slice/thing.service");
	p.unit = *unit ? define_string(h, unit) : 0;
	p.comm = define_string(h, "thing");
	return append(h, define(h, SYMBOL_PROCESS, sizeof(p), &p));
}

static void begin_epoch(struct harness *h, uint32_t epoch)
{
	struct symbol_log *log = h->log[epoch & 1];

	h->epoch = epoch;
	memset(h->next, 0, sizeof(h->next));
	log->magic = SYMBOL_MAGIC;
	log->version = SYMBOL_VERSION;
	log->capacity = LOG_BYTES;
	log->epoch = epoch;
	atomic_store(&log->len_bytes, 0);
	h->epoch_began[epoch & 1] = h->queue.cursor;
}

/* As a worker does: only when every sample of the epoch before the last has been released. */
static bool may_begin(struct harness *h)
{
	return atomic_load(&h->queue.tail->tail) >= h->epoch_began[h->epoch & 1];
}

static bool push(struct harness *h, uint32_t process, uint32_t stack)
{
	struct symbol_sample s = {
	    .header = {.len_bytes = sizeof(s), .kind = SYMBOL_SAMPLE},
	    .epoch = h->epoch,
	    .seq = ++h->seq,
	    .time_ns = child_now_ns(),
	    .period_ns = 10101010,
	    .process = process,
	    .stack = stack,
	    .pid = 77,
	    .tid = 78,
	    .comm = "sixteen bytes !",
	};

	if (queue_push(&h->queue, &s, sizeof(s)))
		return false;
	queue_publish(&h->queue, h->queue.cursor);
	h->pushed++;
	return true;
}

/* ---- the supervisor ---- */

static void move_high(int *fd)
{
	int high = fcntl(*fd, F_DUPFD_CLOEXEC, FDS_HIGH);

	assert_true(high >= FDS_HIGH);
	close(*fd);
	*fd = high;
}

static void segment_high(struct segment *segment)
{
	move_high(&segment->rw);
	move_high(&segment->ro);
}

static void give(int fd, int number)
{
	if (dup2(fd, number) != number)
		_exit(99);
}

/* What the one before sent and nobody read. */
static void forget_messages(struct harness *h)
{
	struct message message;

	while (recv(h->channel[0], &message, sizeof(message), MSG_DONTWAIT) > 0)
		;
	channel_init(&h->supervisor, h->channel[0], ROLE_SUPERVISOR, ROLE_EXPORTER, false);
}

static void start(struct harness *h)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char slot[4];
	int worker = FD_EXPORTER_WORKERS;

	snprintf(slot, sizeof(slot), "%d", ROLE_EXPORTER);
	forget_messages(h);
	h->pid = fork();
	assert_true(h->pid >= 0);
	if (h->pid) {
		close(null);
		return;
	}
	give(null, 0);
	give(null, 1);
	give(h->channel[1], FD_SUPERVISOR);
	give(h->config_segment.ro, FD_CONFIG);
	give(h->ledger_segment.rw, FD_LEDGER);
	for (int d = 0; d < DESTINATION_COUNT; d++)
		give(h->spools[d].rw, FD_EXPORTER_SPOOL + d);
	give(h->output, FD_EXPORTER_OUTPUT);
	give(h->queue_segments.producer.ro, worker + FD_EXPORTER_OUTPUT_OTHER);
	give(h->queue_segments.consumer.rw, worker + FD_EXPORTER_OUTPUT_OWN);
	give(h->logs[0].ro, worker + FD_EXPORTER_LOG_A);
	give(h->logs[1].ro, worker + FD_EXPORTER_LOG_B);
	/* Confined, it cannot be stopped to be searched for leaks. */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	execl(program, program, slot, (char *)NULL);
	_exit(98);
}

static void stop(struct harness *h, int signo)
{
	int status;

	kill(h->pid, signo);
	assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
	if (signo == SIGTERM)
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	else
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	h->pid = 0;
}

static uint64_t value(struct harness *h, enum counter counter)
{
	struct ledger_entry entry;

	assert_int_equal(ledger_read(h->ledger, &entry), 0);
	return entry.counter[counter];
}

static void sleep_ms(unsigned ms)
{
	struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};

	nanosleep(&t, NULL);
}

/* Messages from the exporter until one of this type comes. */
static bool expect(struct harness *h, enum message_type type, unsigned ms)
{
	struct message message;

	for (unsigned waited = 0; waited < ms; waited += 5) {
		while (channel_recv(&h->supervisor, &message, NULL, NULL) == 0)
			if (message.type == type)
				return true;
		sleep_ms(5);
	}
	return false;
}

static void drain(struct harness *h, unsigned ms)
{
	struct message_empty none = {0};

	assert_int_equal(channel_send(&h->supervisor, MESSAGE_DRAIN, &none, NULL, 0), 0);
	assert_true(expect(h, MESSAGE_DRAINED, ms));
}

static int setup(void **state)
{
	struct harness *h = calloc(1, sizeof(*h));

	*state = h;
	strcpy(h->dir, "/tmp/exporter-test-XXXXXX");
	assert_non_null(mkdtemp(h->dir));
	snprintf(h->socket_path, sizeof(h->socket_path), "%s/viewer.sock", h->dir);
	assert_int_equal(segment_create(&h->config_segment, "config", sizeof(struct config)), 0);
	assert_int_equal(ledger_create(&h->ledger_segment, "ledger"), 0);
	assert_int_equal(queue_create(&h->queue_segments, "output", 1 << 18), 0);
	assert_int_equal(channel_pair(h->channel), 0);
	for (int d = 0; d < DESTINATION_COUNT; d++) {
		assert_int_equal(segment_create(&h->spools[d], "spool", 1 << 20), 0);
		segment_high(&h->spools[d]);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
		    segment_create(&h->logs[i], "log", LOG_BYTES + SYMBOL_LOG_HEADER_BYTES), 0);
		segment_high(&h->logs[i]);
		h->log[i] = segment_map(h->logs[i].rw, LOG_BYTES + SYMBOL_LOG_HEADER_BYTES, 1);
		assert_non_null(h->log[i]);
		move_high(&h->channel[i]);
	}
	segment_high(&h->config_segment);
	segment_high(&h->ledger_segment);
	segment_high(&h->queue_segments.producer);
	segment_high(&h->queue_segments.consumer);
	h->output = memfd_create("output", MFD_CLOEXEC);
	move_high(&h->output);
	h->config = segment_map(h->config_segment.rw, sizeof(struct config), 1);
	h->ledger = ledger_map(h->ledger_segment.ro);
	assert_true(h->config && h->ledger);
	config_defaults(h->config, MODE_RUN);
	strcpy(h->config->run_dir, h->dir);
	strcpy(h->config->runtime.host_name, "test-host");
	h->config->runtime.instance[0] = 42;
	h->config->spool_bytes = 1 << 20;
	assert_int_equal(queue_open_producer(&h->queue, h->queue_segments.producer.rw,
					     h->queue_segments.consumer.ro),
			 0);
	begin_epoch(h, 0);
	return 0;
}

static int teardown(void **state)
{
	struct harness *h = *state;

	if (h->pid) {
		kill(h->pid, SIGKILL);
		waitpid(h->pid, NULL, 0);
	}
	if (h->server.listener && !h->server.stop)
		server_stop(&h->server);
	free(h->server.ids);
	queue_close(&h->queue);
	queue_destroy(&h->queue_segments);
	for (int i = 0; i < 2; i++) {
		munmap(h->log[i], LOG_BYTES + SYMBOL_LOG_HEADER_BYTES);
		segment_close(&h->logs[i]);
		close(h->channel[i]);
	}
	for (int d = 0; d < DESTINATION_COUNT; d++)
		segment_close(&h->spools[d]);
	munmap(h->config, sizeof(struct config));
	munmap((void *)h->ledger, LEDGER_BYTES);
	segment_close(&h->config_segment);
	segment_close(&h->ledger_segment);
	close(h->output);
	unlink(h->socket_path);
	rmdir(h->dir);
	free(h);
	return 0;
}

/* ---- the tests ---- */

/* The first batch is at the viewer within a second of its first sample. */
static void test_first_batch(void **state)
{
	struct harness *h = *state;
	uint32_t process, stack;
	uint64_t began;

	server_start(&h->server, h->socket_path);
	start(h);
	process = define_process(h, "/usr/bin/thing", "thing.service");
	stack = define_stack(h, "leaf");
	began = child_now_ns();
	for (int i = 0; i < 100; i++)
		assert_true(push(h, process, stack));
	while (h->server.samples < 100 && child_now_ns() - began < 3000 * MS)
		sleep_ms(5);
	assert_int_equal(h->server.samples, 100);
	assert_true(child_now_ns() - began < 1500 * MS);
	drain(h, 3000);
	assert_int_equal(value(h, C_exporter_samples), 100);
	assert_int_equal(value(h, C_viewer_acked), 100);
	assert_int_equal(queue_used(&h->queue), 0);
	stop(h, SIGTERM);
}

static void check_books(struct harness *h, uint64_t before)
{
	assert_int_equal(value(h, C_viewer_acked) + value(h, C_viewer_lost_spool_full) +
			     value(h, C_viewer_lost_rejected) + value(h, C_viewer_in_doubt) +
			     value(h, C_viewer_waiting) + value(h, C_lost_exporter_bad_record) +
			     value(h, C_lost_exporter_table_full),
			 before);
}

/* Killed while samples flow, logs change and the receiver comes and goes. */
static void test_kills(void **state)
{
	struct harness *h = *state;
	static const int modes[] = {SERVER_OK, SERVER_CLOSE, SERVER_OK, SERVER_BUSY};
	uint32_t process = 0, stacks[8] = {0};
	uint64_t arrived;

	srand(7);
	server_start(&h->server, h->socket_path);
	for (unsigned round = 0; round < 40; round++) {
		h->server.mode = modes[round % 4];
		start(h);
		if (round % 4 == 0 && may_begin(h)) {
			begin_epoch(h, h->epoch + 1);
			process = define_process(h, "/usr/bin/thing", "");
			for (int i = 0; i < 8; i++)
				stacks[i] = define_stack(h, "leaf");
		}
		for (int i = 0; i < 10; i++) {
			for (int j = 0; j < 50; j++)
				push(h, process, stacks[rand() % 8]);
			sleep_ms(1 + (unsigned)rand() % 8);
		}
		/* A long life now and then, so that intervals are closed by time as well. */
		sleep_ms(round % 8 == 7 ? 1000 : (unsigned)rand() % 60);
		stop(h, SIGKILL);
	}
	h->server.mode = SERVER_OK;
	start(h);
	drain(h, 8000);
	assert_int_equal(queue_used(&h->queue), 0);
	check_books(h, h->pushed);
	assert_int_equal(value(h, C_viewer_waiting), 0);
	assert_int_equal(value(h, C_viewer_in_doubt), 0);
	assert_int_equal(value(h, C_lost_exporter_bad_record), 0);
	arrived = h->server.samples;
	assert_int_equal(arrived, value(h, C_viewer_acked));
	assert_int_equal(arrived + value(h, C_viewer_lost_spool_full) +
			     value(h, C_viewer_lost_rejected),
			 h->pushed);
	assert_true(arrived > 1000);
	assert_int_equal(h->server.undecodable, 0);
	stop(h, SIGTERM);
}

/* Nobody listens: what is in the spool says so, and the end comes all the same. */
static void test_no_receiver(void **state)
{
	struct harness *h = *state;
	uint32_t process = define_process(h, "/usr/bin/thing", "");
	uint32_t stack = define_stack(h, "leaf");

	for (int i = 0; i < 10; i++)
		push(h, process, stack);
	start(h);
	drain(h, 8000);
	assert_int_equal(value(h, C_viewer_waiting), 10);
	assert_int_equal(value(h, C_viewer_acked), 0);
	check_books(h, 10);
	stop(h, SIGTERM);
}

static void test_file(void **state)
{
	struct harness *h = *state;
	uint32_t process = define_process(h, "/opt/x/thing (deleted)", "");
	uint32_t stack = define_stack(h, "leaf");
	char text[256] = {0};

	h->config->viewer.enabled = false;
	h->config->format = FORMAT_FOLDED;
	assert_int_equal(write(h->output, "half a line of a writer that was killed, and more", 50),
			 50);
	start(h);
	for (int i = 0; i < 30; i++)
		push(h, process, stack);
	sleep_ms(900); /* one interval is closed, another begins */
	for (int i = 0; i < 12; i++)
		push(h, process, stack);
	drain(h, 3000);
	assert_int_equal(pread(h->output, text, sizeof(text) - 1, 0), 29);
	assert_string_equal(text, "sixteen bytes !;main;leaf 42\n");
	assert_int_equal(value(h, C_file_acked), 42);
	assert_int_equal(value(h, C_file_waiting), 0);
	assert_int_equal(value(h, C_viewer_waiting), 0);
	/* Started again after the end: the file stays as it is. */
	stop(h, SIGKILL);
	start(h);
	drain(h, 3000);
	assert_int_equal(lseek(h->output, 0, SEEK_END), 29);
	assert_int_equal(value(h, C_file_acked), 42);
	stop(h, SIGTERM);
}

static void test_file_fails(void **state)
{
	struct harness *h = *state;
	uint32_t process = define_process(h, "/usr/bin/thing", "");

	h->config->viewer.enabled = false;
	h->config->format = FORMAT_PPROF;
	close(h->output);
	h->output = open("/dev/full", O_RDWR | O_CLOEXEC);
	move_high(&h->output);
	for (int i = 0; i < 7; i++)
		push(h, process, define_stack(h, "leaf"));
	start(h);
	drain(h, 3000);
	assert_int_equal(value(h, C_file_acked), 0);
	assert_int_equal(value(h, C_file_lost_rejected), 7);
	assert_int_equal(value(h, C_file_error), ENOSPC);
	stop(h, SIGTERM);
}

/* The limit of file sizes stands in for a disk that fills up behind the first bytes. */
static void test_file_is_whole_or_empty(void **state)
{
	struct harness *h = *state;
	uint32_t process = define_process(h, "/usr/bin/thing", "");
	struct rlimit whole, few;
	struct stat st;

	h->config->viewer.enabled = false;
	h->config->format = FORMAT_PPROF;
	push(h, process, define_stack(h, "leaf"));
	getrlimit(RLIMIT_FSIZE, &whole);
	few = (struct rlimit){64, whole.rlim_max};
	setrlimit(RLIMIT_FSIZE, &few);
	start(h);
	setrlimit(RLIMIT_FSIZE, &whole);
	drain(h, 3000);
	assert_int_equal(value(h, C_file_error), EFBIG);
	assert_int_equal(value(h, C_file_lost_rejected), 1);
	assert_int_equal(fstat(h->output, &st), 0);
	assert_int_equal(st.st_size, 0);
	stop(h, SIGTERM);
}

/* A worker that lies in every field: counted, reported, and the good samples still arrive. */
static void test_hostile_worker(void **state)
{
	struct harness *h = *state;
	struct symbol_sample s = {.header = {.len_bytes = sizeof(s), .kind = SYMBOL_SAMPLE},
				  .period_ns = 1};
	uint32_t process = define_process(h, "/usr/bin/thing", "");
	uint32_t stack = define_stack(h, "leaf");
	_Alignas(8) char room[32] = {0};
	struct symbol_stack *bad = define(h, SYMBOL_STACK, sizeof(room), room);
	uint32_t bad_stack;

	bad->locations_n = 1u << 30;
	bad_stack = append(h, room);
	server_start(&h->server, h->socket_path);
	s.process = process;
	s.stack = stack;
	for (int i = 0; i < 10; i++) {
		struct symbol_sample t = s;

		switch (i) {
		case 0:
			t.stack = 0;
			break;
		case 1:
			t.stack = 1u << 31;
			break;
		case 2:
			t.stack = bad_stack;
			break;
		case 3:
			t.process = 0;
			break;
		case 4:
			t.process = 99;
			break;
		case 5:
			t.epoch = 1;
			break;
		case 6:
			t.epoch = UINT32_MAX;
			break;
		case 7:
			t.header.kind = SYMBOL_STACK;
			break;
		case 8:
			t.stop = 255;
			break;
		case 9:
			t.period_ns = 0;
			break;
		}
		assert_int_equal(queue_push(&h->queue, &t, sizeof(t)), 0);
		push(h, process, stack);
	}
	start(h);
	assert_true(expect(h, MESSAGE_VIOLATION, 3000));
	sleep_ms(1000);
	/* A length that cannot be: the end of it is not known, so all behind it is given up. */
	s.header.len_bytes = 12;
	memcpy(queue_reserve(&h->queue, sizeof(s)), &s, sizeof(s));
	queue_commit(&h->queue, sizeof(s));
	queue_publish(&h->queue, h->queue.cursor);
	sleep_ms(1500);
	push(h, process, stack);
	sleep_ms(200);
	drain(h, 3000);
	assert_int_equal(h->server.samples, 11);
	assert_int_equal(value(h, C_lost_exporter_bad_record), 11);
	assert_int_equal(value(h, C_viewer_acked), 11);
	assert_int_equal(queue_used(&h->queue), 0);
	stop(h, SIGTERM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_first_batch), TEST(test_kills),	   TEST(test_no_receiver),
	    TEST(test_file),	    TEST(test_file_fails), TEST(test_file_is_whole_or_empty), TEST(test_hostile_worker),
	};
	char self[4000];

	snprintf(self, sizeof(self), "%s", argv[0]);
	snprintf(program, sizeof(program), "%s/../../sconce-exporter", dirname(self));
	if (argc > 1)
		snprintf(program, sizeof(program), "%s", argv[1]);
	signal(SIGPIPE, SIG_IGN);
	log_init(ROLE_SUPERVISOR, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
