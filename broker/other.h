/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that nobody has mapped: debug information beside a mapped file, perf maps of a process. The
 * ways to them are made here; a worker names one component of them at most.
 */
#ifndef SCONCE_BROKER_OTHER_H
#define SCONCE_BROKER_OTHER_H

#include "broker/target.h"
#include "proto/messages.h"

/*
 * The first one that can be opened from ask->need.place on; fills need.place and file of *other.
 * The fd, which is the caller's, or
 *   -ENOENT   there is none
 *   -EPROTO   no kind or no name that a worker that is sound would send
 *   -EPERM    a perf map of somebody else's making
 * or what open.h says of a mapped file. Begins the blame of the file, which the caller ends.
 */
int other_open(const struct target *target, const struct message_ask_other *ask,
	       struct message_other *other);

#endif
