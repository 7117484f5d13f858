/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock: no file, no TCP and nobody else's processes, whatever system calls are allowed. What
 * was opened before stays open.
 */
#ifndef SCONCE_SUPERVISOR_LANDLOCK_H
#define SCONCE_SUPERVISOR_LANDLOCK_H

#include <stdbool.h>

/*
 * readable: directories below which files may still be read, ends in NULL; NULL = none. Those that
 * do not exist are passed over. Directories and not files, because a rule is about an inode, and a
 * file that is replaced has another one. connects: TCP connections may be made.
 * 0, or -errno: -EOPNOTSUPP or -ENOSYS where the kernel does not have it.
 */
int landlock_restrict(const char *const *readable, bool connects);

#endif
