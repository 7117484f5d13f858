/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/fds.h"
#include "shm/segment.h"
#include "symbolizer/filetable.h"

#define MESSAGES_PER_TURN 64
#define SILENT_NS 60000000000ull

void peers_open(struct peers *peers, struct filetables *tables, uint32_t n, uint32_t self)
{
	memset(peers, 0, sizeof(*peers));
	peers->tables = tables;
	peers->n = n;
	peers->self = self;
	tables->peers = peers;
	for (uint32_t k = 0; k < n; k++)
		channel_init(&peers->peer[k].channel, FD_SYMBOLIZER_PEERS + (int)k,
			     ROLE_SYMBOLIZER, ROLE_SYMBOLIZER, true);
}

/* Again as long as there is no room, which whoever lied here before may have left so. */
static void peers_introduce(struct peers *peers)
{
	struct message_need_file all = {.file_id = 0};

	for (uint32_t k = 0; k < peers->n; k++)
		if (k != peers->self && !peers->peer[k].introduced)
			peers->peer[k].introduced =
			    channel_send(&peers->peer[k].channel, MESSAGE_WANT_TABLE, &all, NULL,
					 0) != -EAGAIN;
}

bool peers_borrow(struct peers *peers, struct file *file, uint64_t now_ns)
{
	struct message_need_file want = {.file_id = file->node.key};
	uint32_t owner = file_key_owner(&file->key, peers->n);
	struct peer *peer = &peers->peer[owner];

	if (owner == peers->self || file->node.key == RECORD_VDSO_FILE_ID || file->own_table ||
	    peer->deaf || now_ns < peer->silent_until_ns)
		return false;
	if (file->borrow_until_ns == 0) {
		if (channel_send(&peer->channel, MESSAGE_WANT_TABLE, &want, NULL, 0))
			return false;
		file->borrow_until_ns = now_ns + PEERS_WAIT_NS;
	}
	if (now_ns < file->borrow_until_ns)
		return true;
	file->borrow_until_ns = 0;
	peer->silent_until_ns = now_ns + SILENT_NS;
	return false;
}

void peers_give_up(struct file *file)
{
	file->borrow_until_ns = 0;
	file->own_table = true;
}

void peers_remind(struct peers *peers, const struct file *file)
{
	struct message_need_file want = {.file_id = file->node.key};

	channel_send(&peers->peer[file->lender - 1].channel, MESSAGE_WANT_TABLE, &want, NULL, 0);
}

/* --- Lending. --- */

static void peers_want(struct peers *peers, uint32_t k, uint32_t file_id, uint64_t now_ns)
{
	uint32_t i = 0;

	while (i < peers->asked_n && peers->asked[i].file_id != file_id)
		i++;
	if (i == PEERS_ASKED_MAX)
		return; /* it will make its own */
	if (i == peers->asked_n)
		peers->asked[peers->asked_n++].borrowers = 0;
	peers->asked[i].file_id = file_id;
	peers->asked[i].borrowers |= 1u << k;
	peers->asked[i].until_ns = now_ns + PEERS_WAIT_NS;
}

static void peers_answer(struct peers *peers, uint32_t borrowers, const struct file *file)
{
	struct message_table answer = {.file_id = file->node.key,
				       .bytes = (uint32_t)file->table_bytes};
	int fd = file->table ? filetable_memfd(file->table, file->table_bytes) : -1;
	enum message_type type = fd >= 0	    ? MESSAGE_LEND_TABLE
				 : file->table_none ? MESSAGE_LEND_NONE
						    : MESSAGE_LEND_REFUSED;

	for (uint32_t k = 0; k < peers->n; k++)
		if (borrowers & 1u << k)
			channel_send(&peers->peer[k].channel, type, &answer, &fd, fd >= 0);
	if (fd >= 0)
		close(fd);
}

/* True when the answer is out, or comes too late. */
static bool peers_lend(struct peers *peers, uint32_t i, uint64_t now_ns)
{
	struct file *file = files_get(peers->tables->files, peers->asked[i].file_id);

	if (now_ns >= peers->asked[i].until_ns)
		return true;
	if (filetable_make(peers->tables, file) || file->refused) {
		peers_answer(peers, peers->asked[i].borrowers, file);
		return true;
	}
	files_need(peers->tables->files, file, now_ns);
	return false;
}

/* --- Borrowing. --- */

/* The table in the first bytes of this memfd, as memory of its own; NULL when there is none. */
static struct table_header *peers_read(int fd, uint32_t bytes)
{
	struct table_header *table;

	if (bytes < sizeof(*table) || bytes > TABLE_BYTES_MAX || segment_size(fd) < (long)bytes ||
	    !(table = malloc(bytes)))
		return NULL;
	if (pread(fd, table, bytes, 0) == (ssize_t)bytes && table_check(table, bytes) == 0)
		return table;
	free(table);
	return NULL;
}

/* False when no honest worker says so. */
static bool peers_lent(struct peers *peers, uint32_t k, const struct message *message, int fd)
{
	const struct message_table *lent = &message->table;
	struct file *file = files_get(peers->tables->files, lent->file_id);
	struct table_header *table;

	/* Also the answer to a question that was given up. */
	if (file->borrow_until_ns == 0 || file_key_owner(&file->key, peers->n) != k)
		return true;
	file->borrow_until_ns = 0;
	file->own_table = message->type == MESSAGE_LEND_REFUSED;
	if (file->own_table)
		return true;
	table = fd < 0 ? NULL : peers_read(fd, lent->bytes);
	if (fd >= 0 && !table)
		return false;
	filetable_adopt(peers->tables, file, table, lent->bytes, k + 1);
	peers->borrowed++;
	return true;
}

static bool peers_handle(struct peers *peers, uint32_t k, const struct message *message, int fd,
			 uint64_t now_ns)
{
	if (message->type != MESSAGE_WANT_TABLE)
		return peers_lent(peers, k, message, fd);
	if (message->need_file.file_id)
		peers_want(peers, k, message->need_file.file_id, now_ns);
	else
		filetable_forget_lent(peers->tables, k + 1);
	return true;
}

static void peers_read_messages(struct peers *peers, uint32_t k, uint64_t now_ns)
{
	struct message message;
	int fds[MESSAGE_FDS_MAX];

	for (int i = 0; i < MESSAGES_PER_TURN && !peers->peer[k].deaf; i++) {
		size_t fds_n = 0;
		int err = channel_recv(&peers->peer[k].channel, &message, fds, &fds_n);

		if (err == -EAGAIN)
			return;
		peers->peer[k].deaf = err || !peers_handle(peers, k, &message,
							   fds_n ? fds[0] : -1, now_ns);
		peers->refused += peers->peer[k].deaf;
		/* Nor is it heard when it takes back what it lent. */
		if (peers->peer[k].deaf)
			filetable_forget_lent(peers->tables, k + 1);
		while (fds_n)
			close(fds[--fds_n]);
	}
}

void peers_turn(struct peers *peers, uint64_t now_ns)
{
	uint32_t kept = 0;

	peers_introduce(peers);
	for (uint32_t k = 0; k < peers->n; k++)
		if (k != peers->self)
			peers_read_messages(peers, k, now_ns);
	for (uint32_t i = 0; i < peers->asked_n; i++)
		if (!peers_lend(peers, i, now_ns))
			peers->asked[kept++] = peers->asked[i];
	peers->asked_n = kept;
}
