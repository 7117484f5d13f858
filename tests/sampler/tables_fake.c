/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sampler/tables_fake.h"

#include <errno.h>

#define ENTRIES 64

static struct {
	uint32_t pid;
	struct bpf_process process;
} entry[ENTRIES];

int tables_publish(uint32_t pid, const struct bpf_process *process)
{
	int at = -1;

	for (int i = 0; i < ENTRIES; i++)
		if (entry[i].pid == pid || (at < 0 && entry[i].pid == 0))
			at = i;
	if (at < 0)
		return -E2BIG;
	entry[at].pid = pid;
	entry[at].process = *process;
	return 0;
}

void tables_remove(uint32_t pid)
{
	for (int i = 0; i < ENTRIES; i++)
		if (entry[i].pid == pid)
			entry[i].pid = 0;
}

uint32_t tables_clear(void)
{
	uint32_t n = 0;

	for (int i = 0; i < ENTRIES; i++) {
		n += entry[i].pid != 0;
		entry[i].pid = 0;
	}
	return n;
}

const struct bpf_process *tables_fake_find(uint32_t pid)
{
	for (int i = 0; i < ENTRIES; i++)
		if (entry[i].pid == pid)
			return &entry[i].process;
	return 0;
}
