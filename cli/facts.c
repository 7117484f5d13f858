/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/facts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bpf/tables.h"
#include "shm/ledger.h"
#include "shm/record.h"

/* A process without what the configuration sizes: code, stacks, tables of fixed size. */
#define PROCESS_BYTES (32ull << 20)
#define MAP_ENTRY_BYTES 128ull /* an entry of BPF's process hash, with what the kernel adds */

static void facts_line(const char *path, char *line, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, line, size - 1);

	if (fd >= 0)
		close(fd);
	line[n > 0 ? n : 0] = 0;
	line[strcspn(line, "\n")] = 0;
}

/* "0-3" or "0,2-7": the highest number, plus one. */
static uint32_t facts_cpus(void)
{
	char line[256], *last;
	long cpus;

	facts_line("/sys/devices/system/cpu/possible", line, sizeof(line));
	last = line + strlen(line);
	while (last > line && last[-1] >= '0' && last[-1] <= '9')
		last--;
	cpus = *last ? atol(last) + 1 : sysconf(_SC_NPROCESSORS_CONF);
	return cpus < 1 ? 1 : cpus > CONFIG_CPUS_MAX ? CONFIG_CPUS_MAX : (uint32_t)cpus;
}

/* The sum of all segments, maps and caches when they are full, and something for each process. */
static uint64_t facts_memory_limit(const struct config *config)
{
	uint64_t per_worker = config->sample_queue_bytes + config->process_queue_bytes +
			      config->output_queue_bytes + 2 * config->log_bytes +
			      config->symbol_bytes;
	uint64_t spools = (config->viewer.enabled ? 1 : 0) + (config->remote.url[0] ? 1 : 0) +
			  (config->format != FORMAT_NONE ? 1 : 0);
	uint64_t processes = ROLE_SYMBOLIZER - ROLE_LOADER + config->workers;
	uint64_t sideband = (1 + (uint64_t)config->sideband_pages) * SEGMENT_PAGE;
	uint64_t maps = config->ring_bytes + MAP_ENTRY_BYTES * config->processes_max +
			sizeof(struct record_range) * config->ranges_max +
			sizeof(struct bpf_file) * TABLES_FILES_MAX + config->unwind_bytes;

	return config->workers * per_worker + spools * config->spool_bytes +
	       config->runtime.cpus * sideband + maps + processes * PROCESS_BYTES +
	       SLOT_COUNT * LEDGER_BYTES +
	       (config->viewer.enabled
			? config->viewer.max_slots * config->viewer.slot_max_bytes
			: 0);
}

void facts_find(struct config *config)
{
	struct config_runtime *runtime = &config->runtime;
	struct timespec now;
	struct utsname name = {0};
	const char *arch;
	char line[16];

	clock_gettime(CLOCK_BOOTTIME, &now);
	runtime->start_ns = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
	runtime->cpus = facts_cpus();
	facts_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof(line));
	runtime->perf_event_paranoid = atoi(line);
	if (getrandom(runtime->instance, sizeof(runtime->instance), 0) < 0)
		memcpy(runtime->instance, &runtime->start_ns, sizeof(runtime->start_ns));
	uname(&name);
	/* The names that OpenTelemetry gives to architectures. */
	arch = strcmp(name.machine, "x86_64") == 0    ? "amd64"
	       : strcmp(name.machine, "aarch64") == 0 ? "arm64"
						      : name.machine;
	snprintf(runtime->host_arch, sizeof(runtime->host_arch), "%.31s", arch);
	snprintf(runtime->host_name, sizeof(runtime->host_name), "%s", name.nodename);
	snprintf(runtime->os_release, sizeof(runtime->os_release), "%s", name.release);
	facts_line("/etc/machine-id", runtime->host_id, sizeof(runtime->host_id));
	runtime->memory_limit_bytes = facts_memory_limit(config);
}
