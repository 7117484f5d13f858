/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sconce-loader as the supervisor sees it: everything it hands over arrives, once, and works; what
 * goes wrong comes as an error number and a text that says what to do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include <cmocka.h>

#include "bpf/tables.h"
#include "proto/channel.h"
#include "proto/config.h"
#include "proto/fds.h"
#include "shm/segment.h"

#define FDS_MAX 256
#define STRANGER_UID 61002

/* How the loader is run. */
struct setup {
	uid_t uid;	   /* 0 = stay root */
	uint32_t caps[2];  /* kept with another uid */
	int send_buffer;   /* 0 = as it is */
	int chunks;	   /* 0 = none: the map of chunks */
};

struct handed {
	struct message_bpf_fd what[FDS_MAX];
	int fd[FDS_MAX];
	size_t n;
	size_t of[BPF_OBJECT_COUNT];
	struct message_loaded loaded;
	int loaded_n;
	int exit_status;
};

static struct config config;
static struct handed handed;

static void config_init(bool all)
{
	config_defaults(&config, MODE_RECORD);
	config.all = all;
	config.targets_n = !all;
	config.targets[0] = getpid();
	config.runtime.cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
}

/* Beside the folders of the tests. */
static void loader_path(char *path)
{
	char self[PATH_MAX] = "";

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(path, PATH_MAX, "%s/../../sconce-loader", dirname(self));
}

static void become(const struct setup *setup)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {0};

	if (!setup->uid)
		return;
	for (int i = 0; i < 2; i++)
		data[i].effective = data[i].permitted = data[i].inheritable = setup->caps[i];
	if (prctl(PR_SET_KEEPCAPS, 1) || setresgid(setup->uid, setup->uid, setup->uid) ||
	    setresuid(setup->uid, setup->uid, setup->uid) || syscall(SYS_capset, &header, data))
		_exit(101);
	for (int cap = 0; cap < 64; cap++)
		if (setup->caps[cap / 32] & (1u << (cap % 32)))
			if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0))
				_exit(102);
}

static pid_t loader_start(const struct setup *setup, int channel_fd, int config_fd)
{
	static char *argv[] = {"sconce-loader", "2", NULL};
	char path[PATH_MAX];
	pid_t pid;
	int binary;

	loader_path(path);
	pid = fork();
	if (pid)
		return pid;
	/* Both are above the numbers that they go to. */
	if (dup2(channel_fd, FD_SUPERVISOR) < 0 || dup2(config_fd, FD_CONFIG) < 0)
		_exit(100);
	if (setup->chunks && dup2(setup->chunks, FD_LOADER_CHUNKS) < 0)
		_exit(104);
	/* Opened first: the build folder may be closed to the uid that it becomes. */
	binary = open(path, O_PATH | O_CLOEXEC);
	become(setup);
	/* Confined, it cannot be stopped to be searched for leaks. */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	fexecve(binary, argv, environ);
	_exit(103);
}

/* Take what is there. -EAGAIN: more may come; -EPIPE: the loader is gone. */
static int handed_take(struct channel *channel)
{
	struct message message;
	int fds[MESSAGE_FDS_MAX], err;
	size_t fds_n;

	while ((err = channel_recv(channel, &message, fds, &fds_n)) == 0) {
		/* LOADED is the last. */
		assert_int_equal(handed.loaded_n, 0);
		if (message.type == MESSAGE_LOADED) {
			handed.loaded = message.loaded;
			handed.loaded_n++;
			continue;
		}
		assert_int_equal(message.type, MESSAGE_BPF_FD);
		assert_in_range(message.bpf_fd.object, 0, BPF_OBJECT_COUNT - 1);
		assert_true(handed.n < FDS_MAX);
		handed.of[message.bpf_fd.object]++;
		handed.what[handed.n] = message.bpf_fd;
		handed.fd[handed.n++] = fds[0];
	}
	return err;
}

static void handed_close(void)
{
	while (handed.n)
		close(handed.fd[--handed.n]);
	memset(&handed, 0, sizeof(handed));
}

/* Run the loader with `config` and take what it hands over. */
static void loader_run(const struct setup *setup)
{
	struct segment segment;
	struct channel channel;
	int pair[2], high[2], status;
	struct pollfd readable;
	void *map;
	pid_t pid;

	handed_close();
	assert_int_equal(segment_create(&segment, "config", sizeof(config)), 0);
	map = segment_map(segment.rw, sizeof(config), 1);
	assert_non_null(map);
	memcpy(map, &config, sizeof(config));
	assert_int_equal(channel_pair(pair), 0);
	if (setup->send_buffer)
		assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &setup->send_buffer,
					    sizeof(setup->send_buffer)), 0);
	high[0] = fcntl(pair[1], F_DUPFD_CLOEXEC, 50);
	high[1] = fcntl(segment.ro, F_DUPFD_CLOEXEC, 50);
	pid = loader_start(setup, high[0], high[1]);
	close(high[0]);
	close(high[1]);
	close(pair[1]);
	channel_init(&channel, pair[0], ROLE_SUPERVISOR, ROLE_LOADER, false);
	readable = (struct pollfd){.fd = pair[0], .events = POLLIN};
	while (poll(&readable, 1, 10000) == 1 && handed_take(&channel) == -EAGAIN) {
		/* A reader that is not quick. */
		if (setup->send_buffer)
			nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	handed.exit_status = status;
	close(pair[0]);
	segment_close(&segment);
}

static void skip_unless_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("skipped: loading BPF needs root\n");
	skip();
}

static void assert_loaded(size_t links)
{
	size_t online = (size_t)sysconf(_SC_NPROCESSORS_ONLN);

	if (handed.loaded.error)
		print_message("loader: %s\n", handed.loaded.text);
	assert_int_equal(handed.loaded_n, 1);
	assert_int_equal(handed.loaded.error, 0);
	assert_int_equal(handed.exit_status, 0);
	assert_true(handed.loaded.program_insns > 0);
	for (int object = BPF_EVENTS; object <= BPF_TARGETS; object++)
		assert_int_equal(handed.of[object], 1);
	assert_int_equal(handed.of[BPF_SAMPLING], online);
	assert_int_equal(handed.of[BPF_SIDEBAND], online);
	assert_int_equal(handed.of[BPF_LINK], links);
	for (int object = BPF_FILES; object <= BPF_CHUNK; object++)
		assert_int_equal(handed.of[object], 1);
}

static int handed_fd(enum kernel_object object)
{
	for (size_t i = 0; i < handed.n; i++)
		if (handed.what[i].object == object)
			return handed.fd[i];
	return -1;
}

/* The id of the chunk of this number; 0 = there is none. */
static uint32_t chunk_id(int chunks, uint32_t number)
{
	uint32_t id = 0;
	union bpf_attr attr = {.map_fd = (uint32_t)chunks,
			       .key = (uint64_t)(uintptr_t)&number,
			       .value = (uint64_t)(uintptr_t)&id};

	return syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr)) ? 0 : id;
}

static void assert_refused(int error, const char *advice)
{
	assert_int_equal(handed.loaded_n, 1);
	assert_int_equal(handed.exit_status, 0);
	assert_int_equal(handed.loaded.error, error);
	print_message("%s\n", handed.loaded.text);
	assert_non_null(strstr(handed.loaded.text, advice));
}

static void test_hands_over_everything(void **state)
{
	(void)state;
	skip_unless_root();
	config_init(true);
	loader_run(&(struct setup){0});
	assert_loaded(0);
	/* The events outlive the loader, with their program. */
	for (size_t i = 0; i < handed.n; i++) {
		if (handed.what[i].object != BPF_SAMPLING)
			continue;
		assert_int_equal(ioctl(handed.fd[i], PERF_EVENT_IOC_ENABLE, 0), 0);
		assert_int_equal(ioctl(handed.fd[i], PERF_EVENT_IOC_DISABLE, 0), 0);
	}
	handed_close();
}

static void test_links_follow_the_filter(void **state)
{
	(void)state;
	skip_unless_root();
	config_init(false);
	loader_run(&(struct setup){0});
	assert_loaded(2);
	config.follow = false;
	loader_run(&(struct setup){0});
	assert_loaded(1);
	handed_close();
}

static void test_waits_for_a_slow_reader(void **state)
{
	(void)state;
	skip_unless_root();
	config_init(true);
	loader_run(&(struct setup){.send_buffer = 1});
	assert_loaded(0);
	handed_close();
}

static void test_adds_a_chunk(void **state)
{
	struct setup setup = {.uid = STRANGER_UID, .caps = {0, 1u << (CAP_BPF - 32)}};
	uint32_t first;

	(void)state;
	skip_unless_root();
	config_init(true);
	loader_run(&(struct setup){0});
	assert_loaded(0);
	setup.chunks = fcntl(handed_fd(BPF_CHUNKS), F_DUPFD_CLOEXEC, 50);
	first = chunk_id(setup.chunks, 0);
	assert_int_not_equal(first, 0);
	for (config.runtime.chunks = 1; config.runtime.chunks < 16; config.runtime.chunks++) {
		assert_int_equal(chunk_id(setup.chunks, config.runtime.chunks), 0);
		loader_run(&setup);
		assert_int_equal(handed.loaded.error, 0);
		assert_int_equal(handed.n, 1);
		assert_int_equal(handed.of[BPF_CHUNK], 1);
		assert_int_not_equal(chunk_id(setup.chunks, config.runtime.chunks), 0);
		assert_non_null(segment_map(handed.fd[0], TABLES_CHUNK_BYTES, 1));
	}
	/* No more than was agreed upon at the start. */
	loader_run(&setup);
	assert_refused(E2BIG, "unwind tables");
	assert_int_equal(chunk_id(setup.chunks, 0), first);
	close(setup.chunks);
	handed_close();
}

#define LOW(cap) (1u << (cap))
#define HIGH(cap) (1u << ((cap) - 32))

static void test_needs_three_capabilities_and_no_root(void **state)
{
	struct setup setup = {
		.uid = STRANGER_UID,
		.caps = {LOW(CAP_SYS_ADMIN), HIGH(CAP_BPF) | HIGH(CAP_PERFMON)},
	};

	(void)state;
	skip_unless_root();
	config_init(true);
	loader_run(&setup);
	assert_loaded(0);
	handed_close();
}

static void test_says_what_right_is_missing(void **state)
{
	struct setup setup = {.uid = STRANGER_UID};

	(void)state;
	skip_unless_root();
	config_init(true);
	loader_run(&setup);
	assert_refused(EPERM, "CAP_BPF");
	assert_int_equal(handed.n, 0);
}

static void test_says_what_setting_is_wrong(void **state)
{
	(void)state;
	config_init(true);
	config.ring_bytes = 5000;
	loader_run(&(struct setup){0});
	assert_refused(EINVAL, "5000 bytes");
	config_init(true);
	config.runtime.cpus = 0;
	loader_run(&(struct setup){0});
	assert_refused(EINVAL, "0 cpus");
	assert_int_equal(handed.n, 0);
}

/* More memory than there is, or than the kernel gives: an error, not half a start. */
static void test_says_when_maps_do_not_fit(void **state)
{
	(void)state;
	skip_unless_root();
	config_init(true);
	config.processes_max = UINT32_MAX;
	loader_run(&(struct setup){0});
	assert_int_not_equal(handed.loaded.error, 0);
	assert_refused(handed.loaded.error, "procs");
	assert_int_equal(handed.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hands_over_everything),
		cmocka_unit_test(test_links_follow_the_filter),
		cmocka_unit_test(test_waits_for_a_slow_reader),
		cmocka_unit_test(test_needs_three_capabilities_and_no_root),
		cmocka_unit_test(test_says_what_right_is_missing),
		cmocka_unit_test(test_says_what_setting_is_wrong),
		cmocka_unit_test(test_says_when_maps_do_not_fit),
		cmocka_unit_test(test_adds_a_chunk),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
