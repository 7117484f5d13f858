/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a file that a process has mapped.
 */
#ifndef SCONCE_BROKER_OPEN_H
#define SCONCE_BROKER_OPEN_H

#include "broker/target.h"
#include "proto/messages.h"

/*
 * What target has mapped at [start, end) under this inode, for reading; fills key and path of
 * *file. The fd, which is the caller's, or
 *   -ESTALE       something else is mapped there
 *   -EINVAL       not a regular file
 *   -EOPNOTSUPP   on a filesystem whose server may never answer
 *   -EOWNERDEAD   it has ended or held up us or that worker before
 *   other -errno
 * Begins the blame of the file, which the caller ends.
 */
int open_mapped(const struct target *target, const struct message_ask_file *ask,
		struct message_file *file);

#endif
