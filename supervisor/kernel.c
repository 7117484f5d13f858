/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/kernel.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bpf/tables.h"
#include "shm/segment.h"
#include "supervisor/wiring.h"

#define HELD_MAX 64 /* maps and links that nobody else gets */

static int sampling[CONFIG_CPUS_MAX], held[HELD_MAX];
static uint32_t sampling_n, held_n;

static const enum object wired[BPF_OBJECT_COUNT] = {
	[BPF_EVENTS] = OBJECT_EVENTS,
	[BPF_PROCS] = OBJECT_PROCS,
	[BPF_RANGES] = OBJECT_RANGES,
	[BPF_CPUS] = OBJECT_CPUS,
	[BPF_FILES] = OBJECT_FILES,
	[BPF_CHUNKS] = OBJECT_CHUNKS,
};

int kernel_take(const struct message_bpf_fd *what, int fd, struct config_runtime *runtime)
{
	if (what->object >= BPF_OBJECT_COUNT)
		return -EPROTO;
	if (what->object == BPF_SIDEBAND && runtime->sideband < CONFIG_CPUS_MAX)
		wiring_give(OBJECT_SIDEBAND, runtime->sideband++, SIDE_A, fd);
	else if (what->object == BPF_CHUNK && runtime->chunks < TABLES_CHUNKS_MAX)
		wiring_give(OBJECT_CHUNK, runtime->chunks++, SIDE_A, fd);
	else if (what->object == BPF_SAMPLING && sampling_n < CONFIG_CPUS_MAX)
		sampling[sampling_n++] = fd;
	else if (wired[what->object])
		wiring_give(wired[what->object], 0, SIDE_A, fd);
	else if (held_n < HELD_MAX)
		held[held_n++] = fd;
	else
		return -EPROTO;
	return 0;
}

void kernel_forget(struct config_runtime *runtime)
{
	while (sampling_n)
		close(sampling[--sampling_n]);
	while (held_n)
		close(held[--held_n]);
	runtime->sideband = runtime->chunks = 0;
}

int kernel_start(const struct config *config)
{
	size_t bytes = (1 + (size_t)config->sideband_pages) * SEGMENT_PAGE;

	for (uint32_t i = 0; i < config->runtime.sideband; i++) {
		int fd = wiring_fd(OBJECT_SIDEBAND, i, SIDE_A);

		if (!segment_map(fd, bytes, 1) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
			return -errno;
	}
	for (uint32_t i = 0; i < sampling_n; i++)
		if (ioctl(sampling[i], PERF_EVENT_IOC_ENABLE, 0))
			return -errno;
	return sampling_n ? 0 : -ENODEV;
}

void kernel_stop(void)
{
	for (uint32_t i = 0; i < sampling_n; i++)
		ioctl(sampling[i], PERF_EVENT_IOC_DISABLE, 0);
}
