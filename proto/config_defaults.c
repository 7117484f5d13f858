/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a configuration in which nothing is set. Only the cli makes one.
 */
#include <string.h>

#include "proto/config.h"

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
