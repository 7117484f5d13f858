/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small program in each language: functions, methods, closures, callbacks that C calls, an
 * endless loop. Nobody compares their stacks; they are where snapshots are taken.
 */
#ifndef SCONCE_TESTS_LANG_SPECIMENS_H
#define SCONCE_TESTS_LANG_SPECIMENS_H

#include "bpf/langs.h"
#include "tests/lang/live.h"

struct specimen {
	const char *name;
	const char *argv[6];
};

/* By enum language; [LANG_NONE] is empty. */
extern const struct specimen specimens[LANG_COUNT];

/* A sample of it with a script frame where that can be had, else any; its snapshot stays in live.
 * NULL: it does not start. The process has ended. */
struct live *specimen_take(enum language language);

#endif
