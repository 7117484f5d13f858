/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory cgroup of our own around the supervisor and its children, below the one that we run in:
 * the kernel holds the sum to what the limits of the single processes add up to.
 *
 * With cgroup v1 wherever the directory may be written to. With v2 only where the cgroup is
 * delegated to us (systemd: Delegate=yes), because processes may only be in leaves there, and
 * others may be in ours.
 */
#ifndef SCONCE_CLI_CGROUP_H
#define SCONCE_CLI_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_PATH_BYTES 4096

struct cgroup {
	char path[CGROUP_PATH_BYTES]; /* of our own; "" = there is none */
	char why[128];		      /* ... because of this */
};

/* Make one with this limit. What an instance left that was killed is removed. */
bool cgroup_make(struct cgroup *cgroup, uint64_t limit_bytes);
/* The calling process goes into it. */
void cgroup_enter(const struct cgroup *cgroup);
/* When all in it have ended, or are about to. */
void cgroup_remove(struct cgroup *cgroup);

/* Could we make one? Nothing is changed. False: cgroup->why says why not. root: "" but in tests. */
bool cgroup_probe(struct cgroup *cgroup, const char *root);

#endif
