/* SPDX-License-Identifier: Apache-2.0 */
/* io_uring and pread give the same bytes; the ring can do nothing but read registered files. */
#define _GNU_SOURCE
#include "symbolizer/reader.h"

#include <dirent.h>
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

#define FILES	   50
#define PARTS	   40 /* more than fit the ring at once */
#define PART_BYTES 3000

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

	memset(buf, 0x55, sizeof(buf));
	for (int i = 0; i < PARTS; i++)
		for (int k = 0; k < 2; k++)
			/* The last parts lie across the end and behind it. */
			parts[k][i] = (struct reader_part){buf[k][i], (size_t)(PART_BYTES - i * 7),
							   (uint64_t)(size * i / (PARTS - 3)), 0};
	parts[0][3].len_bytes = parts[1][3].len_bytes = 0;
	reader_read(&with_ring, a, parts[0], PARTS);
	reader_read(&without, b, parts[1], PARTS);
	for (int i = 0; i < PARTS; i++)
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
	reader_open(&with_ring, true);
	reader_open(&without, false);
	while (files < FILES && (entry = readdir(dir))) {
		char path[512];
		int a, b, size;

		snprintf(path, sizeof(path), "/usr/lib/x86_64-linux-gnu/%s", entry->d_name);
		size = open_both(path, &a, &b);
		if (size < 0)
			continue;
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
	if (with_ring.uring)
		assert_true(with_ring.reads_uring > 0 && with_ring.reads_pread == 0);
	else
		print_message("no io_uring here: only pread was tested\n");
	reader_close(&with_ring);
	reader_close(&without);
}

static void test_full(void **state)
{
	(void)state;
	reader_open(&without, false);
	for (int i = 0; i < READER_FILES_MAX; i++)
		without.fds[i] = 1000000; /* none that could be closed */
	assert_int_equal(reader_add(&without, open("/dev/null", O_RDONLY)), -ENFILE);
}

static int ring_try(struct io_uring *ring, void (*prepare)(struct io_uring_sqe *))
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	int result;

	prepare(sqe);
	assert_true(io_uring_submit(ring) >= 0);
	assert_int_equal(io_uring_wait_cqe(ring, &cqe), 0);
	result = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return result;
}

static void prepare_open(struct io_uring_sqe *sqe)
{
	io_uring_prep_openat(sqe, AT_FDCWD, "/etc/passwd", O_RDONLY, 0);
}

static void prepare_socket(struct io_uring_sqe *sqe)
{
	io_uring_prep_socket(sqe, 2, 1, 0, 0);
}

static void prepare_plain_read(struct io_uring_sqe *sqe)
{
	static char c;

	io_uring_prep_read(sqe, 0, &c, 1, 0);
}

static void test_restricted(void **state)
{
	(void)state;
	reader_open(&with_ring, true);
	if (!with_ring.uring)
		skip();
	assert_int_equal(ring_try(&with_ring.ring, prepare_open), -EACCES);
	assert_int_equal(ring_try(&with_ring.ring, prepare_socket), -EACCES);
	assert_int_equal(ring_try(&with_ring.ring, prepare_plain_read), -EACCES);
	reader_close(&with_ring);
}

/* A file that gets shorter while it is read: a short read, no signal. */
static void test_truncated(void **state)
{
	char buf[8192];
	struct reader_part part = {buf, sizeof(buf), 0, 0};
	int fd = memfd_create("shrinks", 0), slot;

	(void)state;
	assert_int_equal(ftruncate(fd, sizeof(buf)), 0);
	reader_open(&with_ring, true);
	slot = reader_add(&with_ring, dup(fd));
	assert_int_equal(ftruncate(fd, 100), 0);
	reader_read(&with_ring, slot, &part, 1);
	assert_int_equal(part.result, 100);
	reader_close(&with_ring);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_same),
	    cmocka_unit_test(test_full),
	    cmocka_unit_test(test_restricted),
	    cmocka_unit_test(test_truncated),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
