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

bool lacks_check(struct options *options)
{
	struct config *config = &options->config;
	struct check_result results[CHECKS_MAX] = {0};
	struct checks_world world;

	checks_here(&world, config);
	world.unsafe_kernel = options->unsafe_kernel;
	for (size_t i = 0; i < checks_count(); i++) {
		if (config->mode == MODE_RECORD && !checks_shows(i))
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
	config->sideband_pages = places_sideband_pages(&world);
	return true;
}
