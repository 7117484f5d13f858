/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each function of the nest stands in a section of its own, so that the linker tells where it
 * begins and ends: the test needs no symbol table.
 */
#define _GNU_SOURCE
#include "tests/bpf/busy.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALONE __attribute__((noinline, used))

static volatile uint64_t busy_counter;
/* Whoever asks for its frame has one; compilers leave it out of loops that never end. */
static void *volatile busy_frame;

static ALONE __attribute__((section("busy_at_8"))) void busy_nest_8(void)
{
	busy_frame = __builtin_frame_address(0);
	for (;;)
		busy_counter++;
}

/* The store behind the call keeps it from becoming a jump. */
#define NEST(this, next)                                                                           \
	static ALONE __attribute__((section("busy_at_" #this))) void busy_nest_##this(void)      \
	{                                                                                          \
		busy_nest_##next();                                                                \
		busy_counter = 0;                                                                  \
	}
NEST(7, 8)
NEST(6, 7)
NEST(5, 6)
NEST(4, 5)
NEST(3, 4)
NEST(2, 3)
NEST(1, 2)

#define BOUNDS(level) extern const char __start_busy_at_##level[], __stop_busy_at_##level[];
BOUNDS(1) BOUNDS(2) BOUNDS(3) BOUNDS(4) BOUNDS(5) BOUNDS(6) BOUNDS(7) BOUNDS(8)

bool busy_nest_holds(int level, uintptr_t pc)
{
	static const char *const bounds[BUSY_NEST][2] = {
#define PAIR(level) {__start_busy_at_##level, __stop_busy_at_##level},
		PAIR(1) PAIR(2) PAIR(3) PAIR(4) PAIR(5) PAIR(6) PAIR(7) PAIR(8)};

	return pc >= (uintptr_t)bounds[level - 1][0] && pc <= (uintptr_t)bounds[level - 1][1];
}

ALONE void busy_nest(void)
{
	busy_nest_1();
	busy_counter = 0;
}

ALONE void busy_deep(int frames)
{
	busy_frame = __builtin_frame_address(0);
	/* Never 0 again; but the compiler must believe that this returns. */
	while (frames <= 1 && ++busy_counter)
		;
	if (frames > 1)
		busy_deep(frames - 1);
	busy_counter = 0;
}

void busy_syscall(void)
{
	static char buffer[1 << 20];
	int fd = open("/dev/zero", O_RDONLY);

	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
}

void busy_compat32(void)
{
#ifdef __x86_64__
	static const unsigned char spin[] = {0xeb, 0xfe}; /* jmp to itself */
	void *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (low == MAP_FAILED)
		_exit(1);
	memcpy(low, spin, sizeof(spin));
	if (mprotect(low, 4096, PROT_READ | PROT_EXEC))
		_exit(1);
	/* A far return into the 32-bit code segment. */
	__asm__ volatile("pushq $0x23\n\tpushq %0\n\tlretq" ::"r"(low));
#endif
	_exit(1);
}

void busy_fork(void)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		busy_nest();
	}
	waitpid(child, NULL, 0);
	for (;;)
		pause();
}

void busy_execve(void)
{
	execl("/proc/self/exe", "busy", BUSY_EXECVE, NULL);
	_exit(1);
}

pid_t busy_start(void (*work)(void))
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	work();
	_exit(1);
}

void busy_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
