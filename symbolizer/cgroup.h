/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of /proc/PID/cgroup -> the path that names the workload, the bare container id, the
 * systemd unit. Knows v1, v2 and hybrid, Docker, containerd, CRI-O, Podman and Kubernetes, and
 * a reader in a cgroup namespace, who cannot tell only the container that it is in itself. The bytes are
 * hostile: anyone may name a cgroup of his own.
 */
#ifndef SCONCE_SYMBOLIZER_CGROUP_H
#define SCONCE_SYMBOLIZER_CGROUP_H

#include <stddef.h>

#define CGROUP_PATH_BYTES 1024
#define CGROUP_UNIT_BYTES 256

struct cgroup {
	char path[CGROUP_PATH_BYTES]; /* "" = not known */
	char container_id[65];	      /* 64 hex digits; "" = not in a container */
	char unit[CGROUP_UNIT_BYTES]; /* inside the container if there is one; "" = none */
};

void cgroup_parse(struct cgroup *cgroup, const char *bytes, size_t n);

#endif
