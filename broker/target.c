/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a pid is and what it has mapped. Reads numbers only: field 22 of stat, PROCMAP_QUERY's
 * struct, or the hex columns of maps. A process is pinned by a pidfd before anything of it is read;
 * while that says that it lives, /proc/PID cannot have become another one's.
 */
#define _GNU_SOURCE
#include "broker/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TICK_NS	       10000000ull /* USER_HZ is 100 in every ABI that we run on */
#define STAT_STARTTIME 22

/* linux/fs.h of 6.11. */
struct procmap_query {
	uint64_t size, query_flags, query_addr;
	uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};
#define PROCMAP_QUERY_IOCTL	 _IOWR('f', 17, struct procmap_query)
#define PROCMAP_EXECUTABLE	 0x04
#define PROCMAP_COVERING_OR_NEXT 0x10

size_t target_read(const struct target *target, const char *name, char *buf, size_t size)
{
	int fd = openat(target->dir, name, O_RDONLY | O_CLOEXEC);
	size_t done = 0;
	ssize_t n;

	if (fd < 0)
		return 0;
	while (done < size && (n = read(fd, buf + done, size - done)) > 0)
		done += (size_t)n;
	close(fd);
	return done;
}

void target_link(const struct target *target, const char *name, char *buf, size_t size)
{
	ssize_t n = readlinkat(target->dir, name, buf, size - 1);

	buf[n > 0 ? n : 0] = 0;
}

/* The name in stat may hold spaces and brackets; its end is the last bracket. 0 = not known. */
static uint64_t target_start_ticks(const struct target *target)
{
	char text[1024];
	size_t n = target_read(target, "stat", text, sizeof(text) - 1);
	char *field;

	text[n] = 0;
	field = strrchr(text, ')');
	for (int i = 2; field && i < STAT_STARTTIME; i++)
		field = strchr(field + 1, ' ');
	return field ? strtoull(field + 1, NULL, 10) : 0;
}

/* Kernel threads, and a first thread that has ended, do not show a program nor anything mapped. */
static bool target_shows(int dir)
{
	char c;

	return readlinkat(dir, "exe", &c, 1) == 1;
}

bool target_alive(const struct target *target)
{
	struct pollfd p = {.fd = target->pidfd, .events = POLLIN};

	return poll(&p, 1, 0) == 0 && (!target->by_thread || target_shows(target->dir));
}

/*
 * Go on by a thread that lives. /proc has it under its own number too, and only there with
 * map_files. That it is one of ours is asked last: a number may have been given anew before it was
 * opened.
 */
static void target_take_thread(struct target *target)
{
	int fd = openat(target->dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *tasks = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	char path[32];

	while (tasks && !target->by_thread && (entry = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/%.20s", entry->d_name);
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		target->by_thread = fd >= 0 && target_shows(fd) &&
				    faccessat(dirfd(tasks), entry->d_name, F_OK, 0) == 0;
		if (target->by_thread)
			dup3(fd, target->dir, O_CLOEXEC);
		if (fd >= 0)
			close(fd);
	}
	if (tasks)
		closedir(tasks);
}

int target_open(struct target *target, uint32_t pid, uint64_t start_lo_ns, uint64_t start_hi_ns)
{
	char path[32];
	uint64_t start_ns;

	target->by_thread = false;
	target->dir = -1;
	target->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (target->pidfd < 0)
		return errno == EINVAL ? -ESRCH : -errno;
	snprintf(path, sizeof(path), "/proc/%u", pid);
	target->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	start_ns = target->dir < 0 ? 0 : target_start_ticks(target) * TICK_NS;
	if (target->dir >= 0 && target_alive(target) && start_ns <= start_hi_ns &&
	    start_ns + TICK_NS > start_lo_ns) {
		if (!target_shows(target->dir))
			target_take_thread(target);
		return 0;
	}
	target_close(target);
	return -ESRCH;
}

void target_close(struct target *target)
{
	close(target->pidfd);
	close(target->dir); /* perhaps -1 */
	target->dir = -1;
}

int target_maps_open(struct target_maps *maps, const struct target *target)
{
	maps->text = NULL;
	maps->fd = openat(target->dir, "maps", O_RDONLY | O_CLOEXEC);
	return maps->fd < 0 ? -errno : 0;
}

void target_maps_close(struct target_maps *maps)
{
	if (maps->text)
		fclose(maps->text);
	else
		close(maps->fd);
}

static int target_maps_query(int fd, uint64_t address, struct target_vma *vma)
{
	struct procmap_query q = {.size = sizeof(q),
				  .query_flags = PROCMAP_EXECUTABLE | PROCMAP_COVERING_OR_NEXT,
				  .query_addr = address,
				  .vma_name_size = sizeof(vma->name),
				  .vma_name_addr = (uint64_t)(uintptr_t)vma->name};

	vma->name[0] = 0;
	while (ioctl(fd, PROCMAP_QUERY_IOCTL, &q)) {
		if (errno != ENAMETOOLONG || !q.vma_name_size)
			return -errno;
		q.vma_name_size = 0;
		q.vma_name_addr = 0;
	}
	vma->range = (struct message_range){
	    q.vma_start, q.vma_end, q.vma_offset, q.inode, q.dev_major, q.dev_minor, 0, 0};
	return 0;
}

/* A line break in a name is written as \012, so a line is a mapping. */
static int target_maps_text(struct target_maps *maps, uint64_t address, struct target_vma *vma)
{
	struct message_range *r = &vma->range;
	char line[PATH_MAX + 128], mode[5];

	while (fgets(line, sizeof(line), maps->text)) {
		vma->name[0] = 0;
		if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %4095[^\n]", &r->start, &r->end, mode,
			   &r->offset, &r->dev_major, &r->dev_minor, &r->inode, vma->name) >= 7 &&
		    mode[2] == 'x' && r->end > address)
			return 0;
	}
	return -ENOENT;
}

int target_maps_next(struct target_maps *maps, uint64_t address, struct target_vma *vma)
{
	int err;

	if (!maps->text) {
		err = target_maps_query(maps->fd, address, vma);
		if (err != -ENOTTY)
			return err;
		maps->text = fdopen(maps->fd, "r");
		if (!maps->text)
			return -errno;
	}
	return target_maps_text(maps, address, vma);
}
