/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/config.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "shm/segment.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

void config_defaults(struct config *config, enum config_mode mode)
{
	memset(config, 0, sizeof(*config));
	config->version = CONFIG_VERSION;
	config->size_bytes = sizeof(*config);
	config->mode = mode;
	/* No divisor of 100, 250 or 1000: never in step with a periodic job. */
	config->rate_hz = mode == MODE_RUN ? 19 : 99;
	config->workers = 1;
	/* systemd leaves 60578-61183 unused (its UIDS-GIDS page). */
	config->uid_base = 61000;
	config->all = mode == MODE_RUN;
	config->follow = true;
	strcpy(config->run_dir, "/run/sconce");
	config->remote.timeout_ms = 10000;
	config->remote.gzip = true;
	config->viewer.enabled = mode == MODE_RUN;
	strcpy(config->viewer.listen, "127.0.0.1:4041");
	config->viewer.max_slots = 24;
	config->viewer.slot_ttl_s = 120;
	config->viewer.slot_max_bytes = 8 * MIB;
	config->viewer.cleanup_interval_s = 15;
	config->ring_bytes = 4 * MIB;
	config->sample_queue_bytes = 4 * MIB;
	config->process_queue_bytes = MIB;
	config->output_queue_bytes = 4 * MIB;
	config->log_bytes = 8 * MIB;
	config->symbol_bytes = 64 * MIB;
	config->unwind_bytes = 64 * MIB;
	config->spool_bytes = mode == MODE_RUN ? 32 * MIB : 256 * MIB;
	config->processes_max = 16384;
	config->ranges_max = 131072;
	config->sideband_pages = 64;
	config->stuck_ms = 10000;
}

int config_limit(const struct config *config, enum role role)
{
	const struct config_limit *limits = config->runtime.limits[role];

	for (int i = 0; i < CONFIG_LIMITS_MAX && limits[i].most; i++) {
		struct rlimit limit;

		getrlimit((int)limits[i].resource, &limit);
		if (limit.rlim_max > limits[i].most)
			limit.rlim_max = limits[i].most;
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit((int)limits[i].resource, &limit))
			return -errno;
	}
	return 0;
}

const struct config *config_map(int fd)
{
	const struct config *config;

	if (segment_size(fd) < (long)sizeof(*config))
		return NULL;
	config = segment_map(fd, sizeof(*config), 0);
	if (config && (config->version != CONFIG_VERSION || config->size_bytes != sizeof(*config)))
		return NULL;
	return config;
}
