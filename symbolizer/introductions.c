/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/introductions.h"

uint64_t introductions_done(const struct introductions *in)
{
	return in->queue.cursor - (uint64_t)(in->held_bytes > 0 ? in->held_bytes : 0);
}

/* Where in the sample queue a record belongs; 0 = anywhere. */
static uint64_t introduction_after(const union introduction *record)
{
	switch (record->header.kind) {
	case RECORD_PROCESS:
		return record->process.after;
	case RECORD_MAPPING:
		return record->mapping.after;
	default:
		return 0;
	}
}

static void introductions_apply(struct introductions *in, const union introduction *record)
{
	if (record->header.kind == RECORD_FILE && record->header.len_bytes == sizeof(record->file))
		files_record(in->files, &record->file);
	else if (processes_record(in->processes, &record->header) &&
		 record->header.kind == RECORD_MAPPING)
		files_mapped(in->files, record->mapping.range.file_id);
}

int introductions_take(struct introductions *in, uint64_t sample)
{
	int taken = 0;

	for (;; taken = 1) {
		if (in->held_bytes == 0)
			in->held_bytes = queue_next(&in->queue, &in->held, sizeof(in->held));
		if (in->held_bytes < 0)
			return (int)in->held_bytes;
		if (in->held_bytes == 0 || introduction_after(&in->held) > sample)
			return taken;
		introductions_apply(in, &in->held);
		in->held_bytes = 0;
	}
}

/* Does the record tell what the process of this sample had mapped? */
static bool introduction_is_of(const union introduction *record, const struct record_sample *sample)
{
	const struct record_process *process = &record->process;

	return record->header.kind == RECORD_PROCESS &&
	       record->header.len_bytes == sizeof(*process) && process->pid == sample->pid &&
	       process->start_lo_ns <= sample->start_ns &&
	       sample->start_ns <= process->start_hi_ns &&
	       (process->exec_id == 0 || process->exec_id == sample->exec_id) &&
	       !(process->flags & PROCESS_PENDING);
}

/* Where the record stands that the sample waits for, and how many belong to it; 0 = nowhere. */
static uint32_t introductions_find(struct introductions *in, const struct record_sample *sample,
				   uint64_t *at)
{
	union introduction record;

	*at = in->queue.cursor;
	while (queue_next(&in->queue, &record, sizeof(record)) > 0) {
		if (introduction_is_of(&record, sample))
			return 1 + record.process.mappings;
		*at = in->queue.cursor;
	}
	return 0;
}

void introductions_look_ahead(struct introductions *in, const struct record_sample *sample)
{
	uint64_t cursor = in->queue.cursor, done = introductions_done(in), at;
	union introduction record;
	uint32_t left;

	in->queue.cursor = done;
	left = introductions_find(in, sample, &at);
	in->queue.cursor = done;
	while (left > 0 && queue_next(&in->queue, &record, sizeof(record)) > 0) {
		bool reached = in->queue.cursor > at;

		/* Files of which the ranges speak; their ids mean the same at any time. */
		if (reached || record.header.kind == RECORD_FILE)
			introductions_apply(in, &record);
		left -= reached;
	}
	in->queue.cursor = cursor;
}
