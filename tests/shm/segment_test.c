/* SPDX-License-Identifier: Apache-2.0 */
/* What a segment promises: fixed size for ever, and no way from the reader's fd to a writable page. */
#define _GNU_SOURCE
#include "shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_size_is_rounded_and_sealed(void **state)
{
	struct segment s;

	(void)state;
	assert_int_equal(segment_create(&s, "test", SEGMENT_PAGE + 1), 0);
	assert_int_equal(segment_size(s.rw), 2 * SEGMENT_PAGE);
	assert_int_equal(segment_size(s.ro), 2 * SEGMENT_PAGE);
	assert_int_equal(ftruncate(s.rw, SEGMENT_PAGE), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(s.rw, 4 * SEGMENT_PAGE), -1);
	assert_int_equal(fcntl(s.rw, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_true(fcntl(s.rw, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(s.ro, F_GETFD) & FD_CLOEXEC);
	segment_close(&s);
	assert_int_equal(s.rw, -1);
	segment_close(&s);
}

static void test_reader_sees_and_cannot_write(void **state)
{
	struct segment s;
	char *w, *r;

	(void)state;
	assert_int_equal(segment_create(&s, "test", SEGMENT_PAGE), 0);
	w = segment_map(s.rw, SEGMENT_PAGE, 1);
	r = segment_map(s.ro, SEGMENT_PAGE, 0);
	assert_non_null(w);
	assert_non_null(r);
	strcpy(w, "hello");
	assert_string_equal(r, "hello");
	assert_null(segment_map(s.ro, SEGMENT_PAGE, 1));
	assert_int_equal(errno, EACCES);
	assert_int_equal(mprotect(r, SEGMENT_PAGE, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(write(s.ro, "x", 1), -1);
	munmap(w, SEGMENT_PAGE);
	munmap(r, SEGMENT_PAGE);
	segment_close(&s);
}

/* Another uid that was handed the read-only fd opens it again through /proc. */
static void test_other_uid_cannot_reopen_for_writing(void **state)
{
	struct segment s;
	char path[40];
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(segment_create(&s, "test", SEGMENT_PAGE), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s.ro);
	pid = fork();
	if (pid == 0) {
		if (setresgid(61999, 61999, 61999) || setresuid(61999, 61999, 61999))
			_exit(2);
		_exit(open(path, O_RDWR) >= 0 ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	segment_close(&s);
}

static void test_unsealed_is_refused(void **state)
{
	int fd = memfd_create("bare", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int pipes[2];

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, SEGMENT_PAGE), 0);
	assert_int_equal(segment_size(fd), -EPROTO);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	assert_int_equal(segment_size(fd), -EPROTO);
	close(fd);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(segment_size(pipes[0]), -EINVAL);
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(segment_size(-1), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size_is_rounded_and_sealed),
		cmocka_unit_test(test_reader_sees_and_cannot_write),
		cmocka_unit_test(test_other_uid_cannot_reopen_for_writing),
		cmocka_unit_test(test_unsealed_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
