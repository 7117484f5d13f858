/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of questions. They are sent only after the batch that they belong to is committed, so that
 * the broker never hands out a file id that a killed sampler did not give.
 */
#include "sampler/asks.h"

#include <errno.h>

static struct asks_entry *asks_add(struct asks *asks, enum message_type type)
{
	struct asks_entry *entry;

	if (asks->n == ASKS_MAX)
		return NULL;
	entry = &asks->entry[(asks->first + asks->n++) % ASKS_MAX];
	*entry = (struct asks_entry){.type = type};
	return entry;
}

bool asks_process(struct asks *asks, const struct process *p, uint32_t worker, bool ranges)
{
	struct asks_entry *entry = asks_add(asks, MESSAGE_ASK_PROCESS);

	if (!entry)
		return false;
	entry->process = (struct message_ask_process){.pid = p->pid,
						      .worker = worker,
						      .start_lo_ns = p->start_lo_ns,
						      .start_hi_ns = p->start_hi_ns,
						      .exec_id = p->exec_id,
						      .ranges = ranges};
	return true;
}

bool asks_file(struct asks *asks, const struct process *p, uint32_t worker, const struct file *file,
	       const struct record_range *range)
{
	struct asks_entry *entry = asks_add(asks, MESSAGE_ASK_FILE);

	if (!entry)
		return false;
	entry->file = (struct message_ask_file){.pid = p->pid,
						.worker = worker,
						.start_lo_ns = p->start_lo_ns,
						.start_hi_ns = p->start_hi_ns,
						.start = range->start,
						.end = range->end,
						.inode = file->inode,
						.dev_major = file->dev_major,
						.dev_minor = file->dev_minor,
						.file_id = file->id};
	return true;
}

int asks_flush(struct asks *asks, struct channel *broker, struct ledger_writer *ledger)
{
	while (asks->n) {
		const struct asks_entry *entry = &asks->entry[asks->first];
		int err = channel_send(broker, entry->type, &entry->process, NULL, 0);

		if (err == -EPIPE)
			return err;
		if (err) {
			ledger_add(ledger, C_broker_busy, 1);
			return 0;
		}
		ledger_add(ledger, C_broker_asked, 1);
		asks->unanswered += entry->type == MESSAGE_ASK_FILE || entry->process.ranges;
		asks->first = (asks->first + 1) % ASKS_MAX;
		asks->n--;
	}
	return 0;
}

void asks_answered(struct asks *asks)
{
	if (asks->unanswered)
		asks->unanswered--;
}
