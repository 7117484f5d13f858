/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define V1_ROOT	       "/sys/fs/cgroup/memory"
#define V2_ROOT	       "/sys/fs/cgroup"
#define NAME	       "sconce-"
#define OURSELVES      "sconce-cli" /* a leaf for us, where only leaves have processes */
#define REMOVE_STEP_MS 10
#define REMOVE_STEPS   300

__attribute__((format(printf, 2, 3))) static bool cgroup_fail(struct cgroup *cgroup,
							      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(cgroup->why, sizeof(cgroup->why), format, args);
	va_end(args);
	cgroup->path[0] = 0;
	return false;
}

static int cgroup_write(const char *directory, const char *name, const char *text)
{
	char path[CGROUP_PATH_BYTES + 32];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* Where we are: of v1 in the hierarchy of memory, of v2 in the only one. */
static bool cgroup_own(struct cgroup *cgroup, const char *root, bool v1)
{
	char line[CGROUP_PATH_BYTES], *controllers, *path;
	bool found = false;
	FILE *file;

	snprintf(line, sizeof(line), "%s/proc/self/cgroup", root);
	file = fopen(line, "re");
	while (file && !found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		controllers = strchr(line, ':');
		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		found = strcmp(controllers + 1, v1 ? "memory" : "") == 0 &&
			snprintf(cgroup->path, sizeof(cgroup->path), "%s%s%s", root,
				 v1 ? V1_ROOT : V2_ROOT,
				 strcmp(path, "/") == 0 ? "" : path) < CGROUP_PATH_BYTES - 64;
	}
	if (file)
		fclose(file);
	return found;
}

static bool cgroup_there(const char *root, const char *name)
{
	char path[CGROUP_PATH_BYTES];

	snprintf(path, sizeof(path), "%s%s", root, name);
	return access(path, F_OK) == 0;
}

static bool cgroup_delegated(const char *path)
{
	static const char *const names[] = {"trusted.delegate", "user.delegate"};
	char value[2];

	for (int i = 0; i < 2; i++)
		if (getxattr(path, names[i], value, sizeof(value)) == 1 && value[0] == '1')
			return true;
	return false;
}

/* The one that we are in, if something may be made in it. */
static bool cgroup_find(struct cgroup *cgroup, const char *root, bool *v1)
{
	memset(cgroup, 0, sizeof(*cgroup));
	*v1 = cgroup_there(root, V1_ROOT "/memory.limit_in_bytes");
	if (!*v1 && !cgroup_there(root, V2_ROOT "/cgroup.controllers"))
		return cgroup_fail(cgroup, "no controller of memory at " V2_ROOT);
	if (!cgroup_own(cgroup, root, *v1))
		return cgroup_fail(cgroup, "/proc/self/cgroup names none for memory");
	if (access(cgroup->path, W_OK))
		return cgroup_fail(cgroup, "the cgroup we run in: %s", strerror(errno));
	if (!*v1 && !cgroup_delegated(cgroup->path))
		return cgroup_fail(cgroup, "the cgroup we run in is not delegated to us (systemd: "
					   "Delegate=yes)");
	return true;
}

bool cgroup_probe(struct cgroup *cgroup, const char *root)
{
	bool v1;

	return cgroup_find(cgroup, root, &v1);
}

/* Of instances that are not there any more. Those that are in use refuse. */
static void cgroup_sweep(const char *directory)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	int pid;

	while (dir && (entry = readdir(dir)))
		if (strncmp(entry->d_name, NAME, strlen(NAME)) == 0 &&
		    (pid = atoi(entry->d_name + strlen(NAME))) > 0 && kill(pid, 0) &&
		    errno == ESRCH)
			unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	if (dir)
		closedir(dir);
}

/* Processes only in leaves: so we go into one before memory is counted below. */
static int cgroup_step_aside(const char *directory)
{
	char leaf[CGROUP_PATH_BYTES + 32];
	int err;

	snprintf(leaf, sizeof(leaf), "%s/" OURSELVES, directory);
	if (mkdir(leaf, 0755) && errno != EEXIST)
		return -errno;
	err = cgroup_write(leaf, "cgroup.procs", "0");
	return err ? err : cgroup_write(directory, "cgroup.subtree_control", "+memory");
}

bool cgroup_make(struct cgroup *cgroup, uint64_t limit_bytes)
{
	char number[24];
	size_t n;
	bool v1;
	int err;

	if (!cgroup_find(cgroup, "", &v1))
		return false;
	cgroup_sweep(cgroup->path);
	err = v1 ? 0 : cgroup_step_aside(cgroup->path);
	n = strlen(cgroup->path);
	snprintf(cgroup->path + n, sizeof(cgroup->path) - n, "/" NAME "%d", (int)getpid());
	if (!err && mkdir(cgroup->path, 0755))
		err = -errno;
	if (err)
		return cgroup_fail(cgroup, "cannot make one: %s", strerror(-err));
	snprintf(number, sizeof(number), "%llu", (unsigned long long)limit_bytes);
	err = cgroup_write(cgroup->path, v1 ? "memory.limit_in_bytes" : "memory.max", number);
	if (!err)
		return true;
	rmdir(cgroup->path);
	return cgroup_fail(cgroup, "cannot set its limit: %s", strerror(-err));
}

void cgroup_enter(const struct cgroup *cgroup)
{
	if (cgroup->path[0])
		cgroup_write(cgroup->path, "cgroup.procs", "0");
}

void cgroup_remove(struct cgroup *cgroup)
{
	const struct timespec step = {.tv_nsec = REMOVE_STEP_MS * 1000000};

	/* The children of a supervisor that was killed die a moment after it. */
	for (int i = 0; i < REMOVE_STEPS && cgroup->path[0]; i++) {
		if (rmdir(cgroup->path) == 0 || errno != EBUSY)
			break;
		nanosleep(&step, NULL);
	}
	cgroup->path[0] = 0;
}
