/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_uring and pread give the same bytes, of files that change as well, and of those that the ring
 * is not good for. What the ring may do is ring_test's.
 */
#define _GNU_SOURCE
#include "symbolizer/reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define FILES	   50
#define ROUNDS	   8
#define PARTS	   40 /* more than fit the ring at once */
#define PART_BYTES 3000

#define SHRINKING_BYTES (PARTS * 8192)
#define NOBODY		65534

struct shrinking {
	int fd;
	atomic_bool over;
};

static struct reader with_ring, without;

static int open_both(const char *path, int *a, int *b)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	*a = reader_add(&with_ring, dup(fd));
	*b = reader_add(&without, fd);
	assert_true(*a >= 0 && *b >= 0);
	return (int)(st.st_size < 1 << 30 ? st.st_size : 1 << 30);
}

static void compare(int a, int b, long size)
{
	static char buf[2][PARTS][PART_BYTES];
	struct reader_part parts[2][PARTS];
	size_t n = 1 + (size_t)rand() % PARTS;

	memset(buf, 0x55, sizeof(buf));
	for (size_t i = 0; i < n; i++) {
		/* A tenth of them across the end and behind it; some of no bytes. */
		size_t bytes = rand() % 8 ? (size_t)rand() % (PART_BYTES + 1) : 0;
		uint64_t offset = i % 10 == 9 ? (uint64_t)(size - 1000 + rand() % 2000)
					      : (uint64_t)(rand() % (size + 1));

		for (int k = 0; k < 2; k++)
			parts[k][i] = (struct reader_part){buf[k][i], bytes, offset, 77};
	}
	reader_read(&with_ring, a, parts[0], n);
	reader_read(&without, b, parts[1], n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(parts[0][i].result, parts[1][i].result);
	assert_memory_equal(buf[0], buf[1], sizeof(buf[0]));
}

static void test_same(void **state)
{
	DIR *dir = opendir("/usr/lib/x86_64-linux-gnu");
	struct dirent *entry;
	int files = 0;

	(void)state;
	if (!dir)
		dir = opendir("/usr/bin");
	assert_non_null(dir);
	srand(1);
	reader_open(&with_ring, true);
	reader_open(&without, false);
	while (files < FILES && (entry = readdir(dir))) {
		char path[512];
		int a, b, size;

		snprintf(path, sizeof(path), "/usr/lib/x86_64-linux-gnu/%s", entry->d_name);
		size = open_both(path, &a, &b);
		if (size < 0)
			continue;
		for (int i = 0; i < ROUNDS && size > 1000; i++)
			compare(a, b, size);
		if (files % 2) { /* slots are used again */
			reader_remove(&with_ring, a);
			reader_remove(&without, b);
		}
		files++;
	}
	closedir(dir);
	assert_int_equal(files, FILES);
	assert_true(without.reads_pread > 0 && without.reads_uring == 0);
	if (!with_ring.uring)
		print_message("no io_uring here: only pread was tested\n");
	else if (with_ring.reads_uring == 0)
		print_message("this filesystem does not suit the ring: only pread was tested\n");
	else
		assert_true(with_ring.reads_uring > with_ring.reads_pread);
	reader_close(&with_ring);
	reader_close(&without);
}

/* A slot more than there are; one that was given back serves again. */
static void test_full(void **state)
{
	char path[] = "/proc/self/exe", first[2][8], again[2][8];
	struct reader_part parts[2] = {{first[0], 8, 0, 0}, {first[1], 8, 64, 0}};

	(void)state;
	reader_open(&with_ring, true);
	for (int i = 0; i < READER_FILES_MAX; i++)
		assert_int_equal(reader_add(&with_ring, open(path, O_RDONLY | O_CLOEXEC)), i);
	assert_int_equal(reader_add(&with_ring, open(path, O_RDONLY | O_CLOEXEC)), -ENFILE);
	reader_read(&with_ring, 300, parts, 2);
	assert_int_equal(parts[0].result + parts[1].result, 16);
	reader_remove(&with_ring, 300);
	assert_int_equal(with_ring.files, READER_FILES_MAX - 1);
	assert_int_equal(reader_add(&with_ring, open(path, O_RDONLY | O_CLOEXEC)), 300);
	parts[0].buf = again[0];
	parts[1].buf = again[1];
	reader_read(&with_ring, 300, parts, 2);
	assert_memory_equal(first, again, sizeof(first));
	reader_close(&with_ring);
	assert_int_equal(with_ring.files, 0);
}

/* A slot holds its file, whatever comes to stand at its path. */
static void test_replaced(void **state)
{
	char path[] = "reader-test-XXXXXX", buf[2][4];
	struct reader_part parts[2] = {{buf[0], 4, 0, 0}, {buf[1], 4, 4, 0}};
	int fd = mkstemp(path), slot;

	(void)state;
	assert_int_equal(write(fd, "old file", 8), 8);
	reader_open(&with_ring, true);
	slot = reader_add(&with_ring, fd);
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "new file", 8), 8);
	reader_read(&with_ring, slot, parts, 2);
	assert_memory_equal(buf, "old file", 8);
	reader_close(&with_ring);
	close(fd);
	unlink(path);
}

static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = -2; /* . and .. */

	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* A memfd, as a file of tmpfs, overlayfs or FUSE, would need a thread of the kernel's. */
static void test_unsuited(void **state)
{
	char buf[2][4];
	struct reader_part parts[2] = {{buf[0], 4, 0, 0}, {buf[1], 4, 4, 0}};
	int fd = memfd_create("unsuited", MFD_CLOEXEC), before = threads(), slot;

	(void)state;
	assert_int_equal(write(fd, "somebody", 8), 8);
	reader_open(&with_ring, true);
	slot = reader_add(&with_ring, fd);
	reader_read(&with_ring, slot, parts, 2);
	assert_memory_equal(buf, "somebody", 8);
	assert_int_equal(with_ring.reads_uring, 0);
	assert_int_equal(threads(), before);
	reader_close(&with_ring);
}

/* In a process that can have no thread: the ring's reads of this file are cancelled. */
static bool reads_without_threads(void)
{
	const struct rlimit none = {0, 0};
	char buf[2][4];
	struct reader_part parts[2] = {{buf[0], 4, 0, 0}, {buf[1], 4, 4, 0}};
	int fd = memfd_create("unsuited", MFD_CLOEXEC), slot;

	reader_open(&with_ring, true);
	slot = reader_add(&with_ring, fd);
	/* What may happen to a suited file as well, at times: it is handed to a thread. */
	with_ring.suits[slot] = true;
	if (write(fd, "somebody", 8) != 8 ||
	    io_uring_register_files_update(&with_ring.ring, (unsigned)slot, &fd, 1) != 1)
		return false;
	if (setrlimit(RLIMIT_NPROC, &none) || setgid(NOBODY) || setuid(NOBODY))
		return false;
	reader_read(&with_ring, slot, parts, 2);
	return parts[0].result == 4 && parts[1].result == 4 && memcmp(buf, "somebody", 8) == 0 &&
	       with_ring.reads_uring == 2 && with_ring.reads_pread == 2 && !with_ring.uring;
}

static void test_no_threads(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	reader_open(&with_ring, true);
	if (geteuid() || !with_ring.uring) {
		reader_close(&with_ring);
		print_message("needs root and io_uring\n");
		skip();
	}
	reader_close(&with_ring);
	pid = fork();
	if (pid == 0)
		_exit(!reads_without_threads());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A ring that fails in the middle of its life is given up. */
static void test_ring_fails(void **state)
{
	char buf[2][4];
	struct reader_part parts[2] = {{buf[0], 4, 0, 0}, {buf[1], 4, 4, 0}};
	int slot;

	(void)state;
	reader_open(&with_ring, true);
	slot = reader_add(&with_ring, open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	if (with_ring.uring)
		close(with_ring.ring.ring_fd);
	reader_read(&with_ring, slot, parts, 2);
	assert_memory_equal(buf[0], "\177ELF", 4);
	assert_int_equal(parts[0].result + parts[1].result, 8);
	assert_true(!with_ring.uring || !with_ring.suits[slot]);
	reader_close(&with_ring);
}

static void *truncate_and_grow(void *arg)
{
	const struct shrinking *file = arg;

	while (!atomic_load(&file->over)) {
		if (ftruncate(file->fd, 100) || ftruncate(file->fd, SHRINKING_BYTES))
			abort();
	}
	return NULL;
}

/* A file that gets shorter and longer while it is read: short reads, no signal, nothing but zeroes
 * and what stood there. */
static void test_truncated(void **state)
{
	static char buf[PARTS][SHRINKING_BYTES / PARTS];
	struct reader_part parts[PARTS];
	char path[] = "reader-test-XXXXXX";
	struct shrinking file = {.fd = mkstemp(path)};
	pthread_t thread;
	int slot;

	(void)state;
	unlink(path);
	assert_int_equal(ftruncate(file.fd, SHRINKING_BYTES), 0);
	assert_int_equal(pwrite(file.fd, "head", 4, 0), 4);
	reader_open(&with_ring, true);
	slot = reader_add(&with_ring, dup(file.fd));
	assert_int_equal(pthread_create(&thread, NULL, truncate_and_grow, &file), 0);
	for (int round = 0; round < 500; round++) {
		for (size_t i = 0; i < PARTS; i++)
			parts[i] =
			    (struct reader_part){buf[i], sizeof(buf[i]), i * sizeof(buf[i]), 0};
		reader_read(&with_ring, slot, parts, PARTS);
		assert_true(parts[0].result >= 100 && memcmp(buf[0], "head", 5) == 0);
		for (size_t i = 0; i < PARTS; i++)
			assert_in_range(parts[i].result, 0, sizeof(buf[i]));
	}
	atomic_store(&file.over, true);
	pthread_join(thread, NULL);
	reader_close(&with_ring);
	close(file.fd);
}

static void on_alarm(int number)
{
	(void)number;
}

/* Reads that signals interrupt are whole all the same. */
static void test_interrupted(void **state)
{
	const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	const struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */
	int a, b, size;

	(void)state;
	reader_open(&with_ring, true);
	reader_open(&without, false);
	size = open_both("/proc/self/exe", &a, &b);
	assert_true(size > 1000);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	for (int i = 0; i < 2000; i++)
		compare(a, b, size);
	setitimer(ITIMER_PROF, &never, NULL);
	reader_close(&with_ring);
	reader_close(&without);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_same),       cmocka_unit_test(test_full),
	    cmocka_unit_test(test_replaced),   cmocka_unit_test(test_unsuited),
	    cmocka_unit_test(test_no_threads), cmocka_unit_test(test_ring_fails),
	    cmocka_unit_test(test_truncated),  cmocka_unit_test(test_interrupted),
	};
	const char *tmp = getenv("TMPDIR");

	alarm(60);
	if (chdir(tmp ? tmp : "/tmp"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
