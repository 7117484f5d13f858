/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name that comes from a worker may be anybody's wish, and we may read what its author may not.
 * So it is one component, and where the folder does not say that debug information lies there, the
 * name has to. The folder of a mapped file is what the kernel says of it. No symbolic link is
 * followed but in the machine's own folder of debug information, which is root's, and no mount is
 * entered that is known to hang.
 */
#define _GNU_SOURCE
#include "broker/other.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "broker/open.h"

#define OTHER_PLACES   3  /* of a kind, in each root */
#define OTHER_ID_BYTES 64 /* of build ids; ld's have 20 at most, others may say more */
#define DEBUG	       "/usr/lib/debug"
#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#endif

/* BEFORE [folder of the mapped file] BETWEEN name AFTER */
struct other_place {
	const char *before;
	bool folder;
	const char *between, *after;
	bool anything; /* the name need not say that it is debug information */
};

static const struct other_place places[OTHER_KINDS][OTHER_PLACES] = {
    [OTHER_BUILD_ID] = {{DEBUG "/.build-id", false, "/", ".debug", true}},
    [OTHER_LINK] = {{"", true, "/", "", false},
		    {"", true, "/.debug/", "", true},
		    {DEBUG, true, "/", "", true}},
    /* As Debian's dh_dwz places them, and as Fedora's rpm does. */
    [OTHER_ALT] = {{DEBUG "/.dwz", false, "/" MULTIARCH "/", "", true},
		   {DEBUG "/.dwz", false, "/", "", true}},
    [OTHER_DWP] = {{"", true, "/", ".dwp", true},
		   {"", true, "/.debug/", ".dwp", true},
		   {DEBUG, true, "/", ".dwp", true}},
    [OTHER_DWO] = {{"", true, "/", "", false}},
    [OTHER_PERF_MAP] = {{"/tmp", false, "/perf-", ".map", true}},
};

/* Where paths begin: the process's, then the machine's. */
struct other_root {
	int fd; /* -1 = not to be used */
	bool host;
	uint64_t mount, inode;
	const char *mounts;  /* the list that has its mounts */
	char path[PATH_MAX]; /* as the paths of mapped files have it */
};

/* A question, as far as it is understood. */
struct other {
	const struct target *target;
	uint32_t kind;
	char name[NAME_MAX + 1];
	char path[PATH_MAX]; /* of the mapped file */
	uint32_t uid;	     /* that may have made a perf map, beside root */
};

static bool other_says_debug(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && (!strcmp(dot, ".debug") || !strcmp(dot, ".dbg") || !strcmp(dot, ".dwo"));
}

static int other_build_id(struct other *other, const struct message_need_other *need)
{
	size_t n = 0;

	if (need->bytes < 2 || need->bytes > OTHER_ID_BYTES)
		return -EPROTO;
	for (uint32_t i = 0; i < need->bytes; i++)
		n += (size_t)snprintf(other->name + n, sizeof(other->name) - n, "%02x%s",
				      need->name[i], i ? "" : "/");
	return 0;
}

/* The number by which the process knows itself, and the uid that its files get. */
static int other_perf_map(struct other *other)
{
	char text[4096];
	const char *uid, *pid;

	text[target_read(other->target, "status", text, sizeof(text) - 1)] = 0;
	uid = strstr(text, "\nUid:");
	pid = strstr(text, "\nNStgid:");
	if (!uid || !pid || sscanf(uid, "\nUid: %*u %*u %*u %u", &other->uid) != 1)
		return -ESRCH;
	pid = strchr(pid + 1, '\t');
	for (const char *next = pid; next && next < strchr(pid, '\n');
	     next = strchr(next + 1, '\t'))
		pid = next;
	return pid && sscanf(pid, "\t%10[0-9]", other->name) == 1 ? 0 : -ESRCH;
}

static int other_component(struct other *other, const struct message_need_other *need)
{
	if (need->bytes == 0 || need->bytes > sizeof(need->name))
		return -EPROTO;
	memcpy(other->name, need->name, need->bytes);
	other->name[need->bytes] = 0;
	if (strlen(other->name) != need->bytes || strchr(other->name, '/') ||
	    !strcmp(other->name, ".") || !strcmp(other->name, ".."))
		return -EPROTO;
	return 0;
}

static int other_understand(struct other *other, const struct message_ask_other *ask)
{
	static struct target_vma vma;
	const char *name;
	int err;

	other->kind = ask->need.kind;
	if (other->kind == OTHER_PERF_MAP)
		return other_perf_map(other);
	if (other->kind == OTHER_BUILD_ID)
		return other_build_id(other, &ask->need);
	if (other->kind != OTHER_DWP || ask->need.bytes) {
		err = other->kind < OTHER_KINDS ? other_component(other, &ask->need) : -EPROTO;
		if (err || other->kind == OTHER_ALT)
			return err;
	}
	err = open_find(other->target, &ask->file, &vma);
	name = strrchr(vma.name, '/');
	if (err || vma.name[0] != '/' || !name)
		return err ? err : -ENOENT;
	memcpy(other->path, vma.name, sizeof(other->path));
	if (!other->name[0])
		snprintf(other->name, sizeof(other->name), "%s", name + 1);
	other->path[name - vma.name] = 0;
	return 0;
}

/* The machine's is the first process's; where that may not be seen, ours. */
static void other_open_root(const struct target *target, struct other_root *root)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	struct statx stx = {0};

	root->mounts = root->host ? "/proc/1/mountinfo" : "mountinfo";
	root->fd = openat(target->dir, root->host ? "/proc/1/root" : "root", flags);
	if (root->fd < 0 && root->host) {
		root->mounts = "/proc/self/mountinfo";
		root->fd = open("/", flags);
	}
	root->path[0] = 0;
	if (!root->host)
		target_link(target, "root", root->path, sizeof(root->path));
	if (root->fd >= 0 && (statx(root->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
				    STATX_INO | STATX_MNT_ID, &stx) ||
			      open_check_mount(target, stx.stx_mnt_id))) {
		close(root->fd);
		root->fd = -1;
	}
	root->mount = stx.stx_mnt_id;
	root->inode = stx.stx_ino;
}

static int other_walk(const struct other_root *root, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve =
				   RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS};
	int fd = (int)syscall(SYS_openat2, root->fd, path, &how, sizeof(how));

	/* Its links may lead anywhere, but nobody else's may. */
	if (fd < 0 && errno == ELOOP && root->host && !strncmp(path, DEBUG "/", sizeof(DEBUG))) {
		how.resolve &= ~(uint64_t)RESOLVE_NO_SYMLINKS;
		fd = (int)syscall(SYS_openat2, root->fd, path, &how, sizeof(how));
	}
	return fd < 0 ? -errno : fd;
}

/* Hard links to what is somebody else's would have two names. */
static bool other_is_theirs(const struct other *other, int fd)
{
	struct statx stx;

	return other->kind != OTHER_PERF_MAP ||
	       (!statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID | STATX_NLINK, &stx) &&
		(stx.stx_uid == 0 || stx.stx_uid == other->uid) && stx.stx_nlink == 1);
}

static int other_try(const struct other *other, const struct other_root *root,
		     const struct other_place *place, struct message_file *file)
{
	size_t above = strlen(root->path);
	const char *folder = other->path;
	char path[2 * PATH_MAX], link[32];
	int fd, result;

	if (above > 1 && !strncmp(folder, root->path, above) &&
	    (!folder[above] || folder[above] == '/'))
		folder += above;
	snprintf(path, sizeof(path), "%s%s%s%s%s", place->before, place->folder ? folder : "",
		 place->between, other->name, place->after);
	if (open_check_way(other->target, root->mounts, path) == -EOPNOTSUPP)
		return -EOPNOTSUPP;
	fd = other_walk(root, path);
	if (fd < 0)
		return fd;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	result = other_is_theirs(other, fd) ? open_link(other->target, link, file) : -EPERM;
	close(fd);
	return result;
}

static int other_search(const struct other *other, const struct other_root roots[2],
			struct message_other *message)
{
	int result = -ENOENT;

	for (uint32_t at = message->need.place; at < 2 * OTHER_PLACES; at++) {
		const struct other_root *root = &roots[at / OTHER_PLACES];
		const struct other_place *place = &places[other->kind][at % OTHER_PLACES];
		int fd;

		if (root->fd < 0 || !place->between ||
		    (!place->anything && !other_says_debug(other->name)))
			continue;
		message->need.place = at;
		fd = other_try(other, root, place, &message->file);
		if (fd >= 0)
			return fd;
		if (fd != -ENOENT && fd != -ENOTDIR)
			result = fd;
	}
	return result;
}

int other_open(const struct target *target, const struct message_ask_other *ask,
	       struct message_other *message)
{
	static struct other_root roots[2];
	static struct other other;
	int result;

	other = (struct other){.target = target};
	result = other_understand(&other, ask);
	if (result)
		return result;
	for (int i = 0; i < 2; i++) {
		roots[i].host = i;
		other_open_root(target, &roots[i]);
	}
	roots[0].host = roots[0].mount == roots[1].mount && roots[0].inode == roots[1].inode;
	/* The same again would be no other file; and a perf map is where the process writes it. */
	if (roots[1].fd >= 0 && (roots[0].host || other.kind == OTHER_PERF_MAP)) {
		close(roots[1].fd);
		roots[1].fd = -1;
	}
	message->need = ask->need;
	result = other_search(&other, roots, message);
	for (int i = 0; i < 2; i++)
		if (roots[i].fd >= 0)
			close(roots[i].fd);
	return result;
}
