/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/crash.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#define STACK_BYTES 16384 /* the handler needs none of it, the frame of the signal 3 to 11 KB */

static _Atomic uint32_t *crash_flag;

/* A fault is met again when this returns, and ends us then: no right to send signals is needed. */
static void crash_on_signal(int number)
{
	(void)number;
	atomic_store(crash_flag, 1);
}

void crash_open(_Atomic uint32_t *crashed)
{
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};
	static char stack[STACK_BYTES];
	/* Endless recursion leaves no room on the stack that it fills. */
	stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction act = {.sa_handler = crash_on_signal,
				.sa_flags = SA_ONSTACK | (int)SA_RESETHAND};

	crash_flag = crashed;
	sigaltstack(&other, NULL);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		sigaction(numbers[i], &act, NULL);
}
