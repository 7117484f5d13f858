/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sconce-broker as it is run: its own uid, three capabilities, fds at their numbers. The test is
 * the supervisor, the sampler and the worker.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/channel.h"
#include "proto/fds.h"
#include "shm/ledger.h"
#include "tests/broker/victim.h"

#define TICK	10000000ull
#define WAIT_MS 5000

static char broker_path[512];
static struct {
	pid_t pid;
	int supervisor[2], sampler[2], worker[2];
	struct segment config, ledger, worker_ledger;
	struct channel to, from_worker, from_supervisor;
} rig;
static struct message message;

static _Noreturn void broker_run(void)
{
	char slot[] = {'0' + ROLE_BROKER, 0};
	const struct {
		int from, to;
	} fds[] = {
	    {rig.supervisor[1], FD_SUPERVISOR},
	    {rig.config.ro, FD_CONFIG},
	    {rig.ledger.rw, FD_LEDGER},
	    {rig.sampler[1], FD_BROKER_SAMPLER},
	    {rig.worker[1], FD_BROKER_WORKERS},
	    {rig.worker_ledger.ro, FD_BROKER_LEDGERS + SLOT_WORKER(0)},
	};
	char *argv[] = {"setpriv",
			"--reuid=61999",
			"--regid=61999",
			"--clear-groups",
			"--inh-caps=-all,+sys_ptrace,+checkpoint_restore,+dac_read_search",
			"--ambient-caps=-all,+sys_ptrace,+checkpoint_restore,+dac_read_search",
			"--bounding-set=-all,+sys_ptrace,+checkpoint_restore,+dac_read_search",
			broker_path,
			slot,
			NULL};
	int high[6];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 6; i++)
		high[i] = fcntl(fds[i].from, F_DUPFD, 100);
	for (int i = 0; i < 6; i++)
		dup2(high[i], fds[i].to);
	/* Confined, it cannot be stopped to be searched for leaks. */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	execvp(argv[0], argv);
	_exit(127);
}

static void receive(struct channel *channel, int *fds, size_t *fds_n)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(channel_recv(channel, &message, fds, fds_n), 0);
}

static void broker_start(void)
{
	channel_init(&rig.from_supervisor, rig.supervisor[0], ROLE_SUPERVISOR, ROLE_BROKER, false);
	rig.pid = fork();
	if (rig.pid == 0)
		broker_run();
	receive(&rig.from_supervisor, NULL, NULL);
	assert_int_equal(message.type, MESSAGE_READY);
}

static int setup(void **state)
{
	struct config *config;

	(void)state;
	memset(&rig, 0, sizeof(rig));
	channel_pair(rig.supervisor);
	channel_pair(rig.sampler);
	channel_pair(rig.worker);
	assert_int_equal(segment_create(&rig.config, "config", sizeof(struct config)), 0);
	assert_int_equal(ledger_create(&rig.ledger, "ledger"), 0);
	assert_int_equal(ledger_create(&rig.worker_ledger, "worker"), 0);
	config = segment_map(rig.config.rw, sizeof(*config), 1);
	config_defaults(config, MODE_RUN);
	channel_init(&rig.to, rig.sampler[0], ROLE_SAMPLER, ROLE_BROKER, true);
	channel_init(&rig.from_worker, rig.worker[0], ROLE_SYMBOLIZER, ROLE_BROKER, true);
	broker_start();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	kill(rig.pid, SIGKILL);
	waitpid(rig.pid, NULL, 0);
	for (int i = 0; i < 2; i++) {
		close(rig.supervisor[i]);
		close(rig.sampler[i]);
		close(rig.worker[i]);
	}
	segment_close(&rig.config);
	segment_close(&rig.ledger);
	segment_close(&rig.worker_ledger);
	return 0;
}

static uint64_t count(enum counter counter)
{
	static struct ledger_entry entry;
	const struct ledger *ledger = ledger_map(rig.ledger.ro);

	assert_int_equal(ledger_read(ledger, &entry), 0);
	munmap((void *)(uintptr_t)ledger, LEDGER_BYTES);
	return entry.counter[counter];
}

/* The answer leaves a moment before it is counted. */
static void assert_count(enum counter counter, uint64_t value)
{
	for (int i = 0; i < 200 && count(counter) != value; i++)
		usleep(10000);
	assert_int_equal(count(counter), value);
}

static void ask_process(const struct victim *v, uint32_t ranges)
{
	struct message_ask_process ask = {.pid = (uint32_t)v->pid,
					  .start_lo_ns = v->start_ns,
					  .start_hi_ns = v->start_ns,
					  .exec_id = 42,
					  .ranges = ranges};

	assert_int_equal(channel_send(&rig.to, MESSAGE_ASK_PROCESS, &ask, NULL, 0), 0);
}

/* Ranges and identity of a process of another user; then the file that it maps. */
static void test_ranges_identity_file(void **state)
{
	struct message_ask_file ask = {.file_id = 9};
	const char *path = victim_file("asked");
	char own[1024] = "", byte;
	int fds[MESSAGE_FDS_MAX];
	struct victim v;
	size_t fds_n;
	ssize_t n;

	(void)state;
	victim_start(&v, path, 0);
	ask_process(&v, 1);
	receive(&rig.to, NULL, NULL);
	assert_int_equal(message.type, MESSAGE_RANGES);
	assert_int_equal(message.ranges.error, 0);
	assert_int_equal(message.ranges.exec_id, 42);
	assert_true(message.ranges.first && message.ranges.last);
	for (uint32_t i = 0; i < message.ranges.n; i++)
		if (message.ranges.range[i].start == VICTIM_ADDRESS)
			ask = (struct message_ask_file){
			    .start = VICTIM_ADDRESS,
			    .end = VICTIM_ADDRESS + 4096,
			    .inode = message.ranges.range[i].inode,
			    .dev_major = message.ranges.range[i].dev_major,
			    .dev_minor = message.ranges.range[i].dev_minor,
			    .file_id = 9};
	assert_true(ask.inode != 0);
	receive(&rig.from_worker, fds, &fds_n);
	assert_int_equal(message.type, MESSAGE_PROCESS_INFO);
	n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	assert_true(n > 0);
	assert_string_equal(message.process_info.executable, own);
	assert_true(message.process_info.cgroup_bytes > 0);
	assert_non_null(
	    memmem(message.process_info.cgroup, message.process_info.cgroup_bytes, ":", 1));

	ask.pid = (uint32_t)v.pid;
	ask.start_lo_ns = ask.start_hi_ns = v.start_ns;
	assert_int_equal(channel_send(&rig.to, MESSAGE_ASK_FILE, &ask, NULL, 0), 0);
	receive(&rig.from_worker, fds, &fds_n);
	assert_int_equal(message.type, MESSAGE_FILE);
	assert_int_equal(message.file.error, 0);
	assert_int_equal(message.file.file_id, 9);
	assert_int_equal(fds_n, 1);
	assert_int_equal(pread(fds[0], &byte, 1, 0), 1);
	assert_int_equal((unsigned char)byte, 0x90);
	close(fds[0]);
	receive(&rig.to, NULL, NULL);
	assert_int_equal(message.type, MESSAGE_FILE_KEY);
	assert_int_equal(message.file_key.error, 0);
	assert_int_equal(message.file_key.key.inode, v.file.st_ino);
	assert_count(C_broker_files, 1);

	/* not that inode: no fd, and both are told */
	ask.inode++;
	channel_send(&rig.to, MESSAGE_ASK_FILE, &ask, NULL, 0);
	receive(&rig.from_worker, fds, &fds_n);
	assert_int_equal(message.file.error, ESTALE);
	assert_int_equal(fds_n, 0);
	receive(&rig.to, NULL, NULL);
	assert_int_equal(message.file_key.error, ESTALE);
	assert_count(C_broker_files_refused_identity, 1);
	victim_end(&v);
	unlink(path);
}

static struct message_ask_file ask_for(const struct victim *v)
{
	struct message_ask_file ask = {.file_id = 9,
				       .pid = (uint32_t)v->pid,
				       .start_lo_ns = v->start_ns,
				       .start_hi_ns = v->start_ns,
				       .start = VICTIM_ADDRESS,
				       .end = VICTIM_ADDRESS + 4096};
	struct message_ranges *r = &message.ranges;

	ask_process(v, 1);
	receive(&rig.to, NULL, NULL);
	for (uint32_t i = 0; i < r->n; i++)
		if (r->range[i].start == VICTIM_ADDRESS) {
			ask.inode = r->range[i].inode;
			ask.dev_major = r->range[i].dev_major;
			ask.dev_minor = r->range[i].dev_minor;
		}
	receive(&rig.from_worker, NULL, NULL);
	return ask;
}

/* What lies beside it; the sampler is told nothing. */
static void test_others(void **state)
{
	struct message_ask_other ask = {
	    .need = {.file_id = 9, .kind = OTHER_DWO, .bytes = 6, .name = "../x.y"}};
	const char *name, *path = victim_file("beside.dwo");
	int fds[MESSAGE_FDS_MAX];
	struct victim v;
	size_t fds_n;

	(void)state;
	victim_start(&v, path, 0);
	ask.file = ask_for(&v);
	assert_int_equal(channel_send(&rig.to, MESSAGE_ASK_OTHER, &ask, NULL, 0), 0);
	receive(&rig.from_worker, fds, &fds_n);
	assert_int_equal(message.type, MESSAGE_OTHER);
	assert_int_equal(message.other.file.error, EPROTO);
	assert_int_equal(fds_n, 0);
	assert_count(C_broker_files_failed, 1);

	name = strrchr(path, '/') + 1; /* itself */
	ask.need.bytes = (uint32_t)strlen(name);
	memcpy(ask.need.name, name, strlen(name));
	assert_int_equal(channel_send(&rig.to, MESSAGE_ASK_OTHER, &ask, NULL, 0), 0);
	receive(&rig.from_worker, fds, &fds_n);
	assert_int_equal(message.other.file.error, 0);
	assert_int_equal(message.other.file.file_id, 9);
	assert_int_equal(message.other.file.key.inode, v.file.st_ino);
	assert_int_equal(message.other.need.kind, OTHER_DWO);
	assert_int_equal(message.other.need.file_id, 9);
	assert_int_equal(message.other.start_lo_ns, v.start_ns);
	assert_int_equal(fds_n, 1);
	close(fds[0]);
	assert_count(C_broker_others, 1);

	ask.need.name[0] = 'x';
	assert_int_equal(channel_send(&rig.to, MESSAGE_ASK_OTHER, &ask, NULL, 0), 0);
	receive(&rig.from_worker, fds, &fds_n);
	assert_int_equal(message.other.file.error, ENOENT);
	assert_count(C_broker_others_absent, 1);
	assert_count(C_broker_answers, 4);
	assert_int_equal(channel_recv(&rig.to, &message, fds, &fds_n), -EAGAIN);
	victim_end(&v);
	unlink(path);
}

static void test_gone(void **state)
{
	struct victim v;

	(void)state;
	victim_start(&v, NULL, 0);
	v.start_ns += 2 * TICK; /* another life of the pid */
	ask_process(&v, 1);
	receive(&rig.to, NULL, NULL);
	assert_int_equal(message.ranges.error, ESRCH);
	assert_true(message.ranges.last && message.ranges.n == 0);
	v.start_ns -= 2 * TICK;
	victim_end(&v);
	ask_process(&v, 1);
	receive(&rig.to, NULL, NULL);
	assert_int_equal(message.ranges.error, ESRCH);
	/* The worker is told as well, so that it does not wait. */
	for (int i = 0; i < 2; i++) {
		receive(&rig.from_worker, NULL, NULL);
		assert_int_equal(message.type, MESSAGE_PROCESS_INFO);
		assert_int_equal(message.process_info.pid, v.pid);
		assert_int_equal(message.process_info.exec_id, 42);
		assert_int_equal(message.process_info.cgroup_bytes, 0);
		assert_string_equal(message.process_info.executable, "");
	}
	assert_count(C_broker_processes_gone, 2);
	assert_count(C_broker_requests, 2);
	assert_count(C_broker_answers, 2);
}

/* A worker that reads nothing holds nobody up, and the sampler hears of what it missed. */
static void test_worker_that_does_not_read(void **state)
{
	struct message_ask_file ask = {.pid = 1, .file_id = 5, .start_hi_ns = UINT64_MAX};
	struct victim v;
	int answers = 0, failed = 0;

	(void)state;
	victim_start(&v, NULL, 0);
	for (int i = 0; i < 600; i++) {
		assert_int_equal(channel_send(&rig.to, MESSAGE_ASK_FILE, &ask, NULL, 0), 0);
		receive(&rig.to, NULL, NULL);
		answers += message.type == MESSAGE_FILE_KEY;
		failed += message.file_key.error == EAGAIN;
	}
	assert_int_equal(answers, 600);
	assert_true(failed > 0 && failed < 600);
	ask_process(&v, 1);
	receive(&rig.to, NULL, NULL);
	assert_int_equal(message.ranges.error, 0);
	assert_true(count(C_broker_files_failed) > 0);
	victim_end(&v);
}

static void test_sampler_that_lies(void **state)
{
	struct message_ask_process ask = {.pid = 1, .worker = 5}; /* there is one worker */

	(void)state;
	assert_int_equal(channel_send(&rig.to, MESSAGE_ASK_PROCESS, &ask, NULL, 0), 0);
	receive(&rig.from_supervisor, NULL, NULL);
	assert_int_equal(message.type, MESSAGE_VIOLATION);
	assert_int_equal(message.violation.slot, ROLE_SAMPLER);
}

static void ask_file(const struct victim *v)
{
	struct message_ask_file ask = ask_for(v);

	assert_int_equal(channel_send(&rig.to, MESSAGE_ASK_FILE, &ask, NULL, 0), 0);
	receive(&rig.to, NULL, NULL);
	assert_int_equal(message.type, MESSAGE_FILE_KEY);
}

/* What the worker, or a broker before, fell over is not touched again. */
static void test_blamed(void **state)
{
	struct ledger *worker = segment_map(rig.worker_ledger.rw, LEDGER_BYTES, 1);
	struct ledger *own = segment_map(rig.ledger.rw, LEDGER_BYTES, 1);
	const char *path = victim_file("blamed");
	struct victim v;
	int fds[MESSAGE_FDS_MAX];
	size_t fds_n;

	(void)state;
	victim_start(&v, path, 0);
	worker->blame.files[3] =
	    (struct blame_file){.device = v.file.st_dev, .points = BLAME_DEVICE - 1};
	ask_file(&v);
	assert_int_equal(message.file_key.error, 0);
	receive(&rig.from_worker, fds, &fds_n);
	assert_int_equal(fds_n, 1);
	close(fds[0]);
	worker->blame.files[3].points++;
	ask_file(&v);
	assert_int_equal(message.file_key.error, EOWNERDEAD);
	receive(&rig.from_worker, fds, &fds_n);
	assert_int_equal(message.file.error, EOWNERDEAD);
	assert_int_equal(fds_n, 0);
	assert_string_equal(message.file.path, path);
	assert_count(C_broker_quarantined, 1);

	kill(rig.pid, SIGKILL);
	waitpid(rig.pid, NULL, 0);
	assert_int_equal(own->blame.busy, 0);
	blame_begin(&own->blame, 0, v.start_ns + (uint64_t)v.pid, "process");
	own->blame.since_ns = 0;
	own->entry[own->commits & 1].counter[C_broker_requests]++;
	broker_start();
	/* Or the supervisor would wait for that answer, and end one broker after the other. */
	assert_int_equal(count(C_broker_answers), count(C_broker_requests));
	ask_process(&v, 1);
	receive(&rig.to, NULL, NULL);
	assert_int_equal(message.ranges.error, EOWNERDEAD);
	assert_count(C_broker_quarantined, 2);
	munmap(worker, LEDGER_BYTES);
	munmap(own, LEDGER_BYTES);
	victim_end(&v);
	unlink(path);
}

/* 0 and a descriptor that reads what stands in the victim, or an error. */
static int ask_memory(const struct victim *v, const struct message_ask_file *file)
{
	struct message_ask_other ask = {
	    .file = *file,
	    .need = {.file_id = 9, .pid = (uint32_t)v->pid, .kind = OTHER_MEM}};
	int fds[MESSAGE_FDS_MAX];
	unsigned char byte;
	size_t fds_n;

	assert_int_equal(channel_send(&rig.to, MESSAGE_ASK_OTHER, &ask, NULL, 0), 0);
	receive(&rig.from_worker, fds, &fds_n);
	assert_int_equal(message.type, MESSAGE_OTHER);
	assert_int_equal(message.other.need.kind, OTHER_MEM);
	assert_int_equal(message.other.need.pid, v->pid);
	assert_int_equal(message.other.start_lo_ns, v->start_ns);
	assert_int_equal(fds_n, message.other.file.error == 0);
	if (!fds_n)
		return message.other.file.error;
	assert_int_equal(pread(fds[0], &byte, 1, VICTIM_ADDRESS), 1);
	assert_int_equal(byte, 0x90);
	assert_int_equal(fcntl(fds[0], F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(pwrite(fds[0], &byte, 1, VICTIM_ADDRESS), -1);
	close(fds[0]);
	return 0;
}

/* A page of code by this very name, in a folder of its own. */
static void runtime_file(char *path, size_t size, const char *name)
{
	snprintf(path, size, "/tmp/sconce-broker-test-%d.d", getpid());
	mkdir(path, 0755);
	snprintf(path, size, "/tmp/sconce-broker-test-%d.d/%s", getpid(), name);
	assert_return_code(rename(victim_file(name), path), errno);
}

/* Of processes that run scripts, by the name of what they have mapped there, and of no others. */
static void test_memory(void **state)
{
	static const struct {
		const char *name;
		int error;
	} files[] = {{"python3.11", 0},	     {"libruby-3.1.so.3.1", 0}, {"php-fpm8.2", 0},
		     {"perl", 0},	     {"our-embedding", 0},	{"our-embedding2", EPERM},
		     {"embedding", EPERM}, {"mypython", EPERM},	{"sshd", EPERM}};
	struct config *config = segment_map(rig.config.rw, sizeof(*config), 1);
	struct ledger *worker = segment_map(rig.worker_ledger.rw, LEDGER_BYTES, 1);
	struct message_ask_file ask, other;
	struct victim v;
	char path[256];

	(void)state;
	strcpy(config->runtime_exe[0], "something");
	strcpy(config->runtime_exe[1], "our-embedding");
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		runtime_file(path, sizeof(path), files[i].name);
		victim_start(&v, path, i == 0); /* "python3.11 (deleted)" */
		ask = ask_for(&v);
		assert_int_equal(ask_memory(&v, &ask), files[i].error);
		victim_end(&v);
		unlink(path);
	}
	assert_count(C_broker_memories, 5);
	assert_count(C_broker_memories_refused, 4);

	runtime_file(path, sizeof(path), "python3");
	victim_start(&v, path, 0);
	ask = other = ask_for(&v);
	other.inode++;
	assert_int_equal(ask_memory(&v, &other), ESTALE);
	other = ask;
	other.start += 4096, other.end += 4096;
	assert_int_equal(ask_memory(&v, &other), ESTALE);
	/* Whoever had this pid before. */
	other = ask;
	other.start_hi_ns -= TICK, other.start_lo_ns -= TICK;
	v.start_ns -= TICK;
	assert_int_equal(ask_memory(&v, &other), ESRCH);
	v.start_ns += TICK;
	/* One of our own. */
	config->uid_base = getuid();
	assert_int_equal(ask_memory(&v, &ask), EPERM);
	config->uid_base = 61000;
	/* It has held the worker up: the process is left alone, not the file. */
	worker->blame.files[3] = (struct blame_file){
	    .inode = v.start_ns + (uint64_t)v.pid, .points = BLAME_PROCESS};
	assert_int_equal(ask_memory(&v, &ask), EOWNERDEAD);
	assert_count(C_broker_quarantined, 1);
	memset(&worker->blame, 0, sizeof(worker->blame));
	assert_int_equal(ask_memory(&v, &ask), 0);
	victim_end(&v);
	assert_int_equal(ask_memory(&v, &ask), ESRCH);
	unlink(path);
	*strrchr(path, '/') = 0;
	rmdir(path);
	munmap(worker, LEDGER_BYTES);
	munmap(config, sizeof(*config));
}

static void test_drain_and_end(void **state)
{
	struct message_empty none = {0};
	int status;

	(void)state;
	assert_int_equal(channel_send(&rig.from_supervisor, MESSAGE_DRAIN, &none, NULL, 0), 0);
	receive(&rig.from_supervisor, NULL, NULL);
	assert_int_equal(message.type, MESSAGE_DRAINED);
	kill(rig.pid, SIGTERM);
	for (int i = 0; i < 200 && waitpid(rig.pid, &status, WNOHANG) == 0; i++)
		usleep(10000);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	broker_start(); /* for teardown; a replacement finds the same fds */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_ranges_identity_file),
	    TEST(test_others),
	    TEST(test_gone),
	    TEST(test_worker_that_does_not_read),
	    TEST(test_sampler_that_lies),
	    TEST(test_blamed),
	    TEST(test_memory),
	    TEST(test_drain_and_end),
	};
	char self[400];

	(void)argc;
	if (geteuid() != 0) {
		print_message("needs root\n");
		return 77;
	}
	snprintf(self, sizeof(self), "%s", argv[0]);
	snprintf(broker_path, sizeof(broker_path), "%s/../../sconce-broker", dirname(self));
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
