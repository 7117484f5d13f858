/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a sample record, after every length and number in it was checked: from here on
 * nobody looks at a sample that may lie about where its parts are.
 */
#ifndef SCONCE_SYMBOLIZER_VIEW_H
#define SCONCE_SYMBOLIZER_VIEW_H

#include <stdbool.h>

#include "shm/record.h"

struct view {
	const struct record_sample *record;
	const struct frame *user; /* record->user_slots of them */
	struct record_regs regs;  /* when deferred, with record->stack_bytes of stack */
	const char *stack;
	bool deferred; /* to be walked here */
};

/* record: as the queue gave it, its len_bytes in the buffer. Valid as long as that. False:
 * malformed. */
bool view_open(struct view *view, const void *record);

#endif
