/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever falls says so first, and falls all the same: also without a stack, and as an init. */
#define _GNU_SOURCE
#include "symbolizer/crash.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static _Atomic uint32_t *crashed;

/* The sanitizers would see it first. */
__attribute__((no_sanitize("undefined", "address"))) static void fall_by_pointer(void)
{
	static volatile int *volatile nowhere;

	*nowhere = 1;
}

static void fall_by_instruction(void)
{
	__asm__ volatile("ud2");
}

static volatile int forever = 1;

/* The parsers' own stack is what it is about; a small one is full sooner. */
static int fall_deeper(int depth)
{
	volatile char room[1024];

	room[0] = (char)depth;
	return forever ? fall_deeper(depth + 1) + room[0] : depth;
}

static void fall_by_recursion(void)
{
	struct rlimit small = {256 << 10, 256 << 10};

	setrlimit(RLIMIT_STACK, &small);
	fall_deeper(0);
}

static void fall_in_child(void (*fall)(void), bool init, int number)
{
	int status = 0;
	pid_t pid;

	*crashed = 0;
	pid = fork();
	if (pid == 0) {
		struct rlimit none = {0, 0};

		setrlimit(RLIMIT_CORE, &none);
		if (init && unshare(CLONE_NEWPID))
			_exit(77);
		pid = init ? fork() : 0;
		if (pid) { /* an end by a signal is passed on as 128 + it */
			waitpid(pid, &status, 0);
			_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : 1);
		}
		crash_open(crashed);
		fall();
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (init && WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(init ? WEXITSTATUS(status) - 128 : WTERMSIG(status), number);
	assert_int_equal(*crashed, 1);
}

static void test_faults(void **state)
{
	(void)state;
	for (int init = 0; init < 2; init++) {
		fall_in_child(fall_by_recursion, init, SIGSEGV);
		fall_in_child(fall_by_pointer, init, SIGSEGV);
		fall_in_child(fall_by_instruction, init, SIGILL);
	}
	fall_in_child(abort, false, SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_faults)};

	crashed = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (crashed == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
