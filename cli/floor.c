/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/floor.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
	unsigned major, minor, mended; /* 0: never in this series */
	const char *where;
} floor_series[] = {
	{5, 19, 0, "6.1.36"}, {6, 0, 0, "6.1.36"}, {6, 1, 36, "6.1.36"},
	{6, 2, 0, "6.3.10"},  {6, 3, 10, "6.3.10"},
};

const char *floor_hangs(const char *release, const char *version)
{
	const char *debian = strstr(version, "Debian ");
	unsigned major = 0, minor = 0, patch = 0, of[3];

	if (sscanf(release, "%u.%u.%u", &major, &minor, &patch) < 2)
		return NULL;
	if (debian && sscanf(debian, "Debian %u.%u.%u", &of[0], &of[1], &of[2]) == 3 &&
	    of[0] == major && of[1] == minor)
		patch = of[2];
	for (size_t i = 0; i < sizeof(floor_series) / sizeof(floor_series[0]); i++)
		if (floor_series[i].major == major && floor_series[i].minor == minor &&
		    (!floor_series[i].mended || patch < floor_series[i].mended))
			return floor_series[i].where;
	return NULL;
}
