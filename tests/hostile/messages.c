/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lies in messages: of a kind, a length, a number of descriptors or a frequency that no worker
 * sends.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/hostile/lies.h"

#define FDS_TOO_MANY 200
#define FILES_ASKED  100

/* Whatever it is. */
static void say(int to, uint32_t type, uint32_t len_bytes, size_t bytes, size_t fds_n)
{
	static union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int) * FDS_TOO_MANY)];
	} control;
	static struct message message;
	struct iovec part = {&message, bytes};
	struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
	int fds[FDS_TOO_MANY];

	message.type = type;
	message.len_bytes = len_bytes;
	for (size_t i = 0; i < fds_n; i++)
		fds[i] = FD_LEDGER;
	if (fds_n) {
		packet.msg_control = &control;
		packet.msg_controllen = CMSG_SPACE(sizeof(int) * fds_n);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int) * fds_n);
		memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * fds_n);
	}
	sendmsg(to, &packet, MSG_NOSIGNAL | MSG_DONTWAIT);
}

#define SAY(to, type, payload, fds_n)                                                              \
	say(to, MESSAGE_##type, sizeof(struct message_##payload),                                  \
	    offsetof(struct message, empty) + sizeof(struct message_##payload), fds_n)

static void of_another(struct liar *liar)
{
	(void)liar;
	SAY(FD_SYMBOLIZER_SAMPLER, RANGES, ranges, 0);
}

static void of_nobody(struct liar *liar)
{
	(void)liar;
	say(FD_SYMBOLIZER_SAMPLER, MESSAGE_COUNT + 7, 8, 16, 0);
}

static void too_long(struct liar *liar)
{
	(void)liar;
	say(FD_SYMBOLIZER_SAMPLER, MESSAGE_NEED_FILE, 4000, 4008, 0);
}

static void empty(struct liar *liar)
{
	(void)liar;
	say(FD_SYMBOLIZER_SAMPLER, 0, 0, 0, 0);
}

static void surplus_fd(struct liar *liar)
{
	(void)liar;
	SAY(FD_SYMBOLIZER_SAMPLER, NO_TABLE, table, 1);
}

static void too_many_fds(struct liar *liar)
{
	(void)liar;
	SAY(FD_SYMBOLIZER_SAMPLER, TABLE, table, FDS_TOO_MANY);
}

static void flood_files(struct liar *liar)
{
	struct message_need_file need = {.file_id = 1};

	for (int i = 0; i < 1000; i++)
		channel_send(&liar->worker.sampler, MESSAGE_NEED_FILE, &need, NULL, 0);
}

static void flood_others(struct liar *liar)
{
	struct message_need_other need = {.file_id = 1, .kind = OTHER_DWP};

	for (int i = 0; i < 1000; i++)
		channel_send(&liar->worker.sampler, MESSAGE_NEED_OTHER, &need, NULL, 0);
}

/* Within what is tolerated: what is no debug file, by all names, of all files and processes. */
static void others(struct liar *liar)
{
	static const char *const names[] = {"",	     ".",	 "..",		    "../../etc/shadow",
					    "sh/..", "/etc/shadow", "x\0y.debug", "shadow"};
	struct message_need_other need = {.file_id = 1 + liar->told % FILES_ASKED,
					  .pid = 1 + liar->told % FILES_ASKED,
					  .kind = (uint32_t)lies_random(liar) % (OTHER_KINDS + 2),
					  .place = (uint32_t)lies_random(liar) % 8,
					  .bytes = (uint32_t)lies_random(liar) % 32};
	const char *name = names[liar->told % (sizeof(names) / sizeof(*names))];

	snprintf((char *)need.name, sizeof(need.name), "%s", name);
	if (liar->told % 3)
		need.bytes = (uint32_t)strlen(name);
	if (liar->told % 100 == 99)
		need.bytes = (uint32_t)lies_random(liar);
	channel_send(&liar->worker.sampler, MESSAGE_NEED_OTHER, &need, NULL, 0);
}

static void flood_no_tables(struct liar *liar)
{
	struct message_table none = {.file_id = (uint32_t)lies_random(liar)};

	for (int i = 0; i < 5000; i++)
		channel_send(&liar->worker.sampler, MESSAGE_NO_TABLE, &none, NULL, 0);
}

/* Files of which records stand in the process queue, taken or not. */
static bool was_told(struct liar *liar, const struct file *file)
{
	static bool told[FILES_ASKED + 1];
	static struct queue ahead;
	union introduction record;

	if (!ahead.head) {
		ahead = liar->worker.introductions.queue;
		ahead.cursor = introductions_done(&liar->worker.introductions);
	}
	while (queue_next(&ahead, &record, sizeof(record)) > 0)
		if (record.header.kind == RECORD_FILE && record.file.file_id <= FILES_ASKED)
			told[record.file.file_id] = true;
	return file->announced || told[file->node.key];
}

/*
 * Within what is tolerated: every file that there is, and whether one came that is of others alone.
 * The one before it may have been told of it.
 */
static void all_files(struct liar *liar)
{
	const struct peers *peers = &liar->worker.peers;
	struct message_need_file need = {.file_id = 1 + liar->told % FILES_ASKED};
	const struct file *file = files_get(&liar->worker.files, need.file_id);

	if (liar->first && !was_told(liar, file) && file->received &&
	    file_key_owner(&file->key, peers->n) != peers->self)
		log_warn("got file %u, which is none of its own", need.file_id);
	if (liar->told == 3 * FILES_ASKED)
		log_warn("asked for all files");
	channel_send(&liar->worker.sampler, MESSAGE_NEED_FILE, &need, NULL, 0);
}

/* --- To the supervisor. --- */

static void ready_again(struct liar *liar)
{
	child_ready(&liar->child, 0);
}

static void accuse(struct liar *liar)
{
	child_report(&liar->child, ROLE_SAMPLER, -1);
}

static void as_loader(struct liar *liar)
{
	(void)liar;
	SAY(FD_SUPERVISOR, BPF_FD, bpf_fd, 1);
}

static void hang_up(struct liar *liar)
{
	(void)liar;
	shutdown(FD_SUPERVISOR, SHUT_RDWR);
}

static void drained(struct liar *liar)
{
	liar->child.drained = false;
	for (int i = 0; i < 20; i++, liar->child.drained = false)
		child_drained(&liar->child);
}

/* --- To other workers. --- */

static void peers_junk(struct liar *liar)
{
	for (uint32_t k = 0; k < liar->worker.peers.n; k++)
		SAY(FD_SYMBOLIZER_PEERS + (int)k, NO_TABLE, table, 1);
}

/* And to all, so that nothing of them can be used any more. */
static void hang_up_all(struct liar *liar)
{
	(void)liar;
	shutdown(FD_SYMBOLIZER_SAMPLER, SHUT_RDWR);
	shutdown(FD_SYMBOLIZER_BROKER, SHUT_RDWR);
	for (uint32_t k = 0; k < liar->worker.peers.n; k++)
		shutdown(FD_SYMBOLIZER_PEERS + (int)k, SHUT_RDWR);
}

const struct lie lies_messages[] = {{"of-another", of_another, false},
				    {"of-nobody", of_nobody, false},
				    {"too-long", too_long, false},
				    {"empty", empty, false},
				    {"surplus-fd", surplus_fd, false},
				    {"too-many-fds", too_many_fds, false},
				    {"flood-files", flood_files, false},
				    {"flood-others", flood_others, false},
				    {"others", others, false},
				    {"flood-no-tables", flood_no_tables, false},
				    {"all-files", all_files, false},
				    {"ready-again", ready_again, false},
				    {"accuse", accuse, false},
				    {"as-loader", as_loader, false},
				    {"hang-up", hang_up, true},
				    {"drained", drained, false},
				    {"peers-junk", peers_junk, false},
				    {"hang-up-all", hang_up_all, true},
				    {NULL, NULL, false}};
