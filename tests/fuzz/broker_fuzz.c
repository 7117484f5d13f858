/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as packets from the sampler to the broker. All processes that it is asked about are
 * this one, or none.
 */
int broker_main(int argc, char **argv);
#define main broker_main
#include "broker/main.c"
#undef main

#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/packets.h"

#define NO_PID 0x40000000u /* above every pid_max */

const unsigned fuzz_mutations = 1000;

static int pairs[4][2]; /* supervisor, sampler, workers */

static void open_once(void)
{
	static struct config config;
	static struct ledger ledger, worker_ledger;

	for (int i = 0; i < 4; i++)
		if (channel_pair(pairs[i]))
			abort();
	config.workers = 2;
	self.child.config = &config;
	self.child.ledger.shared = &ledger;
	self.blame = &ledger.blame;
	self.ledger[1] = &worker_ledger;
	channel_init(&self.child.supervisor, pairs[0][0], ROLE_BROKER, ROLE_SUPERVISOR, true);
	for (int k = 0; k < 2; k++)
		channel_init(&self.worker[k], pairs[2 + k][0], ROLE_BROKER, ROLE_SYMBOLIZER, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct packets packets = {data, data + size};
	static struct message message;

	if (!self.child.config)
		open_once();
	/* And whom a worker blames: any bytes as well. */
	memcpy((void *)(uintptr_t)&self.ledger[1]->blame, data,
	       size < sizeof(struct blame) ? size : sizeof(struct blame));
	memset(self.blame, 0, sizeof(*self.blame));
	channel_init(&self.sampler, pairs[1][0], ROLE_BROKER, ROLE_SAMPLER, true);
	while (packets_send(&packets, pairs[1][1])) {
		if (channel_recv(&self.sampler, &message, NULL, NULL))
			continue;
		/* pid stands first in both */
		message.ask_process.pid = message.ask_process.pid % 8
					      ? (uint32_t)getpid()
					      : NO_PID | message.ask_process.pid;
		handle(&message);
		packets_discard(pairs[1][1]);
	}
	for (int i = 0; i < 4; i++)
		packets_discard(pairs[i][1]);
	return 0;
}

/* The first mapping of this program that is a file. */
static void seed_file(struct message_ask_file *ask)
{
	static struct target_vma vma;
	struct target target;
	struct target_maps maps;
	uint64_t from = 0;

	if (target_open(&target, (uint32_t)getpid(), 0, UINT64_MAX) ||
	    target_maps_open(&maps, &target))
		abort();
	while (target_maps_next(&maps, from, &vma) == 0 && !vma.range.inode)
		from = vma.range.end;
	target_maps_close(&maps);
	target_close(&target);
	ask->start = vma.range.start;
	ask->end = vma.range.end;
	ask->inode = vma.range.inode;
	ask->dev_major = vma.range.dev_major;
	ask->dev_minor = vma.range.dev_minor;
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	struct message_ask_process process = {
	    .pid = 1, .start_hi_ns = UINT64_MAX, .exec_id = 3, .ranges = 1};
	struct message_ask_file file = {
	    .pid = 1, .start_hi_ns = UINT64_MAX, .file_id = 1};
	struct message_ask_other other = {.need = {.kind = n, .bytes = 7, .name = "x.debug"}};
	size_t at;

	if (n > OTHER_KINDS)
		return 0;
	process.worker = file.worker = n % 2;
	seed_file(&file);
	other.file = file;
	at = packets_add(data, 0, MESSAGE_ASK_PROCESS, &process, sizeof(process), 0);
	at = packets_add(data, at, MESSAGE_ASK_FILE, &file, sizeof(file), 0);
	return packets_add(data, at, MESSAGE_ASK_OTHER, &other, sizeof(other), 0);
}
