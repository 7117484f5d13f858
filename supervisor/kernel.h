/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor holds of the kernel: the BPF and perf descriptors that the loader hands over.
 * Nothing is read from any of them here.
 *
 * The side-band rings stay mapped here for good, because the kernel frees a ring together with its
 * last mapping, and the sampler may be between two lives.
 */
#ifndef SCONCE_SUPERVISOR_KERNEL_H
#define SCONCE_SUPERVISOR_KERNEL_H

#include "proto/config.h"
#include "proto/messages.h"

/* Take over what the loader sent. 0, or -EPROTO when it is nothing that we know. */
int kernel_take(const struct message_bpf_fd *what, int fd, struct config_runtime *runtime);

/* The loader was killed half-way: the next one sends everything anew, over what is wired. */
void kernel_forget(struct config_runtime *runtime);

/* Map the side-band rings and switch them on, then sampling. 0 or -errno. */
int kernel_start(const struct config *config);
/* No new samples from here on. */
void kernel_stop(void);

#endif
