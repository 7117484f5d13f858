/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as a pprof file: proto/pprof/profile.proto, gzip'ed. Two values per sample,
 * samples/count and cpu/nanoseconds; labels process, thread, pid, tid, and truncated where a stack
 * is not complete.
 */
#ifndef SCONCE_PROFILE_PPROF_H
#define SCONCE_PROFILE_PPROF_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* *bytes is malloc'ed and the caller's. 0 or -errno. */
int pprof_write(const struct profile *profile, uint8_t **bytes, size_t *len_bytes);

#endif
