/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens perf events; see loader_perf.h. All sampling events have the same period, so that every
 * sample stands for the same time, whichever cpu it is from.
 */
#include "supervisor/loader_perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull

static int loader_perf_open(const struct perf_event_attr *attr, uint32_t cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int loader_sampling_open(uint32_t cpu, uint32_t rate_hz, int program_fd)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = NS_PER_S / rate_hz,
		.disabled = 1,
		.exclude_idle = 1,
	};
	int fd = loader_perf_open(&attr, cpu), err;

	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, program_fd) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int loader_sideband_open(uint32_t cpu, uint32_t pages)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		/* What ends every record: struct sideband_trailer of bpf/tables.h. */
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_BOOTTIME,
		/* Its reader looks by itself several times a second. */
		.watermark = 1,
		.wakeup_watermark = pages * (uint32_t)sysconf(_SC_PAGESIZE) / 4,
	};

	return loader_perf_open(&attr, cpu);
}
