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

/*
 * The same of what a link leads to, or /proc/self/fd/N of a path that was walked (-EOPNOTSUPP also:
 * on a mount that is listed nowhere). Links are of /proc/PID, or absolute.
 */
int open_link(const struct target *target, const char *link, struct message_file *file);

/* The mapping that was asked for, with its path. 0, -ESTALE or -errno. */
int open_find(const struct target *target, const struct message_ask_file *ask,
	      struct target_vma *vma);

/* Is it of a filesystem that answers? 0; -EOPNOTSUPP: perhaps not, or it is listed nowhere. */
int open_check_mount(const struct target *target, uint64_t mount);
/*
 * And all mounts on the way to this path, which has no links in it? By a list of mounts: a file of
 * /proc/PID, or an absolute path. 0; -ENOENT: no mount is on it; -EOPNOTSUPP.
 */
int open_check_way(const struct target *target, const char *list, const char *path);

#endif
