/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "supervisor/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The rights that each ABI of the kernel knows; linux/landlock.h of Debian 12 ends at ABI 2. File
 * system: 13 rights of ABI 1, REFER (2), TRUNCATE (3), IOCTL_DEV (5). Network: BIND_TCP and
 * CONNECT_TCP (4). Scope: abstract sockets and signals (6).
 */
#define FS_ABI_1    ((1ull << 13) - 1)
#define NET_BIND    (1ull << 0)
#define NET_CONNECT (1ull << 1)
#define SCOPE_ALL   3ull
#define READ_BELOW  (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

struct ruleset {
	uint64_t fs, net, scope;
};

static void landlock_add(int ruleset, const char *directory)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = READ_BELOW};

	rule.parent_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return;
	syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	close(rule.parent_fd);
}

int landlock_restrict(const char *const *readable, bool connects)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct ruleset rules = {.fs = FS_ABI_1};
	size_t size = abi >= 6 ? sizeof(rules) : abi >= 4 ? 16 : 8;
	int ruleset, err;

	if (abi < 1)
		return -errno;
	rules.fs |= (abi >= 2) << 13 | (abi >= 3) << 14 | (abi >= 5) << 15;
	rules.net = connects ? NET_BIND : NET_BIND | NET_CONNECT;
	rules.scope = SCOPE_ALL;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &rules, size, 0);
	if (ruleset < 0)
		return -errno;
	for (; readable && *readable; readable++)
		landlock_add(ruleset, *readable);
	err = syscall(SYS_landlock_restrict_self, ruleset, 0) ? -errno : 0;
	close(ruleset);
	return err;
}
