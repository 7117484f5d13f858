/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/view.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shm/ledger.h"

bool view_open(struct view *view, const void *record)
{
	const struct record_sample *r = record;
	uint64_t expected, len = r->header.len_bytes;
	const char *behind;

	if (r->header.kind != RECORD_SAMPLE || len < sizeof(*r) ||
	    r->kernel_frames > RECORD_KERNEL_FRAMES_MAX || r->user_slots > RECORD_USER_FRAMES_MAX ||
	    r->stop >= STOP_COUNT || r->cpu >= LEDGER_CPUS ||
	    r->stack_bytes > RECORD_STACK_BYTES_MAX)
		return false;
	expected = sizeof(*r) + (r->kernel_frames + r->user_slots) * sizeof(struct frame);
	behind = (const char *)record + expected;
	*view = (struct view){.record = r, .user = r->frames + r->kernel_frames};
	if (r->header.flags & RECORD_HAS_STACK)
		expected += sizeof(view->regs) + r->stack_bytes;
	/* Records are padded to 8 bytes. */
	if (expected > len || len - expected >= 8)
		return false;
	if (r->header.flags & RECORD_HAS_STACK) {
		memcpy(&view->regs, behind, sizeof(view->regs));
		view->stack = behind + sizeof(view->regs);
		view->deferred = r->stop == STOP_DEFERRED;
	}
	return true;
}
