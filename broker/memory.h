/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process that runs scripts, for the names of their functions.
 */
#ifndef SCONCE_BROKER_MEMORY_H
#define SCONCE_BROKER_MEMORY_H

#include "broker/target.h"
#include "proto/config.h"
#include "proto/messages.h"

/*
 * /proc/PID/mem, to read only, of a process that has a runtime mapped where ask->file says: by its
 * name on our list, or in the configuration. The fd, which is the caller's, or -ESTALE something
 * else is mapped there -EPERM        it is no runtime, or the process is one of ours -EOWNERDEAD it
 * has held up that worker before other -errno
 */
int memory_open(const struct target *target, const struct message_ask_other *ask,
		const struct config *config);

#endif
