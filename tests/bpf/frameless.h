/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work whose call chain only unwind tables can tell: compiled without frame pointers, and rbp holds
 * nonsense where it spins.
 */
#ifndef SCONCE_TESTS_BPF_FRAMELESS_H
#define SCONCE_TESTS_BPF_FRAMELESS_H

#include <stdbool.h>
#include <stdint.h>

/* Spins below `frames` calls of one function, itself included. */
void frameless_deep(int frames);
/* Spins in a signal handler, on a stack of its own, that interrupted frameless_deep(frames). */
void frameless_signal(int frames);

/* Does this pc lie in frameless_deep(), or behind a call in it? */
bool frameless_holds(uintptr_t pc);

#endif
