/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that throw: _Unwind_RaiseException and its like in libgcc.
 *
 * Before such a function goes over to the handler it copies what the handler's frame has saved, the
 * return address included, over what it has saved itself (uw_install_context_1). Its note says all
 * the while that its own return address is there, so that from then on it seems to be called by the
 * handler, at a wrong place of the stack. But it has noted the address at its beginning, in its
 * struct _Unwind_Context: that is where these rules take it from. Where the code is not as it is
 * known here, nothing is changed.
 */
#ifndef SCONCE_SYMBOLIZER_EHRETURN_H
#define SCONCE_SYMBOLIZER_EHRETURN_H

#include <stddef.h>
#include <stdint.h>

#include "shm/table.h"
#include "symbolizer/cfi.h"

#define EHRETURN_EDGES 3

struct ehreturn {
	/* Addresses: noted; what was saved begins to be overwritten; the frame is gone. 0: another
	 * function. */
	uint64_t edges[EHRETURN_EDGES];
	int16_t ra_offset; /* of the note, from the CFA */
};

/* Whether a function may be such a one; only then its code is worth a look. */
int ehreturn_may_be(const struct cfi_fde *fde);
/* code: that of the function, from its start on. */
void ehreturn_find(const struct cfi_fde *fde, const uint8_t *code, size_t n,
		   struct ehreturn *found);
/* What holds at this address, given what the note says. */
void ehreturn_correct(const struct ehreturn *found, uint64_t vaddr, struct table_rule *rule);

#endif
