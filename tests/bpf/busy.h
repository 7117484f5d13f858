/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child processes with a known answer: what they execute, and who called it.
 */
#ifndef SCONCE_TESTS_BPF_BUSY_H
#define SCONCE_TESTS_BPF_BUSY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* busy_nest_8 is the leaf and spins, busy_nest_1 called busy_nest_2, and so on. */
#define BUSY_NEST 8

/* Spins at the end of the nest. */
void busy_nest(void);
/* Spins below `frames` calls of one function. */
void busy_deep(int frames);
/* Reads from /dev/zero for ever, so that nearly all samples are in the kernel. */
void busy_syscall(void);
/* Spins in 32-bit code. Ends by a signal where the kernel has no 32-bit segment. */
void busy_compat32(void);
/* Forks a child that spins in the nest, and waits for it. */
void busy_fork(void);
/* Becomes the same program again, called with this argument: it should do it again. */
void busy_execve(void);
#define BUSY_EXECVE "execve-again"
#define BUSY_EXECVE_ARGC 2

/* Start a child that does this until it is killed; it dies with its parent. */
pid_t busy_start(void (*work)(void));
void busy_end(pid_t pid);

/* Does this address lie in busy_nest_<level>? */
bool busy_nest_holds(int level, uintptr_t pc);

#endif
