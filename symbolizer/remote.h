/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process, through the descriptor of /proc/PID/mem that the broker handed over. The
 * process goes on while it is read. What is read for one frame is bounded.
 */
#ifndef SCONCE_SYMBOLIZER_REMOTE_H
#define SCONCE_SYMBOLIZER_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REMOTE_READS_MAX 96	    /* of a frame */
#define REMOTE_BYTES_MAX (256u << 10) /* likewise */

struct remote {
	int fd;
	uint32_t reads, bytes; /* since remote_begin() */
};

/* A frame begins. */
void remote_begin(struct remote *remote);
/* All of it, or false: not there, or more than a frame may. */
bool remote_read(struct remote *remote, uint64_t from, void *to, size_t bytes);
/* A word; false likewise. */
bool remote_u64(struct remote *remote, uint64_t from, uint64_t *value);
bool remote_u32(struct remote *remote, uint64_t from, uint32_t *value);
/* Text that ends in NUL, cut at size - 1 and ended in any case. */
bool remote_text(struct remote *remote, uint64_t from, char *to, size_t size);

#endif
