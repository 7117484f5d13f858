/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/config.h"

#include <errno.h>
#include <sys/resource.h>

#include "shm/segment.h"

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
