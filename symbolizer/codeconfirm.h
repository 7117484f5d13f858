/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What follows a call of which it is only assumed that it returns (LEVEL_ASSUMED): behind abort()
 * of another file stands whatever the linker put there, the cold half of another function mostly.
 * So it counts only where it is confirmed: a way from it comes to a return that finds everything in
 * place, or to stronger code with the same stack.
 */
#ifndef SCONCE_SYMBOLIZER_CODECONFIRM_H
#define SCONCE_SYMBOLIZER_CODECONFIRM_H

#include "symbolizer/codegraph.h"

/* Once, at the end. */
void codeconfirm_all(struct codegraph *graph);

#endif
