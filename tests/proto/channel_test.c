/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rule of proto/messages.h that channel_recv() enforces, against a peer that breaks it by raw
 * sendmsg(). After each test no descriptor more is open than before it.
 */
#define _GNU_SOURCE
#include "proto/channel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SURPLUS_FDS (MESSAGE_FDS_MAX + 8)

struct bench {
	int fds[2];	   /* [0] is self's end, [1] the peer's */
	struct channel in; /* self */
	int open_before;
};

static int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void bench_init(struct bench *b, enum role self, enum role peer, bool peer_running)
{
	b->open_before = open_fds();
	assert_int_equal(channel_pair(b->fds), 0);
	channel_init(&b->in, b->fds[0], self, peer, peer_running);
}

static void bench_fini(struct bench *b)
{
	close(b->fds[0]);
	if (b->fds[1] >= 0)
		close(b->fds[1]);
	assert_int_equal(open_fds(), b->open_before);
}

/* What a peer may do that does not care for our rules. */
static void raw_send(struct bench *b, const void *bytes, size_t len, size_t fds_n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * SURPLUS_FDS)];
	} control = {0};
	struct iovec part = {(void *)(uintptr_t)bytes, len};
	struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};

	if (fds_n) {
		struct cmsghdr *c = &control.align;

		packet.msg_control = &control;
		packet.msg_controllen = CMSG_SPACE(sizeof(int) * fds_n);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * fds_n);
		for (size_t i = 0; i < fds_n; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &b->fds[1], sizeof(int));
	}
	assert_int_equal(sendmsg(b->fds[1], &packet, MSG_NOSIGNAL), (ssize_t)len);
}

static void raw_message(struct bench *b, uint32_t type, uint32_t len_bytes, size_t payload,
			size_t fds_n)
{
	static uint8_t packet[sizeof(struct message) + 64];

	memcpy(packet, &type, 4);
	memcpy(packet + 4, &len_bytes, 4);
	raw_send(b, packet, 8 + payload, fds_n);
}

static int receive(struct bench *b)
{
	static struct message message;
	int fds[MESSAGE_FDS_MAX];
	size_t fds_n = 99;
	int err = channel_recv(&b->in, &message, fds, &fds_n);

	if (!err)
		for (size_t i = 0; i < fds_n; i++) {
			assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
			close(fds[i]);
		}
	return err;
}

static void test_round_trip(void **state)
{
	struct message_need_file need = {.file_id = 17};
	static struct message m;
	struct channel out;
	struct bench b;

	(void)state;
	bench_init(&b, ROLE_SAMPLER, ROLE_SYMBOLIZER, true);
	channel_init(&out, b.fds[1], ROLE_SYMBOLIZER, ROLE_SAMPLER, true);
	assert_int_equal(channel_recv(&b.in, &m, NULL, NULL), -EAGAIN);
	assert_int_equal(channel_send(&out, MESSAGE_NEED_FILE, &need, NULL, 0), 0);
	assert_int_equal(channel_recv(&b.in, &m, NULL, NULL), 0);
	assert_int_equal(m.type, MESSAGE_NEED_FILE);
	assert_int_equal(m.need_file.file_id, 17);
	close(b.fds[1]);
	b.fds[1] = -1;
	assert_int_equal(channel_recv(&b.in, &m, NULL, NULL), -EPIPE);
	bench_fini(&b);
}

static const uint32_t payload_bytes[MESSAGE_COUNT] = {
#define MESSAGE(NAME, from, to, payload, fds, when, rate)                                          \
	[MESSAGE_##NAME] = sizeof(struct message_##payload),
	MESSAGES(MESSAGE)
#undef MESSAGE
};

/* Every type of the list, honestly sent, arrives where it may; with its fds. */
static void test_every_message(void **state)
{
	static const struct {
		enum message_type type;
		enum role from, to;
		int fds;
		const char *when;
	} list[] = {
#define MESSAGE(NAME, from, to, payload, fds, when, rate)                                          \
	{MESSAGE_##NAME, ROLE_##from, ROLE_##to, fds, #when},
		MESSAGES(MESSAGE)
#undef MESSAGE
	};
	static uint8_t payload[sizeof(struct message)];

	(void)state;
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		enum role from = list[i].from == ROLE_ANY ? ROLE_SAMPLER : list[i].from;
		enum role to = list[i].to == ROLE_ANY ? ROLE_SAMPLER : list[i].to;
		int fds[MESSAGE_FDS_MAX] = {0};
		size_t n = list[i].fds < 0 ? 3 : (size_t)list[i].fds;
		struct channel out;
		struct bench b;

		bench_init(&b, to, from, strcmp(list[i].when, "START") != 0);
		channel_init(&out, b.fds[1], from, to, true);
		for (size_t k = 0; k < n; k++)
			fds[k] = b.fds[1];
		assert_int_equal(channel_send(&out, list[i].type, payload, fds, n), 0);
		assert_int_equal(receive(&b), 0);
		bench_fini(&b);
	}
}

static void test_wrong_length(void **state)
{
	const uint32_t right = sizeof(struct message_need_file);
	static const int off[] = {-8, -4, -1, 1, 4, 8};
	struct bench b;

	(void)state;
	bench_init(&b, ROLE_SAMPLER, ROLE_SYMBOLIZER, true);
	for (size_t i = 0; i < sizeof(off) / sizeof(*off); i++) {
		uint32_t wrong = right + (uint32_t)off[i];

		raw_message(&b, MESSAGE_NEED_FILE, wrong, wrong, 0); /* both say the same wrong */
		assert_int_equal(receive(&b), -EPROTO);
		raw_message(&b, MESSAGE_NEED_FILE, right, wrong, 0); /* the packet differs */
		assert_int_equal(receive(&b), -EPROTO);
		raw_message(&b, MESSAGE_NEED_FILE, wrong, right, 0); /* the header differs */
		assert_int_equal(receive(&b), -EPROTO);
	}
	for (size_t len = 0; len < 8; len++) {
		raw_send(&b, "\0\0\0\0\0\0\0\0", len, 0);
		assert_int_equal(receive(&b), -EPROTO);
	}
	raw_message(&b, MESSAGE_NEED_FILE, right, sizeof(struct message) + 16, 0); /* MSG_TRUNC */
	assert_int_equal(receive(&b), -EPROTO);
	raw_message(&b, MESSAGE_NEED_FILE, right, right, 0);
	assert_int_equal(receive(&b), 0);
	bench_fini(&b);
}

static void test_unknown_type(void **state)
{
	static const uint32_t types[] = {MESSAGE_NONE, MESSAGE_COUNT, MESSAGE_COUNT + 1, 0x7fffffff,
					 0x80000000, UINT32_MAX};
	struct bench b;

	(void)state;
	bench_init(&b, ROLE_SAMPLER, ROLE_SYMBOLIZER, true);
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		raw_message(&b, types[i], 8, 8, 0);
		assert_int_equal(receive(&b), -EPROTO);
		raw_message(&b, types[i], 8, 8, 2);
		assert_int_equal(receive(&b), -EPROTO);
	}
	bench_fini(&b);
}

/* Right in form, but not from this peer, or not to us. */
static void test_wrong_direction(void **state)
{
	static const struct {
		enum role self, peer;
		enum message_type type;
	} cases[] = {
		{ROLE_SAMPLER, ROLE_SYMBOLIZER, MESSAGE_RANGES},
		{ROLE_SAMPLER, ROLE_SYMBOLIZER, MESSAGE_DRAIN},
		{ROLE_SAMPLER, ROLE_SYMBOLIZER, MESSAGE_READY},
		{ROLE_BROKER, ROLE_SYMBOLIZER, MESSAGE_ASK_FILE},
		{ROLE_BROKER, ROLE_SYMBOLIZER, MESSAGE_NEED_FILE},
		{ROLE_SUPERVISOR, ROLE_SAMPLER, MESSAGE_LOADED},
		{ROLE_SUPERVISOR, ROLE_EXPORTER, MESSAGE_FINISH},
		{ROLE_SUPERVISOR, ROLE_VIEWER, MESSAGE_STATUS},
		{ROLE_SYMBOLIZER, ROLE_SAMPLER, MESSAGE_PROCESS_INFO},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t len = payload_bytes[cases[i].type];
		struct bench b;

		bench_init(&b, cases[i].self, cases[i].peer, true);
		raw_message(&b, cases[i].type, len, len, 0);
		assert_int_equal(receive(&b), -EPROTO);
		bench_fini(&b);
	}
}

static void test_surplus_and_missing_fds(void **state)
{
	const uint32_t need = sizeof(struct message_need_file), bpf = sizeof(struct message_bpf_fd);
	struct bench b;

	(void)state;
	bench_init(&b, ROLE_SAMPLER, ROLE_SYMBOLIZER, true);
	for (size_t n = 1; n <= SURPLUS_FDS; n += n < 4 ? 1 : 7) {
		raw_message(&b, MESSAGE_NEED_FILE, need, need, n);
		assert_int_equal(receive(&b), -EPROTO);
	}
	/* more than the control buffer holds: the kernel cuts, what came is closed */
	raw_message(&b, MESSAGE_NEED_FILE, need, need, SURPLUS_FDS);
	assert_int_equal(receive(&b), -EPROTO);
	/* fds on a packet without bytes, and where the caller takes none */
	raw_send(&b, "", 0, 1);
	assert_int_equal(receive(&b), -EPROTO);
	raw_message(&b, MESSAGE_NEED_FILE, need, need, 1);
	assert_int_equal(channel_recv(&b.in, &(struct message){0}, NULL, NULL), -EPROTO);
	bench_fini(&b);

	bench_init(&b, ROLE_SUPERVISOR, ROLE_LOADER, true);
	raw_message(&b, MESSAGE_BPF_FD, bpf, bpf, 0);
	assert_int_equal(receive(&b), -EPROTO);
	raw_message(&b, MESSAGE_BPF_FD, bpf, bpf, 2);
	assert_int_equal(receive(&b), -EPROTO);
	raw_message(&b, MESSAGE_BPF_FD, bpf, bpf, 1);
	assert_int_equal(receive(&b), 0);
	bench_fini(&b);
}

/* Any number is allowed, but not more than fit. */
static void test_truncated_control(void **state)
{
	const uint32_t len = sizeof(struct message_file);
	struct bench b;

	(void)state;
	bench_init(&b, ROLE_SYMBOLIZER, ROLE_BROKER, true);
	raw_message(&b, MESSAGE_FILE, len, len, MESSAGE_FDS_MAX);
	assert_int_equal(receive(&b), 0);
	raw_message(&b, MESSAGE_FILE, len, len, MESSAGE_FDS_MAX + 1);
	assert_int_equal(receive(&b), -EPROTO);
	bench_fini(&b);
}

static void test_phases(void **state)
{
	const uint32_t empty = sizeof(struct message_empty);
	struct bench b;

	(void)state;
	bench_init(&b, ROLE_SUPERVISOR, ROLE_SAMPLER, false);
	raw_message(&b, MESSAGE_DRAINED, empty, empty, 0); /* before READY */
	assert_int_equal(receive(&b), -EPROTO);
	raw_message(&b, MESSAGE_READY, empty, empty, 0);
	assert_int_equal(receive(&b), 0);
	raw_message(&b, MESSAGE_DRAINED, empty, empty, 0);
	assert_int_equal(receive(&b), 0);
	raw_message(&b, MESSAGE_READY, empty, empty, 0); /* once */
	assert_int_equal(receive(&b), -EPROTO);
	bench_fini(&b);
}

/* A burst of twice the rate, then the rate, and no more. */
static void test_frequency(void **state)
{
	const uint32_t len = sizeof(struct message_need_file);
	int accepted = 0, more = 0;
	struct bench b;

	(void)state;
	bench_init(&b, ROLE_SAMPLER, ROLE_SYMBOLIZER, true);
	for (int i = 0; i < 3000; i++) {
		raw_message(&b, MESSAGE_NEED_FILE, len, len, 0);
		accepted += receive(&b) == 0;
	}
	assert_in_range(accepted, 400, 700); /* 400 + 200/s of a loop of at most 1.5 s */
	usleep(300000);
	for (int i = 0; i < 1000; i++) {
		raw_message(&b, MESSAGE_NEED_FILE, len, len, 0);
		more += receive(&b) == 0;
	}
	assert_in_range(more, 40, 400); /* the rate again, not the burst */
	bench_fini(&b);
}

/* A peer that does not read: the sender gets -EAGAIN and goes on. */
static void test_full_socket(void **state)
{
	static struct message_ranges ranges;
	struct channel out;
	struct bench b;
	int sent = 0, err;

	(void)state;
	bench_init(&b, ROLE_SAMPLER, ROLE_BROKER, true);
	channel_init(&out, b.fds[1], ROLE_BROKER, ROLE_SAMPLER, true);
	while ((err = channel_send(&out, MESSAGE_RANGES, &ranges, NULL, 0)) == 0 && sent < 100000)
		sent++;
	assert_int_equal(err, -EAGAIN);
	assert_true(sent > 1);
	while (sent-- > 0)
		assert_int_equal(receive(&b), 0);
	assert_int_equal(receive(&b), -EAGAIN);
	close(b.fds[0]);
	assert_int_equal(channel_send(&out, MESSAGE_RANGES, &ranges, NULL, 0), -EPIPE);
	b.fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	bench_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_every_message),
		cmocka_unit_test(test_wrong_length),
		cmocka_unit_test(test_unknown_type),
		cmocka_unit_test(test_wrong_direction),
		cmocka_unit_test(test_surplus_and_missing_fds),
		cmocka_unit_test(test_truncated_control),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_frequency),
		cmocka_unit_test(test_full_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
