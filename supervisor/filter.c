/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/filter.h"

#include <errno.h>
#include <seccomp.h>

#include "supervisor/profiles.h"

/* A name that this libseccomp or this architecture does not have cannot be called by it either. */
static int filter_add(scmp_filter_ctx filter, uint32_t action, const char *name,
		      const struct scmp_arg_cmp *conditions, unsigned n)
{
	int number = seccomp_syscall_resolve_name(name);

	if (number == __NR_SCMP_ERROR)
		return 0;
	return seccomp_rule_add_array(filter, action, number, n, conditions);
}

static int filter_allow(scmp_filter_ctx filter, const struct profile_rule *rule)
{
	struct scmp_arg_cmp conditions[PROFILE_CONDITIONS_MAX];
	unsigned n = 0;

	for (int i = 0; i < PROFILE_CONDITIONS_MAX && rule->condition[i].mask; i++, n++)
		conditions[n] =
		    (struct scmp_arg_cmp){rule->condition[i].argument, SCMP_CMP_MASKED_EQ,
					  rule->condition[i].mask, rule->condition[i].value};
	return filter_add(filter, SCMP_ACT_ALLOW, rule->name, conditions, n);
}

static int filter_fill(scmp_filter_ctx filter, enum role role)
{
	struct profile_part parts[PROFILE_PARTS_MAX];
	size_t n = profiles_allowed(role, PROFILE_PROCESS, parts);
	int err = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < parts[i].n && !err; k++)
			err = filter_allow(filter, &parts[i].rules[k]);
	for (const char *const *name = profiles_attacks; *name && !err; name++)
		if (!profiles_has(parts, n, *name))
			err = filter_add(filter, SCMP_ACT_KILL_PROCESS, *name, NULL, 0);
	return err ? err : filter_add(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3", NULL, 0);
}

int filter_load(enum role role)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err = filter ? filter_fill(filter, role) : -ENOMEM;

	/* A search by halves instead of from the top: some lists are long, and some calls frequent.
	 */
	if (!err)
		err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}
