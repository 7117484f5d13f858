/* SPDX-License-Identifier: Apache-2.0 */
/* Damage to snapshots, by a seed: bits, pointers that lead back, sizes without measure, registers.
 */
#ifndef SCONCE_TESTS_LANG_DAMAGE_H
#define SCONCE_TESTS_LANG_DAMAGE_H

#include "tests/lang/snapshot.h"

/* *seed is not 0, and moves on. */
void damage(struct snapshot *snapshot, uint64_t *seed);

#endif
