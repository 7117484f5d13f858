/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/probes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/config.h"

/* The headers of 6.1 lack these. */
#define PROBE_PR_GET_MDWE	  66
#define PROBE_PROCMAP_QUERY_IOCTL _IOC(_IOC_READ | _IOC_WRITE, 'f', 17, 104)
#define PROBE_COVERING_OR_NEXT	  0x10
#define PROBE_LANDLOCK_VERSION	  (1u << 0)
#define PROBE_NOBODY		  65534
#define PROBE_LOG_BYTES		  4096

static int probes_close(int fd)
{
	int err = -errno;

	if (fd < 0)
		return err;
	close(fd);
	return 0;
}

static int probes_ring_buffer(uint32_t unused)
{
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_RINGBUF,
			       .max_entries = (uint32_t)sysconf(_SC_PAGESIZE)};

	(void)unused;
	return probes_close((int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

/* A program that calls it wrongly is refused either way; the log says whether the call was known.
 */
static int probes_bpf_loop(uint32_t unused)
{
	static char log[PROBE_LOG_BYTES];
	struct bpf_insn program[] = {{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_loop},
				     {.code = BPF_JMP | BPF_EXIT}};
	union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_PERF_EVENT,
			       .insns = (uintptr_t)program,
			       .insn_cnt = 2,
			       .license = (uintptr_t) "GPL",
			       .log_buf = (uintptr_t)log,
			       .log_size = sizeof(log),
			       .log_level = 1};
	int err = probes_close((int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr)));

	(void)unused;
	if (!log[0])
		return err;
	return strstr(log, "invalid func ") || strstr(log, "unknown func ") ? -EOPNOTSUPP : 0;
}

static int probes_open_event(uint64_t what, int cpu)
{
	struct perf_event_attr attr = {
	    .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = what, .disabled = 1};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int probes_perf_event(uint32_t unused)
{
	(void)unused;
	return probes_close(probes_open_event(PERF_COUNT_SW_CPU_CLOCK, sched_getcpu()));
}

/* All at the same time, as they will be. */
static int probes_perf_memory(uint32_t pages)
{
	size_t bytes = (1 + (size_t)pages) * (size_t)sysconf(_SC_PAGESIZE);
	static void *rings[CONFIG_CPUS_MAX];
	int err = 0, cpu;

	for (cpu = 0; cpu < CONFIG_CPUS_MAX && !err; cpu++) {
		int fd = probes_open_event(PERF_COUNT_SW_DUMMY, cpu);

		rings[cpu] = MAP_FAILED;
		if (fd < 0 && errno == EINVAL)
			break; /* behind the last possible one */
		if (fd < 0 && errno == ENODEV)
			continue;
		if (fd >= 0)
			rings[cpu] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		err = rings[cpu] == MAP_FAILED ? -errno : 0;
		probes_close(fd);
	}
	while (cpu-- > 0)
		if (rings[cpu] != MAP_FAILED)
			munmap(rings[cpu], bytes);
	return err;
}

static int probes_io_uring(uint32_t unused)
{
	struct io_uring_params params = {.flags = IORING_SETUP_R_DISABLED};

	(void)unused;
	return probes_close((int)syscall(SYS_io_uring_setup, 4, &params));
}

static int probes_seccomp(uint32_t unused)
{
	uint32_t action = SECCOMP_RET_KILL_PROCESS;

	(void)unused;
	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) ? -errno : 0;
}

static int probes_landlock(uint32_t unused)
{
	int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, PROBE_LANDLOCK_VERSION);

	(void)unused;
	return abi < 0 ? -errno : abi;
}

static int probes_mdwe(uint32_t unused)
{
	(void)unused;
	return prctl(PROBE_PR_GET_MDWE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

static int probes_namespaces(uint32_t flags)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (flags & CLONE_NEWUSER && setresuid(PROBE_NOBODY, PROBE_NOBODY, PROBE_NOBODY))
			_exit(errno);
		_exit(unshare((int)flags) ? errno : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int probes_procmap_query(uint32_t unused)
{
	/* size, flags, address; the rest is the answer */
	uint64_t query[13] = {sizeof(query), PROBE_COVERING_OR_NEXT};
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	int err = fd < 0 || ioctl(fd, PROBE_PROCMAP_QUERY_IOCTL, query) ? -errno : 0;

	(void)unused;
	probes_close(fd);
	return err;
}

/* The first mapping is the program itself. */
static int probes_map_files(uint32_t unused)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	int err = -ENOENT;
	char path[64];

	(void)unused;
	if (maps && fscanf(maps, "%lx-%lx", &start, &end) == 2) {
		snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", start, end);
		err = probes_close(open(path, O_RDONLY | O_CLOEXEC));
	}
	if (maps)
		fclose(maps);
	return err;
}

int probes_ask(enum probe probe, uint32_t argument)
{
	static int (*const ask[])(uint32_t argument) = {
	    [PROBE_RING_BUFFER] = probes_ring_buffer, [PROBE_BPF_LOOP] = probes_bpf_loop,
	    [PROBE_PERF_EVENT] = probes_perf_event,   [PROBE_PERF_MEMORY] = probes_perf_memory,
	    [PROBE_IO_URING] = probes_io_uring,	      [PROBE_SECCOMP] = probes_seccomp,
	    [PROBE_LANDLOCK] = probes_landlock,	      [PROBE_MDWE] = probes_mdwe,
	    [PROBE_NAMESPACES] = probes_namespaces,   [PROBE_PROCMAP_QUERY] = probes_procmap_query,
	    [PROBE_MAP_FILES] = probes_map_files,
	};

	return ask[probe](argument);
}
