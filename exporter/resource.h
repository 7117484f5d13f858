/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an OTLP resource says about a process. One resource per (cgroup, executable): processes that
 * agree in both are one workload.
 *
 * service.name is, in this order: OTEL_SERVICE_NAME; service.name of OTEL_RESOURCE_ATTRIBUTES; the
 * systemd unit without ".service" (not the per-user manager, which holds everything of a session);
 * the name of the executable; for kernel threads their name up to the first '/' or ':', so that all
 * kworkers are one; "unknown_service".
 */
#ifndef SCONCE_EXPORTER_RESOURCE_H
#define SCONCE_EXPORTER_RESOURCE_H

#include <stdint.h>

#include "profile/profile.h"
#include "proto/config.h"

/* As the worker told it; "" where not known. */
struct resource_process {
	const char *executable, *cgroup, *container_id, *unit, *comm;
};

/* Define it. The id, or 0 with errno as in profile.h. */
uint32_t resource_define(struct profile *profile, const struct config *config,
			 const struct resource_process *process);

#endif
