/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf(2) on the map that the loader made. No libbpf: three commands are all that this process
 * needs, and holding the fd is all the right that they need.
 */
#define _GNU_SOURCE
#include "sampler/tables.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/fds.h"

static int tables_bpf(enum bpf_cmd cmd, const void *key, void *value)
{
	union bpf_attr attr = {.map_fd = FD_SAMPLER_PROCS,
			       .key = (uint64_t)(uintptr_t)key,
			       .value = (uint64_t)(uintptr_t)value};

	return syscall(SYS_bpf, cmd, &attr, sizeof(attr)) ? -errno : 0;
}

int tables_publish(uint32_t pid, const struct bpf_process *process)
{
	return tables_bpf(BPF_MAP_UPDATE_ELEM, &pid, (void *)(uintptr_t)process);
}

void tables_remove(uint32_t pid)
{
	tables_bpf(BPF_MAP_DELETE_ELEM, &pid, NULL);
}

uint32_t tables_clear(void)
{
	uint32_t n = 0, pid;

	/* value is the next key here; no key = the first one, of what is still there. */
	while (tables_bpf(BPF_MAP_GET_NEXT_KEY, NULL, &pid) == 0 &&
	       tables_bpf(BPF_MAP_DELETE_ELEM, &pid, NULL) == 0)
		n++;
	return n;
}
