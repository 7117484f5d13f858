/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as packets to the supervisor, from each of its children in turn, of which none runs.
 * Whatever they say, nobody is started, and nothing of the loader's is believed.
 */
int supervisor_main(int argc, char **argv);
#define main supervisor_main
#include "supervisor/main.c"
#undef main

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/packets.h"

const unsigned fuzz_mutations = 2000;

static const int slots[] = {ROLE_SYMBOLIZER, ROLE_EXPORTER, ROLE_SAMPLER, ROLE_VIEWER, ROLE_BROKER};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct packets packets = {data, data + size};
	static struct message message;
	static int pair[2];
	int fds[MESSAGE_FDS_MAX], slot;
	size_t n;

	if (!config) {
		config = calloc(1, sizeof(*config));
		log_init(ROLE_SUPERVISOR, LOG_ERROR);
		if (channel_pair(pair))
			abort();
	}
	for (int i = 0; i < 5; i++)
		channel_init(&watch_slot(slots[i])->channel, pair[0], ROLE_SUPERVISOR,
			     slot_role(slots[i]), false);
	for (int i = 0; packets_send(&packets, pair[1]); i++) {
		slot = slots[i % 5];
		n = 0;
		if (channel_recv(&watch_slot(slot)->channel, &message, fds, &n) == 0)
			on_message(slot, &message, fds, n);
	}
	for (int i = 0; i < SLOT_COUNT; i++)
		if (watch_slot(i)->pid || watch_slot(i)->state != SLOT_OFF)
			abort();
	return 0;
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	struct message_violation violation = {.slot = n ? ROLE_SYMBOLIZER : ROLE_SAMPLER,
					      .error = 71};
	static struct message_loaded loaded;
	struct message_bpf_fd bpf = {.object = BPF_RANGES};
	struct message_empty empty = {0};
	size_t at = 0;

	if (n >= 2)
		return 0;
	for (int i = 0; i < 5; i++)
		at = packets_add(data, at, MESSAGE_READY, &empty, sizeof(empty), 0);
	for (int i = 0; i < 5; i++)
		at = packets_add(data, at, MESSAGE_VIOLATION, &violation, sizeof(violation), 0);
	at = packets_add(data, at, MESSAGE_DRAINED, &empty, sizeof(empty), 0);
	at = packets_add(data, at, MESSAGE_BPF_FD, &bpf, sizeof(bpf), 1);
	at = packets_add(data, at, MESSAGE_WANT_CHUNK, &empty, sizeof(empty), 0);
	return packets_add(data, at, MESSAGE_LOADED, &loaded, 20, 0);
}
