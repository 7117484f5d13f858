/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that says it is CPython, of a version that nobody knows (FORGED 0x030f00f0: 3.15.0), or
 * of one that is known; none of what it exports is what it should be. It burns CPU in what it calls
 * the loop.
 */
#include <stdint.h>
#include <stdlib.h>

#ifndef FORGED
#define FORGED 0x030f00f0
#endif

#define EXPORTED __attribute__((visibility("default"), used))

EXPORTED const unsigned long Py_Version = FORGED;
EXPORTED uint64_t _PyRuntime[8192];
EXPORTED uint64_t PyCode_Type[64], PyUnicode_Type[64], PyGen_Type[64];
void *PyGILState_GetThisThreadState(void);
void *_PyThreadState_UncheckedGet(void);
const char *Py_GetVersion(void);
int PyObject_GetAttrString(void);
uint64_t _PyEval_EvalFrameDefault(uint64_t depth);

static _Thread_local uint64_t state[8];
static volatile int goes_on = 1;

EXPORTED void *PyGILState_GetThisThreadState(void)
{
	return &state[3];
}

EXPORTED void *_PyThreadState_UncheckedGet(void)
{
	return (void *)(uintptr_t)_PyRuntime[71];
}

EXPORTED const char *Py_GetVersion(void)
{
	return "3.11.2 (forged)";
}

EXPORTED int PyObject_GetAttrString(void)
{
	return 0;
}

__attribute__((noinline)) EXPORTED uint64_t _PyEval_EvalFrameDefault(uint64_t depth)
{
	volatile uint64_t x = depth;

	if (depth)
		return _PyEval_EvalFrameDefault(depth - 1) + x;
	while (goes_on)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

int main(void)
{
	/* Pointers to each other, to themselves and to nowhere. */
	for (int i = 0; i < 8192; i++)
		_PyRuntime[i] =
		    i % 3 ? (uintptr_t)&_PyRuntime[(i * 37) % 8192] : (uint64_t)rand() << 33;
	for (int i = 0; i < 8; i++)
		state[i] = (uintptr_t)&_PyRuntime[i * 8];
	return (int)_PyEval_EvalFrameDefault(9);
}
