/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of processes, with tests/supervisor/fake.c in place of every role: restart and back-off,
 * standing still, breaking the protocol, not dying, draining.
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
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/record.h"
#include "supervisor/drain.h"
#include "supervisor/log.h"
#include "supervisor/watch.h"
#include "supervisor/wiring.h"
#include "tests/supervisor/standin.h"

#define STUCK_MS 1000

static char directory[] = "/tmp/watch-test-XXXXXX";
static struct config *config;
static int epoll_fd;
static int messages[SLOT_COUNT][MESSAGE_COUNT];

static void on_message(int slot, const struct message *message, const int *fds, size_t fds_n)
{
	(void)fds;
	assert_int_equal(fds_n, 0);
	messages[slot][message->type]++;
	if (message->type == MESSAGE_DRAINED)
		watch_slot(slot)->drained = true;
}

static void turn(void)
{
	struct epoll_event events[32];
	int n = epoll_wait(epoll_fd, events, 32, 10);

	for (int i = 0; i < n; i++) {
		uint32_t slot = events[i].data.u64 & 0xffff;
		uint32_t generation = (uint32_t)(events[i].data.u64 >> 32);

		if ((events[i].data.u64 >> 16 & 0xffff) == EVENT_PROCESS)
			watch_on_process(slot, generation);
		else
			watch_on_channel(slot, generation);
	}
	watch_tick();
}

static void run_ms(uint64_t ms)
{
	uint64_t end = watch_now_ns() + ms * 1000000;

	while (watch_now_ns() < end)
		turn();
}

/* Until it is so, at most 15 s: the machine may be slow. */
#define run_until(condition) run_until_ms(15000, condition)
#define run_until_ms(ms, condition)                                                                \
	do {                                                                                       \
		uint64_t end_ns = watch_now_ns() + (ms) * 1000000ull;                              \
		while (!(condition) && watch_now_ns() < end_ns)                                    \
			turn();                                                                    \
		assert_true(condition);                                                            \
	} while (0)

static int begin(const char *behaviour)
{
	struct segment segment;

	if (segment_create(&segment, "config", sizeof(*config)))
		return -1;
	config = segment_map(segment.rw, sizeof(*config), 1);
	config_defaults(config, MODE_RUN);
	config->stuck_ms = STUCK_MS;
	config->uid_base = 61000;
	snprintf(config->run_dir, sizeof(config->run_dir), "%s", behaviour);
	close(segment.rw);
	wiring_give(OBJECT_CONFIG, 0, SIDE_RO, segment.ro);
	wiring_give(OBJECT_SECRETS, 0, SIDE_RO, dup(segment.ro));
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	watch_init(epoll_fd, config, on_message);
	memset(messages, 0, sizeof(messages));
	return wiring_create(config);
}

static void end(void)
{
	run_until(watch_stop());
	close(epoll_fd);
}

static void a_working_process_is_left_alone(void **state)
{
	pid_t pid;

	(void)state;
	assert_int_equal(begin(""), 0);
	watch_start(ROLE_VIEWER);
	watch_start(SLOT_WORKER(0));
	pid = watch_slot(ROLE_VIEWER)->pid;
	run_until(messages[ROLE_VIEWER][MESSAGE_READY] == 1);
	run_ms(2 * STUCK_MS);
	assert_int_equal(watch_slot(ROLE_VIEWER)->pid, pid);
	assert_int_equal(watch_slot(SLOT_WORKER(0))->restarts, 0);
	end();
	assert_int_equal(kill(pid, 0), -1);
}

/* 0, 100, 200, 400, 800 ms between the starts: five within 1.5 s, and not many more ever. */
static void one_that_exits_is_started_with_back_off(void **state)
{
	uint64_t begun = watch_now_ns();

	(void)state;
	assert_int_equal(begin("broker=exit"), 0);
	watch_start(ROLE_BROKER);
	run_until(watch_slot(ROLE_BROKER)->restarts == 5);
	assert_true(watch_now_ns() - begun > 700000000ull);
	end();
}

static void a_killed_one_is_back_at_once(void **state)
{
	struct slot *s = watch_slot(ROLE_EXPORTER);
	pid_t pid;

	(void)state;
	assert_int_equal(begin(""), 0);
	watch_start(ROLE_EXPORTER);
	run_until(messages[ROLE_EXPORTER][MESSAGE_READY] == 1);
	pid = s->pid;
	kill(pid, SIGKILL);
	run_until(messages[ROLE_EXPORTER][MESSAGE_READY] == 2);
	assert_int_not_equal(s->pid, pid);
	assert_int_equal(s->restarts, 1);
	end();
}

static void one_that_hangs_is_replaced(void **state)
{
	(void)state;
	assert_int_equal(begin("viewer=hang exporter=stop"), 0);
	watch_start(ROLE_VIEWER);
	watch_start(ROLE_EXPORTER);
	run_ms(STUCK_MS / 2);
	assert_int_equal(watch_slot(ROLE_VIEWER)->restarts, 0);
	run_until(watch_slot(ROLE_VIEWER)->restarts == 1 &&
		  watch_slot(ROLE_EXPORTER)->restarts == 1);
	end();
}

/* A turn takes a fifth of STUCK_MS of CPU time; with ten others on its CPU twice STUCK_MS go by. */
static void who_waits_for_a_cpu_does_not_stand_still(void **state)
{
	struct slot *slow = watch_slot(ROLE_VIEWER), *spin = watch_slot(ROLE_EXPORTER);
	pid_t others[9];
	cpu_set_t all, one;

	(void)state;
	assert_int_equal(begin("viewer=slow exporter=spin"), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	for (int cpu = 0; !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	for (int i = 0; i < 9; i++) {
		others[i] = fork();
		if (others[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			sched_setaffinity(0, sizeof(one), &one);
			for (;;)
				;
		}
	}
	watch_start(ROLE_VIEWER);
	watch_start(ROLE_EXPORTER);
	sched_setaffinity(slow->pid, sizeof(one), &one);
	sched_setaffinity(spin->pid, sizeof(one), &one);
	run_until_ms(100000, spin->restarts == 1 && slow->turns >= 4);
	assert_int_equal(slow->restarts, 0);
	for (int i = 0; i < 9; i++) {
		kill(others[i], SIGKILL);
		waitpid(others[i], NULL, 0);
	}
	end();
}

/* It turns, but there is no channel any more by which to tell it anything. */
static void one_that_hangs_up_is_replaced(void **state)
{
	(void)state;
	assert_int_equal(begin("symbolizer=hang-up"), 0);
	watch_start(SLOT_WORKER(0));
	run_until(watch_slot(SLOT_WORKER(0))->restarts == 1);
	end();
}

/* All are started anew, on new sockets; the processes and what they have counted go on. */
static void all_can_be_replaced(void **state)
{
	int old;

	(void)state;
	assert_int_equal(begin(""), 0);
	watch_start(ROLE_BROKER);
	watch_start(SLOT_WORKER(0));
	run_until(messages[ROLE_BROKER][MESSAGE_READY] && messages[SLOT_WORKER(0)][MESSAGE_READY]);
	old = wiring_fd(OBJECT_BROKER_WORKER, 0, SIDE_A);
	shutdown(old, SHUT_RDWR);
	watch_replace_all();
	run_until(messages[ROLE_BROKER][MESSAGE_READY] == 2 &&
		  messages[SLOT_WORKER(0)][MESSAGE_READY] == 2);
	assert_int_equal(send(wiring_fd(OBJECT_BROKER_WORKER, 0, SIDE_A), "x", 1, MSG_NOSIGNAL), 1);
	end();
}

/* It turns, but takes nothing out of its queue. */
static void a_worker_without_progress_is_replaced(void **state)
{
	struct record_header record = {.len_bytes = sizeof(record)};
	struct queue queue;

	(void)state;
	assert_int_equal(begin(""), 0);
	watch_start(SLOT_WORKER(0));
	run_ms(2 * STUCK_MS);
	assert_int_equal(watch_slot(SLOT_WORKER(0))->restarts, 0);
	assert_int_equal(queue_open_producer(&queue, wiring_fd(OBJECT_SAMPLES, 0, SIDE_RW),
					     wiring_fd(OBJECT_SAMPLES, 0, SIDE_TAIL_RO)),
			 0);
	assert_int_equal(queue_push(&queue, &record, sizeof(record)), 0);
	queue_publish(&queue, queue.cursor);
	run_until(watch_slot(SLOT_WORKER(0))->restarts == 1);
	queue_close(&queue);
	end();
}

static void a_broker_that_does_not_answer_is_replaced(void **state)
{
	struct ledger_writer ledger;

	(void)state;
	assert_int_equal(begin(""), 0);
	watch_start(ROLE_BROKER);
	run_until(messages[ROLE_BROKER][MESSAGE_READY] == 1);
	assert_int_equal(ledger_open(&ledger, wiring_fd(OBJECT_LEDGER, ROLE_BROKER, SIDE_RW)), 0);
	ledger_add(&ledger, C_broker_requests, 1);
	ledger_commit(&ledger);
	run_until(watch_slot(ROLE_BROKER)->restarts == 1);
	end();
}

static void one_that_breaks_the_protocol_is_ended(void **state)
{
	(void)state;
	assert_int_equal(begin("viewer=garbage"), 0);
	watch_start(ROLE_VIEWER);
	run_until(watch_slot(ROLE_VIEWER)->restarts >= 2);
	end();
}

static void one_that_does_not_die_is_abandoned(void **state)
{
	struct slot *worker = watch_slot(SLOT_WORKER(0)), *sampler = watch_slot(ROLE_SAMPLER);
	struct stat before, after;
	pid_t victim, peer, tracer;

	(void)state;
	assert_int_equal(begin(""), 0);
	watch_start(SLOT_WORKER(0));
	watch_start(ROLE_SAMPLER);
	run_until(messages[SLOT_WORKER(0)][MESSAGE_READY] && messages[ROLE_SAMPLER][MESSAGE_READY]);
	victim = worker->pid;
	peer = sampler->pid;
	tracer = standin_hold(victim, 0);
	fstat(wiring_fd(OBJECT_SAMPLES, 0, SIDE_RW), &before);
	watch_kill(SLOT_WORKER(0), "test");
	run_ms(1000);
	assert_int_equal(worker->abandoned, 0);
	run_until(messages[SLOT_WORKER(0)][MESSAGE_READY] == 2 &&
		  messages[ROLE_SAMPLER][MESSAGE_READY] == 2);
	assert_int_equal(worker->abandoned, 1);
	assert_int_not_equal(worker->pid, victim);
	assert_int_not_equal(sampler->pid, peer);
	fstat(wiring_fd(OBJECT_SAMPLES, 0, SIDE_RW), &after);
	assert_int_not_equal(before.st_ino, after.st_ino);
	run_ms(2 * STUCK_MS);
	assert_int_equal(sampler->restarts, 1);
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	waitpid(victim, NULL, 0);
	end();
}

/* The last test: what was drained stays drained. */
static void draining_asks_everyone_in_turn(void **state)
{
	uint64_t begun = watch_now_ns();

	(void)state;
	assert_int_equal(begin(""), 0);
	watch_start(ROLE_SAMPLER);
	watch_start(ROLE_BROKER);
	watch_start(SLOT_WORKER(0));
	watch_start(ROLE_EXPORTER);
	run_until(messages[ROLE_EXPORTER][MESSAGE_READY] == 1);
	assert_false(drain_begun());
	drain_begin();
	run_until(drain_tick());
	assert_int_equal(messages[ROLE_SAMPLER][MESSAGE_DRAINED], 1);
	assert_int_equal(messages[SLOT_WORKER(0)][MESSAGE_DRAINED], 1);
	assert_int_equal(messages[ROLE_EXPORTER][MESSAGE_DRAINED], 1);
	assert_int_equal(messages[ROLE_BROKER][MESSAGE_DRAINED], 0);
	assert_int_equal(watch_slot(ROLE_BROKER)->pid, 0);
	assert_true(watch_now_ns() - begun < 10000000000ull);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static int setup(void **state)
{
	(void)state;
	log_init(ROLE_SUPERVISOR, LOG_ERROR);
	return standin_open(directory, "fake");
}

static int teardown(void **state)
{
	(void)state;
	return standin_close(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_working_process_is_left_alone),
		cmocka_unit_test(one_that_exits_is_started_with_back_off),
		cmocka_unit_test(a_killed_one_is_back_at_once),
		cmocka_unit_test(one_that_hangs_is_replaced),
		cmocka_unit_test(who_waits_for_a_cpu_does_not_stand_still),
		cmocka_unit_test(one_that_hangs_up_is_replaced),
		cmocka_unit_test(all_can_be_replaced),
		cmocka_unit_test(a_worker_without_progress_is_replaced),
		cmocka_unit_test(a_broker_that_does_not_answer_is_replaced),
		cmocka_unit_test(one_that_breaks_the_protocol_is_ended),
		cmocka_unit_test(one_that_does_not_die_is_abandoned),
		cmocka_unit_test(draining_asks_everyone_in_turn),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
