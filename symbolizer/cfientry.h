/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses in call frame information, in the encodings that `.eh_frame` has for them: what cfi.c
 * and the reader of entries (cfientry.c) share. The entries themselves are in cfi.h.
 */
#ifndef SCONCE_SYMBOLIZER_CFIENTRY_H
#define SCONCE_SYMBOLIZER_CFIENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/cfi.h"
#include "symbolizer/cursor.h"

/*
 * An address in this encoding; c lies in the section. False: it cannot be known from the file alone
 * (indirect, or relative to a base that only a process has), or its bytes are not understood.
 */
bool cfientry_address(const struct cfi_section *section, uint8_t encoding, struct cursor *c,
		      uint64_t *address);

#endif
