/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From "this mapping of that process" to an open file. Goes through /proc/PID/map_files, which
 * leads to the mapped file itself, whatever its path leads to by now. Everything is asked before
 * the open, without a word to the filesystem: open, fstat and read of a FUSE file may wait for
 * ever.
 */
#define _GNU_SOURCE
#include "broker/open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool open_type_hangs(const char *type)
{
	static const char *const hanging[] = {"fuse ", "fuse.", "fuseblk ", "nfs ",  "nfs4 ", "cifs ",
					      "smb3 ", "9p ",	"ceph ",    "afs ", "autofs "};

	for (size_t i = 0; i < sizeof(hanging) / sizeof(*hanging); i++)
		if (strncmp(type, hanging[i], strlen(hanging[i])) == 0)
			return true;
	return false;
}

/* Is path below this mount point? Blanks and their like are written there as \040. */
static bool open_covers(const char *point, const char *path)
{
	for (; *point && *point != ' '; path++) {
		char c = *point++;

		if (c == '\\' && point[0] && point[1] && point[2]) {
			c = (char)((point[0] - '0') << 6 | (point[1] - '0') << 3 | (point[2] - '0'));
			point += 3;
		}
		if (c != *path)
			return false;
	}
	return *path == 0 || *path == '/' || path[-1] == '/';
}

/* Of this mount, or of all on the way to path. 0; -EOPNOTSUPP: may hang; -ENOENT: none is listed. */
static int open_check_mounts(const struct target *target, const char *list, uint64_t mount,
			     const char *path)
{
	int fd = openat(target->dir, list, O_RDONLY | O_CLOEXEC);
	FILE *text = fd < 0 ? NULL : fdopen(fd, "r");
	char line[2 * PATH_MAX + 1024];
	int err = -ENOENT;

	while (text && err != -EOPNOTSUPP && fgets(line, sizeof(line), text)) {
		const char *type = strstr(line, " - "); /* blanks in names are written as \040 */
		int point = 0;

		sscanf(line, "%*s %*s %*s %*s %n", &point);
		if (type && (path ? point && open_covers(line + point, path)
				  : strtoull(line, NULL, 10) == mount))
			err = open_type_hangs(type + 3) ? -EOPNOTSUPP : 0;
	}
	if (text)
		fclose(text);
	else if (fd >= 0)
		close(fd);
	return err;
}

int open_check_way(const struct target *target, const char *list, const char *path)
{
	return open_check_mounts(target, list, 0, path);
}

/* From here on it is this file that holds us up, if anything does. */
static int open_blame(const struct target *target, uint64_t device, uint64_t inode,
		      const char *path)
{
	if (blame_refuses(target->blame, device, inode) ||
	    blame_refuses(target->of_worker, device, inode))
		return -EOWNERDEAD;
	blame_begin(target->blame, device, inode, path);
	return 0;
}

int open_check_mount(const struct target *target, uint64_t mount)
{
	static const char *const lists[] = {"mountinfo", "/proc/self/mountinfo", "/proc/1/mountinfo"};
	int err = -ENOENT;

	for (int i = 0; i < 3 && err == -ENOENT; i++)
		err = open_check_mounts(target, lists[i], mount, NULL);
	return err == -ENOENT ? -EOPNOTSUPP : err;
}

/* Type and filesystem behind a link of /proc/PID, as far as the kernel knows them by itself. */
static int open_check(const struct target *target, const char *link, struct message_file *file)
{
	struct statx stx;
	int err;

	target_link(target, link, file->path, sizeof(file->path));
	if (statx(target->dir, link, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO | STATX_MNT_ID,
		  &stx))
		return -errno;
	if (!S_ISREG(stx.stx_mode))
		return -EINVAL;
	err = open_check_mount(target, stx.stx_mnt_id);
	if (err)
		return err;
	return open_blame(target, makedev(stx.stx_dev_major, stx.stx_dev_minor), stx.stx_ino,
			  file->path);
}

int open_link(const struct target *target, const char *link, struct message_file *file)
{
	int fd, err = open_check(target, link, file);
	struct stat st;

	if (err)
		return err;
	fd = openat(target->dir, link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	file->key = (struct file_key){.device = st.st_dev,
				      .inode = st.st_ino,
				      .size_bytes = (uint64_t)st.st_size,
				      .mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000ull +
						  (uint64_t)st.st_mtim.tv_nsec};
	return fd;
}

/* The mapping that was asked for; ranges may have been joined or cut since it was reported. */
int open_find(const struct target *target, const struct message_ask_file *ask,
	      struct target_vma *vma)
{
	struct target_maps maps;
	uint64_t from = ask->start;
	int err = target_maps_open(&maps, target);

	if (err)
		return err;
	do {
		err = target_maps_next(&maps, from, vma);
		from = vma->range.end;
	} while (!err && vma->range.start < ask->end && vma->range.inode != ask->inode);
	target_maps_close(&maps);
	if (err == -ENOENT ||
	    (!err && (vma->range.start >= ask->end || vma->range.dev_major != ask->dev_major ||
		      vma->range.dev_minor != ask->dev_minor)))
		return -ESTALE;
	return err;
}

/* By a link that may lead somewhere else, if it is to the file that was asked for. */
static int open_same(const struct target *target, const struct message_ask_file *ask,
		     const char *link, struct message_file *file)
{
	struct statx stx;
	int fd;

	if (statx(target->dir, link, AT_STATX_DONT_SYNC, STATX_INO, &stx) ||
	    stx.stx_ino != ask->inode || stx.stx_dev_major != ask->dev_major ||
	    stx.stx_dev_minor != ask->dev_minor)
		return -EPERM;
	fd = open_link(target, link, file);
	if (fd < 0 || (file->key.inode == ask->inode &&
		       file->key.device == makedev(ask->dev_major, ask->dev_minor)))
		return fd;
	close(fd);
	return -ESTALE;
}

/*
 * Without the right to open map_files there are the program itself, and the path inside of the
 * process's root. Only what the kernel has at hand is walked, as the way to a mapped file is: so
 * that nobody is waited for.
 */
static int open_otherwise(const struct target *target, const struct message_ask_file *ask,
			  const char *path, struct message_file *file)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED};
	int result = open_same(target, ask, "exe", file), root, fd;
	char link[32];

	if (result != -EPERM)
		return result;
	root = openat(target->dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (fd >= 0)
		result = open_same(target, ask, link, file);
	close(fd);
	close(root);
	return result;
}

int open_mapped(const struct target *target, const struct message_ask_file *ask,
		struct message_file *file)
{
	static struct target_vma before, after;
	char link[64];
	int fd, err;

	/* Mostly nothing has changed, and nothing has to be looked up: in Linux before 6.11 that
	 * means to read all mappings. Some filesystems have other devices here than there. */
	snprintf(link, sizeof(link), "map_files/%lx-%lx", ask->start, ask->end);
	fd = open_same(target, ask, link, file);
	if (fd >= 0)
		return fd;
	err = open_find(target, ask, &before);
	if (err)
		return err;
	snprintf(link, sizeof(link), "map_files/%lx-%lx", before.range.start, before.range.end);
	fd = open_link(target, link, file);
	if (fd == -EPERM || fd == -EACCES)
		return open_otherwise(target, ask, before.name, file);
	/* It is what was asked for if the mapping is the same before and after. */
	if (fd >= 0 && (open_find(target, ask, &after) ||
			memcmp(&after.range, &before.range, sizeof(after.range)))) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}
