/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that are started by inits of their own, as in containers: the supervisor's half is the real
 * one (control.c, watch.c), the inits are init_main() in pid namespaces, the roles are fake.c.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/control.h"
#include "supervisor/init.h"
#include "supervisor/log.h"
#include "supervisor/watch.h"
#include "supervisor/wiring.h"
#include "tests/supervisor/standin.h"

#define UID_BASE 61000
#define STUCK_MS 1000

static char directory[] = "/tmp/init-test-XXXXXX";
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static struct config *config;
static int epoll_fd;
static int messages[SLOT_COUNT][MESSAGE_COUNT];

static void on_message(int slot, const struct message *message, const int *fds, size_t fds_n)
{
	(void)fds;
	assert_int_equal(fds_n, 0);
	messages[slot][message->type]++;
}

static void (*const on_event[])(uint32_t index, uint32_t generation) = {
	[EVENT_CONTROL] = control_accept,
	[EVENT_CLIENT] = control_event,
	[EVENT_PROCESS] = watch_on_process,
	[EVENT_CHANNEL] = watch_on_channel,
};

static void turn(void)
{
	struct epoll_event events[32];
	int n = epoll_wait(epoll_fd, events, 32, 10);

	for (int i = 0; i < n; i++)
		on_event[events[i].data.u64 >> 16 & 0xffff](events[i].data.u64 & 0xffff,
							    (uint32_t)(events[i].data.u64 >> 32));
	watch_tick();
}

/* Until it is so, at most 15 s: the machine may be slow. */
#define run_until(condition)                                                                       \
	do {                                                                                       \
		uint64_t end_ns = watch_now_ns() + 15000000000ull;                                 \
		while (!(condition) && watch_now_ns() < end_ns)                                    \
			turn();                                                                    \
		assert_true(condition);                                                            \
	} while (0)

static void begin(const char *behaviour, uint32_t workers)
{
	struct segment segment;

	assert_int_equal(segment_create(&segment, "config", sizeof(*config)), 0);
	config = segment_map(segment.rw, sizeof(*config), 1);
	config_defaults(config, MODE_RUN);
	config->containers = true;
	config->stuck_ms = STUCK_MS;
	config->uid_base = UID_BASE;
	config->workers = workers;
	snprintf(config->run_dir, sizeof(config->run_dir), "%s", behaviour);
	close(segment.rw);
	wiring_give(OBJECT_CONFIG, 0, SIDE_RO, segment.ro);
	wiring_give(OBJECT_SECRETS, 0, SIDE_RO, dup(segment.ro));
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	watch_init(epoll_fd, config, on_message);
	control_init(config);
	memset(messages, 0, sizeof(messages));
	assert_int_equal(wiring_create(config), 0);
}

static void become(int slot)
{
	uid_t uid = UID_BASE + (uid_t)slot;

	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		_exit(9);
}

/* An init that is pid 1 of a namespace, as in a container. */
static pid_t start_init(int slot)
{
	char worker[12];
	char *argv[] = {(char *)"sconce-supervisor", (char *)"--role",
			(char *)(uintptr_t)role_name(slot_role(slot)), (char *)"--worker", worker,
			(char *)"--run-dir", directory};
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	alarm(60);
	snprintf(worker, sizeof(worker), "%d", slot - ROLE_SYMBOLIZER);
	close_range(3, ~0u, 0);
	become(slot);
	if (chdir(directory))
		_exit(9);
	_exit(init_main(7, argv));
}

static void end_init(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void end(void)
{
	run_until(watch_stop());
	close(epoll_fd);
}

/* The process that this init has, as we count. */
static pid_t child_of(pid_t init)
{
	char path[64], line[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", init, init);
	file = fopen(path, "r");
	if (!file || !fgets(line, sizeof(line), file))
		line[0] = 0;
	if (file)
		fclose(file);
	return atoi(line);
}

static void one_is_started_when_it_is_there(void **state)
{
	struct slot *viewer = watch_slot(ROLE_VIEWER), *sampler = watch_slot(ROLE_SAMPLER);
	pid_t inits[2];

	(void)state;
	/* With eight workers its descriptors do not fit into one message. */
	begin("", WORKERS_MAX);
	watch_start(ROLE_VIEWER);
	watch_start(ROLE_SAMPLER);
	assert_int_equal(viewer->state, SLOT_WAITING);
	inits[0] = start_init(ROLE_VIEWER);
	inits[1] = start_init(ROLE_SAMPLER);
	run_until(messages[ROLE_VIEWER][MESSAGE_READY] && messages[ROLE_SAMPLER][MESSAGE_READY]);
	assert_int_equal(viewer->state, SLOT_RUNNING);
	assert_int_equal(viewer->restarts + sampler->restarts, 0);
	end();
	end_init(inits[0]);
	end_init(inits[1]);
}

static void one_that_waits_is_not_started_before_its_turn(void **state)
{
	pid_t init;

	(void)state;
	begin("", 1);
	init = start_init(SLOT_WORKER(0));
	run_until(watch_slot(SLOT_WORKER(0))->offered);
	assert_int_equal(watch_slot(SLOT_WORKER(0))->state, SLOT_OFF);
	watch_start(SLOT_WORKER(0));
	run_until(messages[SLOT_WORKER(0)][MESSAGE_READY] == 1);
	end();
	end_init(init);
}

static void a_killed_process_is_back_in_the_same_container(void **state)
{
	pid_t init, pid;

	(void)state;
	begin("", 1);
	watch_start(ROLE_EXPORTER);
	init = start_init(ROLE_EXPORTER);
	run_until(messages[ROLE_EXPORTER][MESSAGE_READY] == 1);
	pid = child_of(init);
	kill(pid, SIGKILL);
	run_until(messages[ROLE_EXPORTER][MESSAGE_READY] == 2);
	assert_int_not_equal(child_of(init), pid);
	assert_int_equal(watch_slot(ROLE_EXPORTER)->restarts, 1);
	end();
	end_init(init);
}

static void a_killed_container_takes_its_process_with_it(void **state)
{
	struct slot *s = watch_slot(ROLE_EXPORTER);
	pid_t init;

	(void)state;
	begin("", 1);
	watch_start(ROLE_EXPORTER);
	init = start_init(ROLE_EXPORTER);
	run_until(messages[ROLE_EXPORTER][MESSAGE_READY] == 1);
	end_init(init);
	run_until(s->state == SLOT_WAITING && s->pid == 0);
	init = start_init(ROLE_EXPORTER);
	run_until(messages[ROLE_EXPORTER][MESSAGE_READY] == 2);
	end();
	end_init(init);
}

/* It does not look at its channel: only the init can have done it. */
static void the_init_kills_when_the_channel_is_shut(void **state)
{
	pid_t init, pid;

	(void)state;
	begin("viewer=hang", 1);
	watch_start(ROLE_VIEWER);
	init = start_init(ROLE_VIEWER);
	run_until(messages[ROLE_VIEWER][MESSAGE_READY] == 1);
	pid = child_of(init);
	shutdown(watch_slot(ROLE_VIEWER)->channel.fd, SHUT_WR);
	run_until(messages[ROLE_VIEWER][MESSAGE_READY] == 2);
	assert_int_equal(kill(pid, 0), -1);
	/* That one shows no sign of life either. */
	run_until(watch_slot(ROLE_VIEWER)->restarts == 2);
	end();
	end_init(init);
}

static void one_that_does_not_die_is_abandoned(void **state)
{
	struct slot *s = watch_slot(SLOT_WORKER(0));
	struct stat before, after;
	pid_t init, tracer;

	(void)state;
	begin("", 1);
	watch_start(SLOT_WORKER(0));
	init = start_init(SLOT_WORKER(0));
	run_until(messages[SLOT_WORKER(0)][MESSAGE_READY] == 1);
	/* It stops before it has let go of anything. */
	tracer = standin_hold(child_of(init), PTRACE_O_TRACEEXIT);
	fstat(wiring_fd(OBJECT_SAMPLES, 0, SIDE_RW), &before);
	watch_kill(SLOT_WORKER(0), "test");
	run_until(messages[SLOT_WORKER(0)][MESSAGE_READY] == 2);
	assert_int_equal(s->abandoned, 1);
	fstat(wiring_fd(OBJECT_SAMPLES, 0, SIDE_RW), &after);
	assert_int_not_equal(before.st_ino, after.st_ino);
	/* It has ended by now, and nobody takes that for the death of the other one. */
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	for (int i = 0; i < 50; i++)
		turn();
	assert_int_equal(s->state, SLOT_RUNNING);
	end();
	end_init(init);
}

/* What a stranger may do: connect as `uid` and offer itself. The connection. */
static int offer_as(uid_t uid, int slot)
{
	struct message_offer offer = {.pid = 1};
	struct channel channel;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), pidfd, status;
	pid_t pid = fork();

	if (pid == 0) {
		if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ||
		    connect(fd, (struct sockaddr *)&address, sizeof(address)))
			_exit(2);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	channel_init(&channel, fd, slot_role(slot), ROLE_SUPERVISOR, true);
	channel_send(&channel, MESSAGE_OFFER, &offer, &pidfd, 1);
	close(pidfd);
	return fd;
}

static int hung_up(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void strangers_and_doubles_are_hung_up_on(void **state)
{
	struct slot *s = watch_slot(ROLE_VIEWER);
	int stranger, twin;
	pid_t init;

	(void)state;
	begin("", 1);
	watch_start(ROLE_VIEWER);
	stranger = offer_as(1000, ROLE_VIEWER);
	run_until(hung_up(stranger));
	assert_int_equal(s->offered, 0);
	init = start_init(ROLE_VIEWER);
	run_until(messages[ROLE_VIEWER][MESSAGE_READY] == 1);
	twin = offer_as(UID_BASE + ROLE_VIEWER, ROLE_VIEWER);
	run_until(hung_up(twin));
	assert_int_equal(s->offered, 0);
	assert_int_equal(s->state, SLOT_RUNNING);
	close(stranger);
	close(twin);
	end();
	end_init(init);
}

static void nobody_is_who_there_is_not(void **state)
{
	static const char *const wrong[][4] = {{"--role", "nobody", "--worker", "0"},
					       {"--role", "symbolizer", "--worker", "8"},
					       {"--role", "symbolizer", "--worker", "-6"},
					       {"--worker", "1", "--run-dir", "/tmp"}};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char *argv[5] = {(char *)"sconce-supervisor"};
		int status;
		pid_t pid;

		memcpy(argv + 1, wrong[i], sizeof(wrong[i]));
		pid = fork();
		if (pid == 0) {
			alarm(20);
			dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
			_exit(init_main(5, argv) ? 9 : 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	}
}

static int copy_fake(void)
{
	char self[PATH_MAX], command[PATH_MAX + 128];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n] = 0;
	*strrchr(self, '/') = 0;
	for (int slot = ROLE_LOADER; slot <= ROLE_SYMBOLIZER; slot++) {
		snprintf(command, sizeof(command), "cp %s/fake %s/sconce-%s", self, directory,
			 role_name(slot_role(slot)));
		if (system(command))
			return -1;
	}
	return 0;
}

static int setup(void **state)
{
	int fd;

	(void)state;
	if (geteuid() != 0) {
		puts("needs root");
		exit(77);
	}
	/* Nothing of ours stands where the supervisor looks for its own. */
	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd < FD_SUPERVISOR_BINARIES);
	if (!mkdtemp(directory) || chmod(directory, 0755) || copy_fake())
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", directory,
		 RUN_CONTROL_SOCKET);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    chmod(address.sun_path, 0666) || listen(fd, 16))
		return -1;
	dup2(fd, FD_SUPERVISOR_CONTROL);
	close(fd);
	log_init(ROLE_SUPERVISOR, LOG_ERROR);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_is_started_when_it_is_there),
		cmocka_unit_test(one_that_waits_is_not_started_before_its_turn),
		cmocka_unit_test(a_killed_process_is_back_in_the_same_container),
		cmocka_unit_test(a_killed_container_takes_its_process_with_it),
		cmocka_unit_test(the_init_kills_when_the_channel_is_shut),
		cmocka_unit_test(one_that_does_not_die_is_abandoned),
		cmocka_unit_test(strangers_and_doubles_are_hung_up_on),
		cmocka_unit_test(nobody_is_who_there_is_not),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
