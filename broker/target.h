/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that the broker was asked about: pinned, identified, and its executable mappings.
 */
#ifndef SCONCE_BROKER_TARGET_H
#define SCONCE_BROKER_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/messages.h"
#include "shm/blame.h"

struct target {
	int pidfd;
	int dir; /* /proc/PID, or of one of its threads: bound to this task, not to its number */
	bool by_thread;	     /* the first thread has ended, and with it what /proc/PID could show */
	struct blame *blame; /* written before a file of it is touched */
	const struct blame *of_worker; /* by whom the file would be read; may be NULL */
};

struct target_vma {
	struct message_range range; /* without flags */
	char name[PATH_MAX];	    /* may be empty; for telling apart what has no file */
};

/* Executable mappings in the order of addresses. */
struct target_maps {
	int fd;
	FILE *text; /* before Linux 6.11: /proc/PID/maps is read as text */
};

/* 0; -ESRCH when there is no such process that started in [start_lo_ns, start_hi_ns]. */
int target_open(struct target *target, uint32_t pid, uint64_t start_lo_ns, uint64_t start_hi_ns);
void target_close(struct target *target);
/* It has not ended since target_open(), nor has the thread by which it is looked at. */
bool target_alive(const struct target *target);
/* Bytes of a file of /proc/PID, cut at size; at least 0. */
size_t target_read(const struct target *target, const char *name, char *buf, size_t size);
/* Text of a link in /proc/PID, cut, with NUL; "" when it cannot be read. */
void target_link(const struct target *target, const char *name, char *buf, size_t size);

int target_maps_open(struct target_maps *maps, const struct target *target);
/* The first executable mapping that ends behind address, which must not go back. 0, -ENOENT,
 * -errno. */
int target_maps_next(struct target_maps *maps, uint64_t address, struct target_vma *vma);
void target_maps_close(struct target_maps *maps);

#endif
