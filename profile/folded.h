/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks: a line per stack, `comm;root;...;leaf count`. Kernel frames end in _[k], inlined
 * ones in _[i]. Equal lines are merged, and the lines are sorted, so that two files can be
 * compared. Bytes that would break a line (';', control characters) become ':' and ' '. No frame is
 * left out; a stack that is not complete says so in its first frame: [truncated: no_row].
 */
#ifndef SCONCE_PROFILE_FOLDED_H
#define SCONCE_PROFILE_FOLDED_H

#include <stddef.h>

#include "profile/profile.h"

/* *text is malloc'ed and the caller's, ends in NUL; *len_bytes without it. 0 or -errno. */
int folded_write(const struct profile *profile, char **text, size_t *len_bytes);

#endif
