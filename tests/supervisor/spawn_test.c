/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a started process holds, as the kernel tells it: tests/supervisor/probe.c in place of a role.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/spawn.h"
#include "tests/supervisor/standin.h"

static char directory[] = "/tmp/spawn-test-XXXXXX";
static char report[16384];

static int setup(void **state)
{
	(void)state;
	return standin_open(directory, "probe");
}

static int teardown(void **state)
{
	(void)state;
	return standin_close(directory);
}

static void probe(int slot, int paranoid)
{
	struct config config = {.uid_base = 61000, .runtime.perf_event_paranoid = paranoid};
	struct wire wires[] = {{3, 0}, {7, 0}, {200, 0}};
	size_t len = 0;
	ssize_t n;
	int pipe_fds[2], status;
	pid_t pid;

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	/* Without close-on-exec, and at a number that is wanted: neither may leak or clash. */
	assert_int_equal(dup2(pipe_fds[0], 200), 200);
	wires[0].fd = 200;
	wires[1].fd = pipe_fds[1];
	pid = spawn_process(slot, &config, wires, 3);
	assert_true(pid > 0);
	close(pipe_fds[1]);
	close(200);
	while ((n = read(pipe_fds[0], report + len, sizeof(report) - 1 - len)) > 0)
		len += (size_t)n;
	report[len] = 0;
	close(pipe_fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void says(const char *line)
{
	if (!strstr(report, line))
		fail_msg("missing: %s\nin: %s", line, report);
}

static void capabilities_are(const char *set)
{
	static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
	char line[64];

	for (int i = 0; i < 5; i++) {
		snprintf(line, sizeof(line), "%s:\t%s\n", sets[i], set);
		says(line);
	}
}

static int count(const char *text)
{
	int n = 0;

	for (const char *p = report; (p = strstr(p, text)); p++)
		n++;
	return n;
}

static void an_ordinary_role_holds_nothing(void **state)
{
	(void)state;
	probe(ROLE_SAMPLER, 2);
	capabilities_are("0000000000000000");
	says("Uid:\t61003\t61003\t61003\t61003\n");
	says("Gid:\t61003\t61003\t61003\t61003\n");
	says("Groups:\t \n");
	says("NoNewPrivs:\t1\n");
	says("pdeathsig 9\n");
	says("args sconce-sampler 3\n");
	says("cwd /\n");
	/* no root and no ambient raise; the set-uid fix-up and keep-caps as they are; all locked */
	says("securebits 235\n");
}

static void descriptors_are_exactly_those_listed(void **state)
{
	(void)state;
	probe(SLOT_WORKER(2), 2);
	says("args sconce-symbolizer 9\n");
	says("fd 0\n");
	says("fd 1\n");
	says("fd 2\n");
	says("fd 3\n");
	says("fd 7\n");
	says("fd 200\n");
	assert_int_equal(count("\nfd "), 6);
}

static void the_broker_holds_three_and_no_more(void **state)
{
	(void)state;
	probe(ROLE_BROKER, 2);
	capabilities_are("0000010000080004");
	says("pdeathsig 9\n");
}

static void the_loader_holds_two_or_three(void **state)
{
	(void)state;
	probe(ROLE_LOADER, 2);
	capabilities_are("000000c000000000");
	probe(ROLE_LOADER, 4);
	capabilities_are("000000c000200000");
}

static void environment_is_clean(void **state)
{
	(void)state;
	setenv("HTTPS_PROXY", "http://p", 1);
	probe(ROLE_VIEWER, 2);
	says("env LANG=C.UTF-8\n");
	assert_int_equal(count("\nenv "), 1);
	probe(ROLE_EXPORTER, 2);
	says("env HTTPS_PROXY=http://p\n");
}

static void signals_are_as_they_should(void **state)
{
	const char *ignored;
	sigset_t set;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	probe(ROLE_SAMPLER, 2);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	says("SigBlk:\t0000000000000000\n");
	/* Signals 32 and 33 are the C library's own: it lets nobody change what was inherited. */
	ignored = strstr(report, "SigIgn:\t");
	assert_non_null(ignored);
	assert_int_equal(strtoull(ignored + 8, NULL, 16) & ~0x180000000ull, 3);
}

static void a_missing_binary_is_an_error(void **state)
{
	struct config config = {.uid_base = 61000};

	(void)state;
	assert_int_equal(standin_is_in("/proc"), 0);
	assert_int_equal(spawn_process(ROLE_SAMPLER, &config, NULL, 0), -2);
	assert_int_equal(standin_is_in(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ordinary_role_holds_nothing),
		cmocka_unit_test(descriptors_are_exactly_those_listed),
		cmocka_unit_test(the_broker_holds_three_and_no_more),
		cmocka_unit_test(the_loader_holds_two_or_three),
		cmocka_unit_test(environment_is_clean),
		cmocka_unit_test(signals_are_as_they_should),
		cmocka_unit_test(a_missing_binary_is_an_error),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
