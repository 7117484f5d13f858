/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever reads the memory of a process reads its secrets. So it is given of no process but those
 * of which it has a use, and what they run is told from what the kernel says that they have mapped.
 */
#define _GNU_SOURCE
#include "broker/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker/open.h"

/* Files that have an interpreter loop, by the last part of their paths. */
static const char *const runtimes[] = {"python*", "libpython*", "php*",	 "libphp*",
				       "ruby*",	  "libruby*",	"perl*", "libperl*"};

static bool memory_is_runtime(const char *path, const struct config *config)
{
	static const char deleted[] = " (deleted)";
	char name[NAME_MAX + 1];
	const char *slash = strrchr(path, '/');
	char *end;

	snprintf(name, sizeof(name), "%s", slash ? slash + 1 : "");
	end = strstr(name, deleted);
	if (end && !end[sizeof(deleted) - 1])
		*end = 0;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++)
		if (!fnmatch(runtimes[i], name, 0))
			return true;
	for (size_t i = 0; i < CONFIG_EXES_MAX && config->runtime_exe[i][0]; i++)
		if (!strncmp(config->runtime_exe[i], name, CONFIG_EXE_BYTES))
			return true;
	return false;
}

/* As the kernel has it, not as the process shows its files. */
static bool memory_is_ours(const struct target *target, const struct config *config)
{
	char text[4096];
	const char *line;
	uint32_t uid;

	text[target_read(target, "status", text, sizeof(text) - 1)] = 0;
	line = strstr(text, "\nUid:");
	return !line || sscanf(line, "\nUid: %u", &uid) != 1 || uid - config->uid_base < SLOT_COUNT;
}

int memory_open(const struct target *target, const struct message_ask_other *ask,
		const struct config *config)
{
	static struct target_vma before, after;
	int fd, err = open_find(target, &ask->file, &before);

	if (err)
		return err;
	if (!memory_is_runtime(before.name, config) || memory_is_ours(target, config))
		return -EPERM;
	if (blame_refuses(target->of_worker, 0, ask->file.start_lo_ns + ask->file.pid))
		return -EOWNERDEAD;
	fd = openat(target->dir, "mem", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* It may have executed something else meanwhile. */
	if (target_alive(target) && open_find(target, &ask->file, &after) == 0 &&
	    !memcmp(&after.range, &before.range, sizeof(after.range)))
		return fd;
	close(fd);
	return -ESTALE;
}
