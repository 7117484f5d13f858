/* SPDX-License-Identifier: Apache-2.0 */
/* Built with -fomit-frame-pointer; see frameless.h. */
#define _GNU_SOURCE
#include "tests/bpf/frameless.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define STACK_BYTES 65536

extern const char __start_frameless[], __stop_frameless[];

static volatile uint64_t frameless_counter;

__attribute__((noinline, section("frameless"))) void frameless_deep(int frames)
{
	volatile char room[40];

	room[0] = (char)frames;
	if (frames > 1)
		frameless_deep(frames - 1);
	/* The compiler has saved rbp and said where. */
	__asm__ volatile("movq $0x1234567, %%rbp" ::: "rbp");
	while (frames <= 1 && ++frameless_counter)
		;
	frameless_counter = (uint64_t)room[0];
}

bool frameless_holds(uintptr_t pc)
{
	return pc >= (uintptr_t)__start_frameless && pc <= (uintptr_t)__stop_frameless;
}

static void frameless_handler(int signo)
{
	(void)signo;
	while (++frameless_counter)
		;
}

void frameless_signal(int frames)
{
	stack_t stack = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
	struct sigaction action = {.sa_handler = frameless_handler, .sa_flags = SA_ONSTACK};

	if (!stack.ss_sp || sigaltstack(&stack, NULL) || sigaction(SIGALRM, &action, NULL))
		_exit(1);
	ualarm(1000, 0);
	frameless_deep(frames);
}
