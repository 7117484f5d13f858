/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/snapshot.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void snapshot_free(struct snapshot *snapshot)
{
	for (int i = 0; i < SLOT_COUNT; i++)
		if (snapshot->ledgers[i])
			munmap((void *)(uintptr_t)snapshot->ledgers[i], LEDGER_BYTES);
	if (snapshot->config)
		munmap((void *)(uintptr_t)snapshot->config, sizeof(*snapshot->config));
	memset(snapshot, 0, sizeof(*snapshot));
}

void snapshot_take(struct snapshot *snapshot, const struct message_status *status, const int *fds,
		   size_t fds_n)
{
	snapshot_free(snapshot);
	snapshot->status = *status;
	snapshot->config = fds_n ? config_map(fds[0]) : NULL;
	if (!snapshot->config)
		snapshot->status.processes_n = 0;
	if (snapshot->status.processes_n > SLOT_COUNT)
		snapshot->status.processes_n = SLOT_COUNT;
	for (uint32_t i = 0; i < snapshot->status.processes_n; i++) {
		const struct message_status_process *p = &snapshot->status.processes[i];

		if (p->ledger > 0 && p->ledger < fds_n && p->slot < SLOT_COUNT &&
		    !snapshot->ledgers[p->slot])
			snapshot->ledgers[p->slot] = ledger_map(fds[p->ledger]);
	}
	for (size_t i = 0; i < fds_n; i++)
		close(fds[i]);
	snapshot_read(snapshot);
}

void snapshot_read(struct snapshot *snapshot)
{
	static struct ledger_entry entry;

	memset(snapshot->counter, 0, sizeof(snapshot->counter));
	for (int i = 0; i < SLOT_COUNT; i++) {
		const char *role = role_name(slot_role(i));

		if (!snapshot->ledgers[i] || ledger_read(snapshot->ledgers[i], &entry))
			continue;
		/* A process is believed what it counts itself, and nothing else. */
		for (enum counter c = 0; c < COUNTER_COUNT; c++)
			if (strcmp(counter_role(c), role) == 0)
				snapshot->counter[c] += entry.counter[c];
	}
}

uint64_t snapshot_lost(const struct snapshot *snapshot)
{
	uint64_t sum = 0;

	for (enum counter c = 0; c < COUNTER_COUNT; c++)
		if (strncmp(counter_name(c), "lost_", 5) == 0 || strstr(counter_name(c), "_lost_"))
			sum += snapshot->counter[c];
	return sum;
}
