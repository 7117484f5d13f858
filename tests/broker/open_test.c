/* SPDX-License-Identifier: Apache-2.0 */
/* Who a process is, and what of it is opened and what is refused. */
#define _GNU_SOURCE
#include "broker/open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/broker/victim.h"

#define TICK 10000000ull

static struct blame blame;
static struct target target = {.blame = &blame};
static struct message_file file;

static int open_of(const struct victim *v)
{
	return target_open(&target, (uint32_t)v->pid, v->start_ns, v->start_ns + TICK - 1);
}

static struct message_ask_file ask_of(const struct victim *v)
{
	return (struct message_ask_file){.pid = (uint32_t)v->pid,
					 .start = VICTIM_ADDRESS,
					 .end = VICTIM_ADDRESS + 4096,
					 .inode = v->file.st_ino,
					 .dev_major = major(v->file.st_dev),
					 .dev_minor = minor(v->file.st_dev)};
}

/* Device numbers as the kernel reports them for the mapping: on overlay and btrfs not those of
 * stat. */
static void ask_device(struct message_ask_file *ask)
{
	struct target_maps maps;
	struct target_vma *vma = malloc(sizeof(*vma));

	assert_int_equal(target_maps_open(&maps, &target), 0);
	assert_int_equal(target_maps_next(&maps, ask->start, vma), 0);
	ask->inode = vma->range.inode;
	ask->dev_major = vma->range.dev_major;
	ask->dev_minor = vma->range.dev_minor;
	target_maps_close(&maps);
	free(vma);
}

/* Open what the victim has mapped; the fd or -errno. */
static int open_victim(const struct victim *v)
{
	struct message_ask_file ask = ask_of(v);
	int fd;

	memset(&file, 0, sizeof(file));
	assert_int_equal(open_of(v), 0);
	ask_device(&ask);
	fd = open_mapped(&target, &ask, &file);
	target_close(&target);
	return fd;
}

static void test_identity(void **state)
{
	struct victim v;
	uint32_t pid;

	(void)state;
	victim_start(&v, NULL, 0);
	pid = (uint32_t)v.pid;
	/* windows in ns against a start time in ticks */
	static const struct {
		int64_t lo, hi;
		int error;
	} cases[] = {
	    {0, TICK - 1, 0},		{5, 5, 0},
	    {TICK - 1, TICK - 1, 0},	{-TICK, 0, 0},
	    {TICK - 1, 100 * TICK, 0},	{-100 * (int64_t)TICK, 100 * TICK, 0},
	    {TICK, TICK, -ESRCH},	{-1, -1, -ESRCH},
	    {TICK, 100 * TICK, -ESRCH},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int err = target_open(&target, pid, v.start_ns + (uint64_t)cases[i].lo,
				      v.start_ns + (uint64_t)cases[i].hi);

		assert_int_equal(err, cases[i].error);
		if (!err)
			target_close(&target);
	}
	assert_int_equal(open_of(&v), 0);
	assert_true(target_alive(&target));
	victim_end(&v);
	assert_false(target_alive(&target));
	target_close(&target);
	assert_int_equal(target_open(&target, pid, 0, UINT64_MAX), -ESRCH);
	assert_int_equal(target_open(&target, 0, 0, UINT64_MAX), -ESRCH);
	assert_int_equal(target_open(&target, UINT32_MAX, 0, UINT64_MAX), -ESRCH);
}

static void test_hostile_comm(void **state)
{
	struct victim v;

	(void)state;
	assert_return_code(prctl(PR_SET_NAME, "x) R 1 ) (\n 99"), 0);
	victim_start(&v, NULL, 0);
	prctl(PR_SET_NAME, "open_test");
	assert_int_equal(open_of(&v), 0);
	target_close(&target);
	assert_int_equal(target_open(&target, (uint32_t)v.pid, 0, v.start_ns - 1), -ESRCH);
	victim_end(&v);
}

/* Both readers of mappings, against each other and against what was mapped. */
static void test_maps(void **state)
{
	static struct target_vma a, b;
	struct target_maps query, text;
	int n = 0, vdso = 0, mapped = 0;
	struct victim v;
	uint64_t at = 0;
	char path[256];

	(void)state;
	snprintf(path, sizeof(path), "%s", victim_file("line\nbreak"));
	victim_start(&v, path, 0);
	assert_int_equal(open_of(&v), 0);
	assert_int_equal(target_maps_open(&query, &target), 0);
	assert_int_equal(target_maps_open(&text, &target), 0);
	text.text = fdopen(text.fd, "r");
	for (;; n++, at = a.range.end) {
		int err = target_maps_next(&query, at, &a);

		if (err) {
			assert_int_equal(err, -ENOENT);
			/* no mapping of the process, so only the text has it */
			while (target_maps_next(&text, at, &b) == 0)
				assert_string_equal(b.name, "[vsyscall]");
			break;
		}
		assert_int_equal(target_maps_next(&text, at, &b), 0);
		assert_true(a.range.start < a.range.end && a.range.start >= at);
		assert_int_equal(a.range.start, b.range.start);
		assert_int_equal(a.range.end, b.range.end);
		assert_int_equal(a.range.offset, b.range.offset);
		assert_int_equal(a.range.inode, b.range.inode);
		assert_int_equal(a.range.dev_major, b.range.dev_major);
		assert_int_equal(a.range.dev_minor, b.range.dev_minor);
		assert_true(a.range.inode == 0 || a.name[0] == b.name[0]);
		vdso += strcmp(a.name, "[vdso]") == 0 && strcmp(b.name, "[vdso]") == 0;
		mapped += a.range.start == VICTIM_ADDRESS && a.range.end == VICTIM_ADDRESS + 4096;
	}
	assert_true(n >= 3);
	assert_int_equal(vdso, 1);
	assert_int_equal(mapped, 1);
	target_maps_close(&query);
	target_maps_close(&text);
	target_close(&target);
	victim_end(&v);
	unlink(path);
}

static void test_opens_mapped_file(void **state)
{
	static const struct {
		const char *name;
		int unlink_it;
	} cases[] = {{"plain", 0}, {"deleted", 1}};

	(void)state;
	for (int i = 0; i < 2; i++) {
		const char *path = victim_file(cases[i].name);
		struct victim v;
		unsigned char byte = 0;
		int fd;

		victim_start(&v, path, cases[i].unlink_it);
		fd = open_victim(&v);
		assert_return_code(fd, 0);
		assert_int_equal(pread(fd, &byte, 1, 4095), 1);
		assert_int_equal(byte, 0x90);
		assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		assert_int_equal(file.key.size_bytes, 4096);
		assert_int_equal(file.key.inode, v.file.st_ino);
		assert_int_equal(file.key.mtime_ns, v.file.st_mtim.tv_sec * 1000000000ull +
							(uint64_t)v.file.st_mtim.tv_nsec);
		assert_memory_equal(file.path, path, strlen(path));
		close(fd);
		victim_end(&v);
		if (!cases[i].unlink_it)
			unlink(path);
	}
}

/* /proc shows nothing of a process whose first thread has ended, but its other threads do. */
static void test_first_thread_gone(void **state)
{
	const char *path = victim_file("headless");
	char cgroup[256], exe[256];
	struct victim v;

	(void)state;
	victim_start_headless(&v, path);
	assert_return_code(close(open_victim(&v)), 0);
	assert_int_equal(file.key.inode, v.file.st_ino);
	assert_int_equal(open_of(&v), 0);
	assert_true(target.by_thread && target_alive(&target));
	assert_true(target_read(&target, "cgroup", cgroup, sizeof(cgroup)) > 0);
	target_link(&target, "exe", exe, sizeof(exe));
	assert_non_null(strstr(exe, "open_test"));
	victim_end(&v);
	assert_false(target_alive(&target));
	target_close(&target);
	unlink(path);
}

/* With the rights by which map_files may be opened, or without. */
static void have_map_files(bool allowed)
{
	const uint32_t admin = 1u << CAP_SYS_ADMIN, restore = 1u << (CAP_CHECKPOINT_RESTORE - 32);
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	assert_return_code(syscall(SYS_capget, &header, data), 0);
	data[0].effective = allowed ? data[0].permitted : data[0].permitted & ~admin;
	data[1].effective = allowed ? data[1].permitted : data[1].permitted & ~restore;
	assert_return_code(syscall(SYS_capset, &header, data), 0);
}

/* By the path then, in whatever mount namespace the process is; and only if that is the file. */
static void test_without_map_files(void **state)
{
	int self = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), fd;
	struct victim v;

	(void)state;
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/mnt", "tmpfs", 0, NULL)) {
		close(self);
		skip();
	}
	fd = open("/mnt/x", O_CREAT | O_WRONLY, 0755);
	assert_return_code(ftruncate(fd, 4096), 0);
	close(fd);
	victim_start(&v, "/mnt/x", 0);
	have_map_files(false);
	assert_return_code(close(open_victim(&v)), 0);
	assert_int_equal(file.key.inode, v.file.st_ino);
	assert_string_equal(file.path, "/mnt/x");
	assert_return_code(rename("/mnt/x", "/mnt/y"), 0);
	close(open("/mnt/x", O_CREAT | O_WRONLY, 0755));
	assert_return_code(close(open_victim(&v)), 0); /* the kernel knows the new path */
	assert_return_code(unlink("/mnt/y"), 0);
	assert_int_equal(open_victim(&v), -EPERM);
	have_map_files(true);
	assert_return_code(setns(self, CLONE_NEWNS), 0);
	close(self);
	victim_end(&v);
}

static void test_wrong_mapping_refused(void **state)
{
	const char *path = victim_file("wrong");
	struct message_ask_file ask, right;
	struct victim v;

	(void)state;
	victim_start(&v, path, 0);
	right = ask_of(&v);
	assert_int_equal(open_of(&v), 0);
	ask_device(&right);
	ask = right;
	ask.inode++;
	assert_int_equal(open_mapped(&target, &ask, &file), -ESTALE);
	ask = right;
	ask.dev_minor++;
	assert_int_equal(open_mapped(&target, &ask, &file), -ESTALE);
	ask = right;
	ask.start += 0x100000;
	ask.end += 0x100000;
	assert_int_equal(open_mapped(&target, &ask, &file), -ESTALE);
	ask = right; /* as a set of ranges may have joined or cut it */
	ask.start -= 0x10000;
	ask.end += 0x10000;
	assert_return_code(close(open_mapped(&target, &ask, &file)), 0);
	target_close(&target);
	victim_end(&v);
	unlink(path);
}

static void test_device_refused(void **state)
{
	struct victim v;

	(void)state;
	victim_start(&v, "/dev/zero", 0);
	assert_int_equal(open_victim(&v), -EINVAL);
	victim_end(&v);
}

/* A victim with a mount namespace of its own, which nobody else sees. */
static void test_other_mount_namespace(void **state)
{
	struct victim v;
	int self = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), fd;

	(void)state;
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/mnt", "tmpfs", 0, NULL)) {
		print_message("skipped: no mount namespace\n");
		close(self);
		skip();
	}
	fd = open("/mnt/x", O_CREAT | O_WRONLY, 0755);
	assert_return_code(ftruncate(fd, 4096), 0);
	close(fd);
	victim_start(&v, "/mnt/x", 0);
	assert_return_code(setns(self, CLONE_NEWNS), 0);
	close(self);
	fd = open_victim(&v);
	assert_return_code(fd, 0);
	close(fd);
	victim_end(&v);
}

/* A mount that is listed nowhere is of unknown type: refused. */
static void test_unknown_mount_refused(void **state)
{
	struct victim v;
	int self = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), fd;

	(void)state;
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/mnt", "tmpfs", 0, NULL)) {
		close(self);
		skip();
	}
	fd = open("/mnt/x", O_CREAT | O_WRONLY, 0755);
	assert_return_code(ftruncate(fd, 4096), 0);
	close(fd);
	victim_start(&v, "/mnt/x", 0);
	assert_return_code(umount2("/mnt", MNT_DETACH), 0);
	assert_return_code(setns(self, CLONE_NEWNS), 0);
	close(self);
	assert_int_equal(open_victim(&v), -EOPNOTSUPP);
	victim_end(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_identity),
	    cmocka_unit_test(test_hostile_comm),
	    cmocka_unit_test(test_maps),
	    cmocka_unit_test(test_opens_mapped_file),
	    cmocka_unit_test(test_first_thread_gone),
	    cmocka_unit_test(test_without_map_files),
	    cmocka_unit_test(test_wrong_mapping_refused),
	    cmocka_unit_test(test_device_refused),
	    cmocka_unit_test(test_other_mount_namespace),
	    cmocka_unit_test(test_unknown_mount_refused),
	};

	if (geteuid() != 0) {
		print_message("needs root\n");
		return 77;
	}
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
