/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/family.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The parent of pid; 0 when it is gone. The name before it may hold anything, parentheses too. */
static int32_t family_parent(const char *pid)
{
	char path[300], text[1024], *end;
	int parent = 0, fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	end = strrchr(text, ')');
	return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

static bool family_has(const int32_t *pids, uint32_t n, int32_t pid)
{
	for (uint32_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* One generation more: children of those known. */
static uint32_t family_look(int32_t *pids, uint32_t n, uint32_t max)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && n < max && (entry = readdir(proc))) {
		int32_t pid = atoi(entry->d_name);

		if (pid > 0 && !family_has(pids, n, pid) &&
		    family_has(pids, n, family_parent(entry->d_name)))
			pids[n++] = pid;
	}
	if (proc)
		closedir(proc);
	return n;
}

uint32_t family_add(int32_t *pids, uint32_t n, uint32_t max)
{
	uint32_t before = 0;

	while (n != before) {
		before = n;
		n = family_look(pids, n, max);
	}
	return n;
}
