/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's ring does nothing but READ of registered files and putting files into its table:
 * each other request is made and refused. The same ones are made on a ring without restrictions, to
 * see that it is those that refuse.
 */
#define _GNU_SOURCE
#include "symbolizer/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

/* linux/io_uring.h of 6.1 lacks it; since 6.8. */
#define OP_FIXED_FD_INSTALL 54
#define OPERATIONS	    256
#define REGISTRATIONS	    128

static struct reader restricted;
static struct io_uring open_ring;
static int file, event;
static char bytes[16];

static struct io_uring_sqe *next(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe)
		abort();
	return sqe;
}

static void reset(struct io_uring_sqe *sqe, int opcode, int flags)
{
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = (uint8_t)opcode;
	sqe->flags = (uint8_t)flags;
}

static void prepare_read(struct io_uring_sqe *sqe, unsigned flags)
{
	io_uring_prep_read(sqe, 0, bytes, 1, 0);
	sqe->flags = (uint8_t)flags;
}

static void prepare_plain_read(struct io_uring_sqe *sqe)
{
	io_uring_prep_read(sqe, file, bytes, 1, 0);
}

static void prepare_openat(struct io_uring_sqe *sqe)
{
	io_uring_prep_openat(sqe, AT_FDCWD, "/etc/passwd", O_RDONLY | O_CLOEXEC, 0);
}

static void prepare_statx(struct io_uring_sqe *sqe)
{
	static struct statx st;

	io_uring_prep_statx(sqe, AT_FDCWD, "/etc/passwd", 0, STATX_BASIC_STATS, &st);
}

static void prepare_socket(struct io_uring_sqe *sqe)
{
	io_uring_prep_socket(sqe, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0, 0);
}

static void prepare_connect(struct io_uring_sqe *sqe)
{
	static struct sockaddr_in address = {.sin_family = AF_INET};

	io_uring_prep_connect(sqe, file, (struct sockaddr *)&address, sizeof(address));
}

static void prepare_send(struct io_uring_sqe *sqe)
{
	io_uring_prep_send(sqe, file, bytes, 1, 0);
}

static void prepare_write(struct io_uring_sqe *sqe)
{
	io_uring_prep_write(sqe, 0, bytes, 1, 0);
	sqe->flags = IOSQE_FIXED_FILE;
}

static void prepare_nop(struct io_uring_sqe *sqe)
{
	io_uring_prep_nop(sqe);
}

static void prepare_install(struct io_uring_sqe *sqe)
{
	reset(sqe, OP_FIXED_FD_INSTALL, IOSQE_FIXED_FILE);
}

static void prepare_files_update(struct io_uring_sqe *sqe)
{
	io_uring_prep_files_update(sqe, &file, 1, 0);
}

static void prepare_async(struct io_uring_sqe *sqe)
{
	prepare_read(sqe, IOSQE_FIXED_FILE | IOSQE_ASYNC);
}

static void prepare_link(struct io_uring_sqe *sqe)
{
	prepare_read(sqe, IOSQE_FIXED_FILE | IOSQE_IO_LINK);
}

static void prepare_hardlink(struct io_uring_sqe *sqe)
{
	prepare_read(sqe, IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK);
}

static void prepare_drain(struct io_uring_sqe *sqe)
{
	prepare_read(sqe, IOSQE_FIXED_FILE | IOSQE_IO_DRAIN);
}

static void prepare_buffer_select(struct io_uring_sqe *sqe)
{
	prepare_read(sqe, IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT);
}

static const struct {
	const char *name;
	void (*prepare)(struct io_uring_sqe *);
} requests[] = {
    {"READ of a descriptor", prepare_plain_read},
    {"OPENAT", prepare_openat},
    {"STATX", prepare_statx},
    {"SOCKET", prepare_socket},
    {"CONNECT", prepare_connect},
    {"SEND", prepare_send},
    {"WRITE", prepare_write},
    {"NOP", prepare_nop},
    {"FIXED_FD_INSTALL", prepare_install},
    {"FILES_UPDATE", prepare_files_update},
    {"READ with ASYNC", prepare_async},
    {"READ with IO_LINK", prepare_link},
    {"READ with IO_HARDLINK", prepare_hardlink},
    {"READ with IO_DRAIN", prepare_drain},
    {"READ with BUFFER_SELECT", prepare_buffer_select},
};

#define REQUESTS (sizeof(requests) / sizeof(requests[0]))

static int submit(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int result;

	assert_int_equal(io_uring_submit_and_wait(ring, 1), 1);
	assert_int_equal(io_uring_peek_cqe(ring, &cqe), 0);
	result = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return result;
}

static void test_requests(void **state)
{
	(void)state;
	for (size_t i = 0; i < REQUESTS; i++) {
		int there, here;

		requests[i].prepare(next(&open_ring));
		there = submit(&open_ring);
		requests[i].prepare(next(&restricted.ring));
		here = submit(&restricted.ring);
		print_message("%-24s %4d, without restrictions %4d\n", requests[i].name, here,
			      there);
		assert_int_equal(here, -EACCES);
		assert_int_not_equal(there, -EACCES);
	}
}

/* Those as well of which nothing is known here. */
static void test_every_operation(void **state)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(&open_ring);

	(void)state;
	assert_non_null(probe);
	for (int opcode = 0; opcode < OPERATIONS; opcode++)
		for (int fixed = 0; fixed < 2 && opcode != IORING_OP_READ; fixed++) {
			bool there = io_uring_opcode_supported(probe, opcode);
			int result;

			reset(next(&restricted.ring), opcode, fixed ? IOSQE_FIXED_FILE : 0);
			result = submit(&restricted.ring);
			if (result != -EACCES && (there || result != -EINVAL))
				fail_msg("operation %d: %d", opcode, result);
		}
	assert_true(io_uring_opcode_supported(probe, IORING_OP_NOP));
	io_uring_free_probe(probe);
}

static int registration(const struct io_uring *ring, unsigned what, const void *arg, unsigned n)
{
	return syscall(SYS_io_uring_register, ring->ring_fd, what, arg, n) < 0 ? -errno : 0;
}

static void test_registrations(void **state)
{
	const struct iovec buffer = {bytes, sizeof(bytes)};
	struct io_uring_restriction all = {.opcode = IORING_RESTRICTION_SQE_OP,
					   .sqe_op = IORING_OP_OPENAT};
	const struct io_uring *ring = &restricted.ring;

	(void)state;
	assert_int_equal(registration(ring, IORING_REGISTER_BUFFERS, &buffer, 1), -EACCES);
	assert_int_equal(registration(ring, IORING_REGISTER_EVENTFD, &event, 1), -EACCES);
	assert_int_equal(registration(ring, IORING_REGISTER_RESTRICTIONS, &all, 1), -EACCES);
	assert_int_equal(registration(ring, IORING_REGISTER_ENABLE_RINGS, NULL, 0), -EACCES);
	assert_int_equal(registration(&open_ring, IORING_REGISTER_BUFFERS, &buffer, 1), 0);
	assert_int_equal(registration(&open_ring, IORING_REGISTER_EVENTFD, &event, 1), 0);
	/* The first twenty are in every kernel that we run on. */
	for (unsigned what = 0; what < REGISTRATIONS; what++) {
		int result = registration(ring, what, NULL, 0);

		if (what != IORING_REGISTER_FILES_UPDATE && result != -EACCES &&
		    (what <= IORING_REGISTER_IOWQ_MAX_WORKERS || result != -EINVAL))
			fail_msg("registration %u: %d", what, result);
	}
}

/* Behind all that it still does what it is there for, and nothing of what was tried took hold. */
static void test_reads(void **state)
{
	(void)state;
	prepare_read(next(&restricted.ring), IOSQE_FIXED_FILE);
	assert_int_equal(submit(&restricted.ring), 1);
	assert_int_equal(bytes[0], '\177');
	reader_remove(&restricted, 0);
	prepare_read(next(&restricted.ring), IOSQE_FIXED_FILE);
	assert_int_equal(submit(&restricted.ring), -EBADF);
}

/* 0; 77: the kernel lets nobody have a ring; 1: it does, but the reader has none. */
static int prepare(void)
{
	int err = io_uring_queue_init(4, &open_ring, 0);

	reader_open(&restricted, true);
	if (err) {
		printf("no io_uring here: %s\n", strerror(-err));
		return 77;
	}
	file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	event = eventfd(0, EFD_CLOEXEC);
	if (!restricted.uring || reader_add(&restricted, dup(file)) != 0 || !restricted.uring ||
	    io_uring_register_files(&open_ring, &file, 1)) {
		printf("there is io_uring, but not for the reader\n");
		return 1;
	}
	if (!restricted.suits[0]) {
		printf("this filesystem does not suit the ring\n");
		return 77;
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_requests),
	    cmocka_unit_test(test_every_operation),
	    cmocka_unit_test(test_registrations),
	    cmocka_unit_test(test_reads),
	};
	int err;

	alarm(60);
	err = prepare();
	return err ? err : cmocka_run_group_tests(tests, NULL, NULL);
}
