/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parser that falls over a file says so with its last breath, so that its successor can tell that
 * from a kill by somebody else (shm/blame.h).
 */
#ifndef SCONCE_SYMBOLIZER_CRASH_H
#define SCONCE_SYMBOLIZER_CRASH_H

#include <stdint.h>

/* From now on *crashed becomes 1 with the first signal of a fault; the second one ends us. */
void crash_open(_Atomic uint32_t *crashed);

#endif
