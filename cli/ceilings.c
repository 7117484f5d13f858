/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ceilings.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "bpf/tables.h"
#include "proto/fds.h"
#include "shm/ledger.h"
#include "shm/record.h"
#include "shm/table.h"

#define MIB 1048576ull
/* What Linux gives to the first thread and glibc to each further one. */
#define STACK_BYTES (8 * MIB)
#define OTHER_FILES 64 /* libraries, sockets, what is received and not closed yet */

/* --- Own memory: what the configuration sizes, and what is fixed in the program. --- */

/* A half of an ELF file's index, its symbols before they are sorted, and the table that is being
 * compiled: libLLVM takes 90 MiB, node 60. */
#define SYMBOLIZER_FILE_BYTES_MIN (128 * MIB)

static uint64_t ceilings_symbolizer(const struct config *config)
{
	uint64_t file = 4 * config->symbol_bytes;

	if (file < SYMBOLIZER_FILE_BYTES_MIN)
		file = SYMBOLIZER_FILE_BYTES_MIN;
	return 64 * MIB /* kernel symbols (200,000 are 16 MiB), 16,384 files, frames that are named
			 */
	       + config->symbol_bytes + config->unwind_bytes + file +
	       2048ull * config->processes_max /* one with its cgroup's and executable's names */
	       + 2 * sizeof(struct record_range) * config->ranges_max + config->log_bytes;
}

static uint64_t ceilings_exporter(const struct config *config)
{
	/* A batch is 16 MiB at most: the profile, the tree of its messages, the bytes, and
	 * compressed for two receivers; libcurl and TLS; where each definition stands. */
	uint64_t bytes = 160 * MIB + 3 * config->workers * config->log_bytes;

	/* The file is written from one profile of all that was recorded. */
	if (config->format != FORMAT_NONE)
		bytes += 128 * MIB + 6 * config->spool_bytes;
	return bytes;
}

static uint64_t ceilings_viewer(const struct config *config)
{
	/* A request of 32 MiB that is unpacked into 96, others that arrive (32 on each socket),
	 * replies. */
	return 256 * MIB + config->viewer.max_slots * config->viewer.slot_max_bytes;
}

static uint64_t ceilings_data(const struct config *config, enum role role)
{
	switch (role) {
	case ROLE_LOADER:
		return 96 * MIB; /* the types of the kernel, and room for the verifier's words */
	case ROLE_SAMPLER:
		return 24 * MIB; /* allocates nothing; 16 MiB are its tables */
	case ROLE_SUPERVISOR:
	case ROLE_BROKER:
		return 4 * MIB;
	case ROLE_EXPORTER:
		return ceilings_exporter(config);
	case ROLE_VIEWER:
		return ceilings_viewer(config);
	case ROLE_SYMBOLIZER:
		return ceilings_symbolizer(config);
	default:
		return 0;
	}
}

static uint64_t ceilings_own(const struct config *config, enum role role)
{
	return ceilings_data(config, role) + STACK_BYTES;
}

static uint32_t ceilings_processes(const struct config *config, enum role role)
{
	return role == ROLE_CLI					? 0
	       : role == ROLE_VIEWER && !config->viewer.enabled ? 0
	       : role == ROLE_SYMBOLIZER			? config->workers
								: 1;
}

/* --- Shared memory and the kernel's. --- */

static uint64_t ceilings_shared(const struct config *config)
{
	uint64_t spools = (config->viewer.enabled ? 1 : 0) + (config->remote.url[0] ? 1 : 0) +
			  (config->format != FORMAT_NONE ? 1 : 0);
	uint64_t pages = 6 * SEGMENT_PAGE; /* heads and tails */

	return config->workers * (config->sample_queue_bytes + config->process_queue_bytes +
				  config->output_queue_bytes + 2 * config->log_bytes + pages) +
	       spools * (config->spool_bytes + SEGMENT_PAGE) + SLOT_COUNT * LEDGER_BYTES +
	       2 * sizeof(*config) +
	       /* A table on its way to the sampler. */
	       config->workers * TABLE_BYTES_MAX;
}

static uint64_t ceilings_kernel(const struct config *config)
{
	const uint64_t entry = 128; /* of a hash, with what the kernel adds */
	uint64_t targets = config->all ? 1 : TABLES_TARGETS_MAX;
	uint64_t maps =
	    config->ring_bytes + config->ring_bytes / 128 +
	    entry * (config->processes_max + targets) +
	    sizeof(struct record_range) * config->ranges_max +
	    sizeof(struct bpf_file) * TABLES_FILES_MAX +
	    (config->unwind_bytes / TABLES_CHUNK_BYTES) * (TABLES_CHUNK_BYTES + SEGMENT_PAGE) +
	    config->runtime.cpus * (sizeof(struct bpf_cpu) + 2 * RECORD_BYTES_MAX);
	uint64_t sideband = (1 + (uint64_t)config->sideband_pages) * SEGMENT_PAGE;

	/* Stacks and page tables of ten processes, what waits in sockets, the programs. */
	return 32 * MIB + maps + config->runtime.cpus * sideband;
}

/* --- Other limits. --- */

/* The highest number that is wired (proto/fds.h), and what is opened or received. */
static uint64_t ceilings_files(const struct config *config, enum role role)
{
	const uint64_t numbers[ROLE_COUNT] = {
	    [ROLE_LOADER] = FD_LOADER_CHUNKS + 2ull * config->runtime.cpus,
	    [ROLE_SAMPLER] = FD_SIDEBAND + (uint64_t)config->runtime.cpus,
	    [ROLE_BROKER] = FD_BROKER_WORKERS + WORKERS_MAX,
	    [ROLE_EXPORTER] = FD_EXPORTER_WORKERS + FD_EXPORTER_PER_WORKER * WORKERS_MAX,
	    /* and 32 connections on each of its sockets */
	    [ROLE_VIEWER] = FD_VIEWER_LEDGERS + SLOT_COUNT + 64,
	    /* and the 512 files that a worker holds open, and the memory of 256 processes */
	    [ROLE_SYMBOLIZER] = FD_SYMBOLIZER_PEERS + WORKERS_MAX + 512 + 256,
	};

	return numbers[role] + OTHER_FILES;
}

/* Of its uid: 1 is itself. The exporter resolves names in threads, io_uring reads in some. */
static uint64_t ceilings_tasks(enum role role)
{
	return role == ROLE_EXPORTER || role == ROLE_SYMBOLIZER ? 64 : 1;
}

static void ceilings_limit(const struct config *config, enum role role, struct config_limit *limits)
{
	const uint64_t table = TABLE_BYTES_MAX;
	const struct config_limit all[CONFIG_LIMITS_MAX] = {
	    [CEILINGS_DATA] = {RLIMIT_DATA, ceilings_data(config, role)},
	    {RLIMIT_STACK, STACK_BYTES},
	    {RLIMIT_NOFILE, ceilings_files(config, role)},
	    {RLIMIT_NPROC, ceilings_tasks(role)},
	    /* All that it writes are tables, each into a segment of its own, and its log. */
	    {RLIMIT_FSIZE, role == ROLE_SYMBOLIZER ? table : 0},
	};

	memcpy(limits, all, sizeof(all));
}

void ceilings_set(struct config *config)
{
	struct config_memory *memory = &config->runtime.memory;

	memory->shared_bytes = ceilings_shared(config);
	memory->kernel_bytes = ceilings_kernel(config);
	memory->all_bytes = memory->shared_bytes + memory->kernel_bytes;
	for (int role = ROLE_SUPERVISOR; role < ROLE_COUNT; role++) {
		memory->all_bytes += ceilings_processes(config, (enum role)role) *
				     ceilings_own(config, (enum role)role);
		ceilings_limit(config, (enum role)role, config->runtime.limits[role]);
	}
}

void ceilings_text(const struct config *config, char *text, size_t size)
{
	const struct config_memory *memory = &config->runtime.memory;
	size_t n = (size_t)snprintf(text, size,
				    "%llu MiB:", (unsigned long long)(memory->all_bytes / MIB));

	for (int role = ROLE_SUPERVISOR; role < ROLE_COUNT && n < size; role++) {
		uint32_t processes = ceilings_processes(config, (enum role)role);

		if (processes)
			n += (size_t)snprintf(
			    text + n, size - n, " %s %llu%s,", role_name((enum role)role),
			    (unsigned long long)(ceilings_own(config, (enum role)role) / MIB),
			    processes > 1 ? " each" : "");
	}
	if (n < size)
		snprintf(text + n, size - n, " shared memory %llu, BPF maps and kernel %llu",
			 (unsigned long long)(memory->shared_bytes / MIB),
			 (unsigned long long)(memory->kernel_bytes / MIB));
}
