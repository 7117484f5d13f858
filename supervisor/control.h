/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Those who ask the supervisor: the cli that started it, and `sconce status` over the control socket.
 */
#ifndef SCONCE_SUPERVISOR_CONTROL_H
#define SCONCE_SUPERVISOR_CONTROL_H

#include "proto/config.h"
#include "proto/messages.h"

/*
 * Serve the cli that started us, and FD_SUPERVISOR_CONTROL where there is one. When our cli goes, we
 * drain. config is borrowed for good.
 */
void control_init(const struct config *config);

/* Tell it how starting went; into the log when there is no cli. */
void control_started(const struct message_started *started);

/* Events of EVENT_CONTROL and EVENT_CLIENT. */
void control_accept(uint32_t index, uint32_t generation);
void control_event(uint32_t client, uint32_t generation);

#endif
