/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of messages. A worker may say anything at any time: the worst that it gets is a question
 * to the broker about a file that it was told of, or is to compile, at the frequency that the channel
 * allows.
 */
#include "sampler/inbox.h"

#include <errno.h>
#include <unistd.h>

#define HURRY_NS	  1000000000ull
#define MESSAGES_PER_TURN 1024

_Static_assert(SLICES_MAX == MESSAGE_RANGES_PROCESS, "the broker sends what is kept");

/* One range of the broker's; it knows no generations. False: no id to be had. */
static bool inbox_range(struct inbox *inbox, const struct message_range *r,
			struct record_range *range)
{
	struct file *file;

	*range = (struct record_range){.start = r->start,
				       .end = r->end,
				       .offset = r->offset,
				       .file_id = r->flags & RANGE_VDSO ? RECORD_VDSO_FILE_ID : 0,
				       .flags = r->flags & RANGE_ANON};
	if (r->flags)
		return true;
	file = files_of(inbox->introduce->files, r->dev_major, r->dev_minor, r->inode, 0, "");
	range->file_id = file ? file->id : 0;
	return file;
}

static void inbox_collect(struct inbox *inbox, const struct message_ranges *m)
{
	if (m->first) {
		inbox->pid = m->pid;
		inbox->exec_id = m->exec_id;
		inbox->n = 0;
		inbox->whole = true;
	}
	if (inbox->pid != m->pid || inbox->exec_id != m->exec_id || m->n > MESSAGE_RANGES_MAX)
		inbox->whole = false;
	for (uint32_t i = 0; inbox->whole && i < m->n; i++) {
		if (inbox->n == SLICES_MAX) {
			ledger_add(inbox->introduce->ledger, C_ranges_refused, m->n - i);
			return;
		}
		if (m->range[i].start < m->range[i].end &&
		    inbox_range(inbox, &m->range[i], &inbox->range[inbox->n]))
			inbox->n++;
		else
			ledger_add(inbox->introduce->ledger, C_files_refused, 1);
	}
}

static void inbox_ranges(struct inbox *inbox, const struct message *message)
{
	const struct message_ranges *m = &message->ranges;
	struct introduce *in = inbox->introduce;
	struct process *p;

	inbox_collect(inbox, m);
	if (!m->last)
		return;
	in->unanswered -= in->unanswered > 0;
	p = processes_find(in->processes, m->pid);
	/* Asked for another life or another image of this pid: of no use any more. */
	if (!p || !p->asked || p->exec_id != m->exec_id || p->start_lo_ns != m->start_lo_ns)
		return;
	if (m->error) {
		processes_refuse(in->processes, p);
		introduce_answer(in, p, m->error);
	} else if (inbox->whole &&
		   processes_answer(in->processes, p, inbox->range, inbox->n, m->time_ns)) {
		introduce_answer(in, p, p->ranges_known ? 0 : ENOSPC);
	}
	inbox->whole = false;
}

/* Errors that another try, perhaps through another process, may not meet. */
static bool inbox_may_retry(int32_t error)
{
	return error == ESRCH || error == ENOENT || error == ESTALE || error == EAGAIN ||
	       error == ENOMEM || error == ENFILE || error == EMFILE;
}

static void inbox_file_key(struct inbox *inbox, const struct message *message)
{
	const struct message_file_key *m = &message->file_key;
	struct files *files = inbox->introduce->files;
	struct file *file = files_by_id(files, m->file_id);

	inbox->introduce->unanswered -= inbox->introduce->unanswered > 0;
	if (!file)
		return;
	if (m->error) {
		if (inbox_may_retry(m->error)) {
			file->asked &= ~(1u << m->worker % WORKERS_MAX); /* the others have it */
			inbox->introduce->hurry_ns = inbox->introduce->now_ns + HURRY_NS;
		}
		return;
	}
	if (file->key.inode &&
	    (file->key.mtime_ns != m->key.mtime_ns || file->key.size_bytes != m->key.size_bytes))
		files_forget(files, file);
	file->key = m->key;
}

static void inbox_need_file(struct inbox *inbox, const struct message *message)
{
	struct introduce *in = inbox->introduce;

	if (message->need_file.file_id) {
		introduce_file_again(in, inbox->worker, message->need_file.file_id);
		return;
	}
	introduce_forgotten(in, inbox->worker);
	/* Whatever ended the one before: perhaps what it made is wrong. */
	store_withdraw(inbox->store, inbox->worker, in->now_ns);
}

static void inbox_need_other(struct inbox *inbox, const struct message *message)
{
	introduce_other(inbox->introduce, inbox->worker, &message->need_other);
}

/* A worker speaks of files that it was handed, and of no others but the vdso, which all have. */
static bool inbox_may_table(struct inbox *inbox, uint32_t file_id)
{
	const struct file *file = files_by_id(inbox->introduce->files, file_id);

	return file_id == RECORD_VDSO_FILE_ID || (file && (file->asked & 1u << inbox->worker));
}

static void inbox_table(struct inbox *inbox, const struct message *message)
{
	const struct message_table *m = &message->table;

	if (!inbox_may_table(inbox, m->file_id))
		return;
	inbox->broken = store_install(inbox->store, m->file_id, inbox->worker, inbox->fd, m->bytes,
				      inbox->introduce->now_ns) == -EPROTO;
	if (inbox->broken)
		store_withdraw(inbox->store, inbox->worker, inbox->introduce->now_ns);
	processes_tabled(inbox->introduce->processes, m->file_id);
}

static void inbox_no_table(struct inbox *inbox, const struct message *message)
{
	if (inbox_may_table(inbox, message->table.file_id))
		store_install_none(inbox->store, message->table.file_id, inbox->worker,
				   message->table.bytes != 0, inbox->introduce->now_ns);
}

int inbox_read(struct inbox *inbox, struct channel *channel, uint32_t worker)
{
	static void (*const handlers[MESSAGE_COUNT])(struct inbox *, const struct message *) = {
	    [MESSAGE_RANGES] = inbox_ranges,	   [MESSAGE_FILE_KEY] = inbox_file_key,
	    [MESSAGE_NEED_FILE] = inbox_need_file, [MESSAGE_TABLE] = inbox_table,
	    [MESSAGE_NO_TABLE] = inbox_no_table,   [MESSAGE_NEED_OTHER] = inbox_need_other,
	};
	static struct message message;
	int fds[MESSAGE_FDS_MAX], broken = 0;

	inbox->worker = worker;
	for (int i = 0; i < MESSAGES_PER_TURN; i++) {
		size_t fds_n = 0;
		int err = channel_recv(channel, &message, fds, &fds_n);

		/* What else a liar has sent is read now, or its successor would answer for it. */
		if (err == -EPROTO && (broken = err))
			continue;
		if (err)
			return err == -EAGAIN ? broken : err;
		inbox->broken = !handlers[message.type];
		inbox->fd = fds_n ? fds[0] : -1;
		if (!inbox->broken)
			handlers[message.type](inbox, &message);
		while (fds_n)
			close(fds[--fds_n]);
		broken = inbox->broken ? -EPROTO : broken;
		/* A table may take milliseconds: one per turn, the rings come first. */
		if (message.type == MESSAGE_TABLE)
			break;
	}
	return broken;
}
