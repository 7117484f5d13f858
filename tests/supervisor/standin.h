/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory in which one program stands in place of every role, and a victim that does not die.
 */
#ifndef SCONCE_TESTS_SUPERVISOR_STANDIN_H
#define SCONCE_TESTS_SUPERVISOR_STANDIN_H

#include <sys/types.h>

/*
 * Make `template` (mkdtemp), with a link for each role to `program` beside the test, and let it be
 * FD_SUPERVISOR_BINARIES. 0 or -1. Exits with 77 where we are not root.
 */
int standin_open(char *template, const char *program);
/* FD_SUPERVISOR_BINARIES is to be this one. 0 or -1. */
int standin_is_in(const char *directory);
int standin_close(const char *directory);

/*
 * The pid of a tracer that keeps the victim from being buried, as uninterruptible sleep does: it
 * does not wait for it. options: of PTRACE_SEIZE.
 */
pid_t standin_hold(pid_t victim, long options);

#endif
