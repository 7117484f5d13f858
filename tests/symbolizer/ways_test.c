/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker says the same of the same files, to the byte (definitions, samples, unwind tables),
 * whether it reads through io_uring or a seccomp filter, such as a container runtime's, answers one
 * of the calls for it with one of the errors that are in use.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolizer/reader.h"
#include "tests/symbolizer/harness.h"

#define PID	       4711
#define START	       1000000000ull
#define FIRST_FILE     7
#define SAMPLES	       20 /* of each file */
#define FRAMES	       16 /* of each sample */
#define BASE	       0x100000000ull
#define OUTPUT_RECORDS 1024

/* Those that are there. */
static const char *const candidates[] = {
    "/proc/self/exe",
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/lib/x86_64-linux-gnu/libm.so.6",
    "/usr/bin/bash",
    "/usr/bin/python3",
    "/usr/bin/perl",
    "/usr/bin/git",
    "/etc/passwd", /* no ELF file */
};

#define CANDIDATES (sizeof(candidates) / sizeof(candidates[0]))

static const struct way {
	const char *name;
	long call; /* that is refused; 0 = none */
	int error;
} ways[] = {
    {"io_uring", 0, 0},
    {"io_uring_setup: EPERM", SYS_io_uring_setup, EPERM},
    {"io_uring_setup: EACCES", SYS_io_uring_setup, EACCES},
    {"io_uring_setup: ENOSYS", SYS_io_uring_setup, ENOSYS},
    {"io_uring_setup: EINVAL", SYS_io_uring_setup, EINVAL},
    {"io_uring_setup: ENOMEM", SYS_io_uring_setup, ENOMEM},
    {"io_uring_register: EPERM", SYS_io_uring_register, EPERM},
    {"io_uring_register: ENOSYS", SYS_io_uring_register, ENOSYS},
    {"io_uring_enter: EPERM", SYS_io_uring_enter, EPERM},
    {"io_uring_enter: ENOSYS", SYS_io_uring_enter, ENOSYS},
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* What a worker said. */
struct said {
	struct symbol_sample samples[OUTPUT_RECORDS];
	size_t samples_n;
	char *log, *tables;
	size_t log_bytes, tables_bytes;
	uint64_t reads_uring, reads_pread, rings, named, indexed;
};

static const struct way *way;

static void refuse(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)way->call, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)way->error),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(125);
}

/* All of a file lies at a place of its own, one behind the other. */
static void introduce(struct harness *h, uint64_t *sizes)
{
	struct stat st;

	harness_push_process(h, PID, START, 0);
	for (uint32_t i = 0; i < CANDIDATES; i++) {
		sizes[i] = stat(candidates[i], &st) == 0 ? (uint64_t)st.st_size : 0;
		if (!sizes[i])
			continue;
		harness_push_file(h, FIRST_FILE + i, candidates[i]);
		harness_push_range(h, PID, BASE * (i + 1), BASE * (i + 1) + sizes[i], 0,
				   FIRST_FILE + i, 0);
	}
	harness_send_info(h, PID, START, "/usr/bin/known", "0::/known\n");
	for (uint32_t i = 0; i < CANDIDATES; i++)
		if (sizes[i])
			harness_send_file(h, FIRST_FILE + i, candidates[i]);
}

static void push(struct harness *h, uint64_t seq, uint32_t file, uint64_t size)
{
	struct record_sample head = {.cpu = 1,
				     .pid = PID,
				     .tid = PID,
				     .seq = seq,
				     .time_ns = START + seq,
				     .period_ns = 1000,
				     .start_ns = START,
				     .stop = STOP_COMPLETE,
				     .user_slots = FRAMES,
				     .comm = "known"};
	struct frame frames[FRAMES];

	for (uint32_t i = 0; i < FRAMES; i++)
		frames[i] = (struct frame){.kind = FRAME_NATIVE,
					   .file_id = FIRST_FILE + file,
					   .addr = size * (seq % SAMPLES * FRAMES + i) /
						   (SAMPLES * FRAMES)};
	assert_int_equal(harness_push_sample(h, head, frames, NULL, NULL), 0);
}

/* In the middle of the file, to be walked by the worker: it has to make the table. */
static void push_deferred(struct harness *h, uint64_t seq, uint32_t file, uint64_t size)
{
	static const uint64_t stack[64];
	struct record_regs regs = {.pc = BASE * (file + 1) + size / 2, .sp = 4096, .fp = 4096};
	struct record_sample head = {.cpu = 1,
				     .pid = PID,
				     .tid = PID,
				     .seq = seq,
				     .time_ns = START + seq,
				     .period_ns = 1000,
				     .start_ns = START,
				     .stop = STOP_DEFERRED,
				     .stack_bytes = sizeof(stack),
				     .comm = "known"};

	assert_int_equal(harness_push_sample(h, head, NULL, &regs, stack), 0);
}

static void keep(char **to, size_t *have, const void *bytes, size_t n)
{
	*to = realloc(*to, *have + n + 1);
	assert_non_null(*to);
	memcpy(*to + *have, bytes, n);
	*have += n;
}

static void collect_tables(struct harness *h, struct said *said)
{
	static char bytes[1 << 24];
	struct message message;
	int fds[MESSAGE_FDS_MAX];
	size_t fds_n = 0;

	while (channel_recv(&h->sampler, &message, fds, &fds_n) == 0) {
		ssize_t n = fds_n ? pread(fds[0], bytes, sizeof(bytes), 0) : 0;

		assert_in_range(n, 0, sizeof(bytes) - 1);
		if (message.type == MESSAGE_TABLE || message.type == MESSAGE_NO_TABLE) {
			keep(&said->tables, &said->tables_bytes, &message.table,
			     sizeof(message.table));
			keep(&said->tables, &said->tables_bytes, bytes, (size_t)n);
		}
		for (size_t i = 0; i < fds_n; i++)
			close(fds[i]);
		fds_n = 0;
	}
}

static void collect(struct harness *h, struct said *said, size_t expected)
{
	const struct symbol_log *log;

	while (said->samples_n < expected) {
		assert_true(said->samples_n < OUTPUT_RECORDS);
		assert_true(harness_next(h, &said->samples[said->samples_n++], 60000));
	}
	assert_true(harness_wait_counter(h, C_symbolizer_symbolized, expected, 10000));
	log = h->log[said->samples[0].epoch % 2];
	keep(&said->log, &said->log_bytes, (const char *)log + SYMBOL_LOG_HEADER_BYTES,
	     log->len_bytes);
	collect_tables(h, said);
	said->reads_uring = harness_counter(h, C_reads_uring);
	said->reads_pread = harness_counter(h, C_reads_pread);
	said->rings = harness_counter(h, C_rings);
	said->named = harness_counter(h, C_frames_named);
	said->indexed = harness_counter(h, C_files_indexed);
}

static void work(struct said *said)
{
	static struct config config;
	static struct harness h;
	uint64_t sizes[CANDIDATES];
	size_t pushed = 0;

	memset(said, 0, sizeof(*said));
	config_defaults(&config, MODE_RUN);
	config.log_bytes = 4 << 20;
	harness_open(&h, &config, "ffffffff81000000 T _text\n");
	h.confine = way->call ? refuse : NULL;
	harness_start(&h);
	introduce(&h, sizes);
	for (uint32_t i = 0; i < CANDIDATES; i++)
		for (uint64_t k = 0; k < SAMPLES && sizes[i]; k++)
			push(&h, ++pushed, i, sizes[i]);
	for (uint32_t i = 0; i < CANDIDATES; i++)
		if (sizes[i])
			push_deferred(&h, ++pushed, i, sizes[i]);
	collect(&h, said, pushed);
	harness_close(&h);
}

static void forget(struct said *said)
{
	free(said->log);
	free(said->tables);
}

static void test_same(void **state)
{
	static struct said first, other;

	(void)state;
	for (size_t i = 0; i < WAYS; i++) {
		struct said *said = i == 0 ? &first : &other;

		way = &ways[i];
		work(said);
		print_message("%-26s %llu reads by io_uring, %llu by pread, %llu frames named, "
			      "log %zu bytes, tables %zu\n",
			      way->name, (unsigned long long)said->reads_uring,
			      (unsigned long long)said->reads_pread,
			      (unsigned long long)said->named, said->log_bytes, said->tables_bytes);
		assert_int_equal(said->rings, i == 0);
		assert_int_equal(said->reads_uring > 0, i == 0);
		if (i == 0)
			continue;
		assert_int_equal(said->samples_n, first.samples_n);
		assert_memory_equal(said->samples, first.samples,
				    said->samples_n * sizeof(said->samples[0]));
		assert_int_equal(said->log_bytes, first.log_bytes);
		assert_memory_equal(said->log, first.log, first.log_bytes);
		assert_int_equal(said->tables_bytes, first.tables_bytes);
		assert_memory_equal(said->tables, first.tables, first.tables_bytes);
		forget(said);
	}
	/* There was something to be different. */
	assert_true(first.named > 300 && first.indexed >= 4 && first.log_bytes > 100000 &&
		    first.tables_bytes > 100000);
	forget(&first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_same)};
	static struct reader reader;
	int slot;

	alarm(110);
	reader_open(&reader, true);
	slot = reader_add(&reader, open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	if (!reader.uring || !reader.suits[slot]) {
		printf("no io_uring here, or this filesystem does not suit it\n");
		return 77;
	}
	reader_close(&reader);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
