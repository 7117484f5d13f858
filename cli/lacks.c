/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lacks.h"

#include <stdio.h>
#include <string.h>

#include "cli/checks.h"
#include "cli/places.h"
#include "supervisor/log.h"

/* A recording says only what is seen in it: whoever has to live with it need not hear it each time.
 */
static void lacks_say(const struct config *config, const char *name,
		      const struct check_result *result)
{
	if (config->mode == MODE_RUN)
		log_warn("%s: %s: %s", name, result->found, result->lost);
	else
		fprintf(stderr, "sconce: warning: %s: %s: %s\n", name, result->found, result->lost);
}

static void lacks_note(char *lacks, size_t size, const char *name)
{
	size_t n = strlen(lacks);

	snprintf(lacks + n, size - n, "%s%s", n ? ", " : "", name);
}

/*
 * In containers we see what the supervisor's has. What the others are given is in their bundles
 * (deploy/oci); the loader says what it lacks, and nothing starts without it.
 */
static bool lacks_concerns(const struct config *config, size_t i)
{
	static const char *const ours[] = {"root",	     "CAP_SYSLOG",     "CAP_CHOWN",  "kernel",
					   "BTF",	     "kernel symbols", "machine id", "kernel modules",
					   "run directory", "open files"};

	for (size_t k = 0; k < sizeof(ours) / sizeof(ours[0]) && config->containers; k++)
		if (strcmp(ours[k], checks_name(i)) == 0)
			return true;
	return !config->containers && (config->mode == MODE_RUN || checks_shows(i));
}

bool lacks_check(struct options *options)
{
	struct config *config = &options->config;
	struct check_result results[CHECKS_MAX] = {0};
	struct checks_world world;

	checks_here(&world, config);
	world.unsafe_kernel = options->unsafe_kernel;
	for (size_t i = 0; i < checks_count(); i++) {
		if (!lacks_concerns(config, i))
			continue;
		checks_run(i, &world, &results[i]);
		if (results[i].state == CHECK_FATAL) {
			fprintf(stderr, "sconce: %s: %s: %s\n", checks_name(i), results[i].found,
				results[i].lost);
			return false;
		}
	}
	for (size_t i = 0; i < checks_count(); i++)
		if (results[i].state == CHECK_LACKS) {
			lacks_say(config, checks_name(i), &results[i]);
			lacks_note(config->runtime.lacks, sizeof(config->runtime.lacks),
				   checks_name(i));
		}
	/* It is tried with a perf event, which the supervisor's container may not open. */
	if (!config->containers)
		config->sideband_pages = places_sideband_pages(&world);
	return true;
}
