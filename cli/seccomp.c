/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/seccomp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/profiles.h"

/* The OCI runtime specification, "linux.seccomp". */
static void seccomp_print_rule(const struct profile_rule *rule)
{
	printf("\t\t{\"names\": [\"%s\"], \"action\": \"SCMP_ACT_ALLOW\"", rule->name);
	for (int i = 0; i < PROFILE_CONDITIONS_MAX && rule->condition[i].mask; i++)
		printf("%s{\"index\": %u, \"op\": \"SCMP_CMP_MASKED_EQ\", \"value\": %" PRIu64
		       ", \"valueTwo\": %" PRIu64 "}",
		       i ? ", " : ", \"args\": [", rule->condition[i].argument,
		       rule->condition[i].mask, rule->condition[i].value);
	printf("%s},\n", rule->condition[0].mask ? "]" : "");
}

static void seccomp_print(enum role role)
{
	struct profile_part parts[PROFILE_PARTS_MAX];
	size_t n = profiles_allowed(role, PROFILE_CONTAINER, parts);

	printf("{\n\t\"defaultAction\": \"SCMP_ACT_ERRNO\",\n\t\"defaultErrnoRet\": %d,\n"
	       "\t\"syscalls\": [\n",
	       EPERM);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < parts[i].n; k++)
			seccomp_print_rule(&parts[i].rules[k]);
	/* The symbolizer tries to move into an empty root, and does without where it may not. */
	for (const char *const *name = profiles_attacks; *name; name++)
		if (!profiles_has(parts, n, *name) && strcmp(*name, "unshare") != 0)
			printf("\t\t{\"names\": [\"%s\"], \"action\": "
			       "\"SCMP_ACT_KILL_PROCESS\"},\n",
			       *name);
	printf("\t\t{\"names\": [\"clone3\"], \"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": "
	       "%d}\n\t]\n}\n",
	       ENOSYS);
}

int seccomp_main(struct options *options)
{
	struct profile_part parts[PROFILE_PARTS_MAX];

	for (enum role role = 0; role < ROLE_COUNT; role++)
		if (options->argument && !strcmp(options->argument, role_name(role)) &&
		    profiles_allowed(role, PROFILE_CONTAINER, parts)) {
			seccomp_print(role);
			return 0;
		}
	fprintf(stderr, "sconce: seccomp-profile needs a role: supervisor");
	for (enum role role = ROLE_SAMPLER; role < ROLE_COUNT; role++)
		fprintf(stderr, ", %s", role_name(role));
	fputc('\n', stderr);
	return 2;
}
