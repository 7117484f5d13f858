/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "shm/blamed.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

static void blamed_write(struct blamed *blamed, const struct blame_file *file)
{
	unsigned device[] = {major(file->device), minor(file->device)};
	char name[sizeof(file->name) + 1] = {0};

	memcpy(name, file->name, sizeof(file->name));
	for (char *c = name; *c; c++)
		if (*c < ' ' || *c > '~' || strchr("\"'\\<>&", *c))
			*c = '?';
	if (!file->device)
		snprintf(blamed->text, sizeof(blamed->text), "%s", name);
	else if (!file->inode)
		snprintf(blamed->text, sizeof(blamed->text), "device %u:%u", device[0], device[1]);
	else
		snprintf(blamed->text, sizeof(blamed->text), "%s (%u:%u, inode %llu)", name,
			 device[0], device[1], (unsigned long long)file->inode);
}

bool blamed_next(const struct ledger *ledger, uint32_t *at, struct blamed *blamed)
{
	while (ledger && *at < BLAME_FILES) {
		struct blame_file file = ledger->blame.files[(*at)++];

		if (!blame_is_final(&file))
			continue;
		blamed_write(blamed, &file);
		return true;
	}
	return false;
}
