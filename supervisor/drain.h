/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The orderly end: sampling stops, then each stage of the pipeline is told to finish what is there
 * once the stage before it has, each within its own limit. Then everybody is ended.
 */
#ifndef SCONCE_SUPERVISOR_DRAIN_H
#define SCONCE_SUPERVISOR_DRAIN_H

#include <stdbool.h>

/* Has no effect the second time. */
void drain_begin(void);
bool drain_begun(void);

/* To be called with every tick. True when nothing runs any more, or nothing more can be done. */
bool drain_tick(void);

#endif
