/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration as every process gets it: one fixed struct in a sealed memfd (FD_CONFIG).
 *
 * The cli fills it from flags, environment and YAML, checks every value and adds `runtime` (what it
 * found out about the machine); the supervisor adds what the loader tells, and takes out what is
 * secret (remote.headers, viewer.token) for all but exporter and viewer. Nobody else parses
 * configuration. All strings end in NUL; "" means not set.
 */
#ifndef SCONCE_PROTO_CONFIG_H
#define SCONCE_PROTO_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/role.h"

/* In run_dir. */
#define RUN_CONTROL_SOCKET "control.sock"
#define RUN_VIEWER_SOCKET "viewer.sock"

#define CONFIG_VERSION 1
#define CONFIG_TARGETS_MAX 64
#define CONFIG_URL_BYTES 512
#define CONFIG_TEXT_BYTES 1024
#define CONFIG_PATH_BYTES 256
#define CONFIG_CPUS_MAX 1024
#define CONFIG_EXES_MAX 8
#define CONFIG_EXE_BYTES 64

enum config_mode { MODE_RUN = 1, MODE_RECORD };

enum config_format { FORMAT_NONE, FORMAT_FOLDED, FORMAT_PPROF, FORMAT_OTLP };

/* Which destinations exist; the exporter's spools, by index. */
enum destination { DESTINATION_VIEWER, DESTINATION_REMOTE, DESTINATION_FILE, DESTINATION_COUNT };

struct config_remote {
	char url[CONFIG_URL_BYTES];	  /* complete, path included; "" = no remote destination */
	char headers[CONFIG_TEXT_BYTES];  /* k=v,k2=v2 as in OTEL_EXPORTER_OTLP_HEADERS */
	char certificate[CONFIG_PATH_BYTES];
	char client_certificate[CONFIG_PATH_BYTES];
	char client_key[CONFIG_PATH_BYTES];
	uint32_t timeout_ms; /* per request; 0 = no limit */
	bool gzip;
};

struct config_viewer {
	bool enabled;
	char listen[64];	      /* address:port of the page; as bound, once there is a socket */
	char token[128];	      /* bearer token, "" = none asked */
	uint32_t max_slots;	      /* PROFILES_MAX_SLOTS */
	uint32_t slot_ttl_s;	      /* PROFILES_SLOT_TTL_SECONDS */
	uint64_t slot_max_bytes;      /* PROFILES_SLOT_MAX_BYTES */
	uint32_t cleanup_interval_s;  /* PROFILES_CLEANUP_INTERVAL_SECONDS */
};

#define CONFIG_LIMITS_MAX 6

struct config_limit { /* of a process, as setrlimit() takes it; most 0 = no further one */
	uint64_t resource, most;
};

struct config_memory { /* what may be used at most with this configuration */
	uint64_t all_bytes;    /* own memory of all processes, and the two others: */
	uint64_t shared_bytes; /* queues, definition logs, spools, ledgers */
	uint64_t kernel_bytes; /* BPF maps, side-band rings, some for sockets and page tables */
};

struct config_runtime { /* facts about the machine, and what follows from them */
	uint32_t cpus;	  /* possible cpus, as BPF numbers them */
	uint32_t sideband; /* perf side-band rings: FD_SIDEBAND + 0 .. sideband - 1; from the loader */
	uint32_t chunks;   /* of unwind table memory that exist; grows at run time */
	int32_t perf_event_paranoid;
	struct config_memory memory;
	struct config_limit limits[ROLE_COUNT][CONFIG_LIMITS_MAX];
	uint64_t start_ns; /* CLOCK_BOOTTIME at which the supervisor was started */
	uint8_t instance[16]; /* random: makes profile ids unique */
	char host_name[65], host_id[65], host_arch[32], os_release[65];
	char kernel_build_id[129]; /* of the GNU linker, in hex; "" = not known */
	char lacks[CONFIG_TEXT_BYTES]; /* what the machine does not give: "CAP_SYSLOG, io_uring" */
};

struct config {
	uint32_t version, size_bytes; /* CONFIG_VERSION, sizeof(struct config) */
	enum config_mode mode;
	uint32_t rate_hz;
	uint32_t workers;
	uint32_t uid_base;
	uint32_t verbose;

	bool containers;     /* every process is started by a container of its own */
	bool all;	     /* every process; otherwise targets only */
	bool follow;	     /* children of targets too */
	uint32_t targets_n;
	int32_t targets[CONFIG_TARGETS_MAX]; /* thread group ids */

	char run_dir[CONFIG_PATH_BYTES];     /* control and viewer sockets; /run/sconce */
	enum config_format format;	     /* of the file of record */

	struct config_remote remote;
	struct config_viewer viewer;
	char service_name[128];		     /* OTEL_SERVICE_NAME */
	char resource_attributes[CONFIG_TEXT_BYTES]; /* OTEL_RESOURCE_ATTRIBUTES */

	/* Sizes, in bytes unless they say otherwise; powers of two for queues and the ring. */
	uint64_t ring_bytes;	      /* BPF ring buffer */
	uint64_t sample_queue_bytes;  /* sampler -> worker, each */
	uint64_t process_queue_bytes; /* sampler -> worker, each */
	uint64_t output_queue_bytes;  /* worker -> exporter, each */
	uint64_t log_bytes;	      /* definition log, two per worker */
	uint64_t symbol_bytes;	      /* --symbol-memory, per worker */
	uint64_t unwind_bytes;	      /* --unwind-memory: tables in BPF, in chunks of 4 MiB */
	uint64_t spool_bytes;	      /* per destination */
	uint32_t processes_max;	      /* entries of BPF's process map */
	uint32_t ranges_max;	      /* entries of BPF's range array */
	uint32_t sideband_pages;      /* data pages of a side-band ring, a power of two */
	uint32_t stuck_ms;	      /* a process without progress for so long is replaced */
	char runtime_exe[CONFIG_EXES_MAX][CONFIG_EXE_BYTES]; /* of these the memory is read, too */

	struct config_runtime runtime;
};

/* The defaults, from one table; mode decides rate and memory of the spools. */
void config_defaults(struct config *config, enum config_mode mode);

/*
 * The calling process takes up the limits of a role, where it has no lower ones. There is no way
 * back. 0 or -errno.
 */
int config_limit(const struct config *config, enum role role);

/* Map a configuration read-only. NULL when fd holds none, or one of another version. */
const struct config *config_map(int fd);

#endif
