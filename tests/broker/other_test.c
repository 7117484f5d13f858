/* SPDX-License-Identifier: Apache-2.0 */
/* What lies beside mapped files: where it is looked for, and what is refused. */
#define _GNU_SOURCE
#include "broker/other.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker/open.h"
#include "tests/broker/victim.h"

#define HOST_PLACES 3 /* from that number on they are those of the machine's root */

static struct blame blame;
static struct target target = {.blame = &blame};
static struct message_other other;
static struct victim victim;
static int hangfs;

/* --- A mount namespace that only the victim and what is made for it are in. --- */

static int own_ns = -1, own_root = -1;

static void world_begin(void)
{
	own_ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	own_root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/mnt", "tmpfs", 0, NULL) || mount("tmpfs", "/tmp", "tmpfs", 0, NULL) ||
	    (access("/usr/lib/debug", F_OK) && mount("tmpfs", "/usr/lib", "tmpfs", 0, NULL))) {
		print_message("skipped: no mount namespace\n");
		skip();
	}
	mkdir("/usr/lib/debug", 0755);
	assert_return_code(mount("tmpfs", "/usr/lib/debug", "tmpfs", 0, NULL), 0);
	mkdir("/mnt/bin", 0755);
}

/* As which, and the rest of the test is outside again. */
static void world_run(const char *mapped)
{
	victim_start(&victim, mapped, 0);
	assert_return_code(setns(own_ns, CLONE_NEWNS), 0);
	assert_return_code(fchdir(own_root), 0);
	close(own_ns);
	close(own_root);
}

static void make(const char *path, const char *text)
{
	char folder[PATH_MAX];
	int fd;

	snprintf(folder, sizeof(folder), "%s", path);
	for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(folder, 0755);
		*slash = '/';
	}
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	assert_return_code(fd, errno);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_return_code(ftruncate(fd, 4096), 0);
	close(fd);
}

static int ask(enum other_kind kind, uint32_t place, const void *name, uint32_t bytes)
{
	struct message_ask_other question = {
	    .file = {.start = VICTIM_ADDRESS, .end = VICTIM_ADDRESS + 4096},
	    .need = {.kind = kind, .place = place, .bytes = bytes}};
	struct target_maps maps;
	static struct target_vma vma;
	int fd;

	memcpy(question.need.name, name, bytes < sizeof(question.need.name) ? bytes : 0);
	memset(&other, 0, sizeof(other));
	assert_int_equal(target_open(&target, (uint32_t)victim.pid, 0, UINT64_MAX), 0);
	assert_int_equal(target_maps_open(&maps, &target), 0);
	assert_int_equal(target_maps_next(&maps, VICTIM_ADDRESS, &vma), 0);
	target_maps_close(&maps);
	question.file.inode = vma.range.inode;
	question.file.dev_major = vma.range.dev_major;
	question.file.dev_minor = vma.range.dev_minor;
	fd = other_open(&target, &question, &other);
	target_close(&target);
	return fd;
}

/* It is that file, at that place. */
static void assert_found(int fd, uint32_t place, const char *text)
{
	char bytes[64] = "";
	struct stat st;

	assert_return_code(fd, -fd);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_true(pread(fd, bytes, strlen(text), 0) == (ssize_t)strlen(text));
	assert_string_equal(bytes, text);
	assert_int_equal(other.need.place, place);
	assert_return_code(fstat(fd, &st), 0);
	assert_int_equal(other.file.key.inode, st.st_ino);
	assert_int_equal(other.file.key.size_bytes, st.st_size);
	close(fd);
}

static int ask_name(enum other_kind kind, uint32_t place, const char *name)
{
	return ask(kind, place, name, (uint32_t)strlen(name));
}

static void test_places(void **state)
{
	static const uint8_t id[] = {0xab, 0x01, 0xff}, unknown[] = {0xab, 0x02};

	(void)state;
	world_begin();
	make("/mnt/bin/prog", "program");
	make("/usr/lib/debug/.build-id/ab/01ff.debug", "by id");
	make("/mnt/bin/prog.debug", "beside");
	make("/mnt/bin/.debug/prog.debug", "below");
	make("/mnt/bin/.debug/prog", "below, as yocto calls it");
	make("/usr/lib/debug/mnt/bin/prog.debug", "in a tree of their own");
	make("/usr/lib/debug/.dwz/shared.1", "by rpm");
	make("/usr/lib/debug/.dwz/x86_64-linux-gnu/shared.debug", "by dh_dwz");
	make("/mnt/bin/prog.dwp", "package");
	make("/mnt/bin/part.dwo", "part");
	world_run("/mnt/bin/prog");
	assert_found(ask(OTHER_BUILD_ID, 0, id, sizeof(id)), 0, "by id");
	assert_int_equal(ask(OTHER_BUILD_ID, 1, id, sizeof(id)), -ENOENT);
	assert_int_equal(ask(OTHER_BUILD_ID, 0, unknown, sizeof(unknown)), -ENOENT);
	assert_found(ask_name(OTHER_LINK, 0, "prog.debug"), 0, "beside");
	assert_found(ask_name(OTHER_LINK, 1, "prog.debug"), 1, "below");
	assert_found(ask_name(OTHER_LINK, 2, "prog.debug"), 2, "in a tree of their own");
	assert_int_equal(ask_name(OTHER_LINK, 3, "prog.debug"), -ENOENT);
	assert_found(ask_name(OTHER_LINK, 0, "prog"), 1, "below, as yocto calls it");
	assert_found(ask_name(OTHER_ALT, 0, "shared.debug"), 0, "by dh_dwz");
	assert_found(ask_name(OTHER_ALT, 0, "shared.1"), 1, "by rpm");
	assert_found(ask_name(OTHER_DWP, 0, ""), 0, "package");
	assert_found(ask_name(OTHER_DWP, 0, "prog"), 0, "package");
	assert_int_equal(ask_name(OTHER_DWP, 0, "prog.debug"), -ENOENT);
	assert_found(ask_name(OTHER_DWO, 0, "part.dwo"), 0, "part");
	assert_int_equal(ask_name(OTHER_LINK, UINT32_MAX, "prog.debug"), -ENOENT);
	victim_end(&victim);
}

/* The root of the process comes first, then the machine's: where its debug packages are. */
static void test_chroot(void **state)
{
	int root;

	(void)state;
	world_begin();
	root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make("/mnt/root/bin/prog", "program");
	make("/mnt/root/bin/prog.debug", "inside");
	make("/mnt/root/usr/lib/debug/bin/prog.debug", "inside, in a tree");
	make("/usr/lib/debug/bin/other.debug", "not seen from there");
	assert_return_code(mkdir("/mnt/root/proc", 0755), 0);
	assert_return_code(mount("/proc", "/mnt/root/proc", NULL, MS_BIND | MS_REC, NULL), 0);
	assert_return_code(chroot("/mnt/root"), 0);
	victim_start(&victim, "/bin/prog", 0);
	assert_return_code(fchdir(root), 0);
	assert_return_code(chroot("."), 0);
	close(root);
	/* Without leaving the namespace: the machine's root may be taken for this one. */
	assert_found(ask_name(OTHER_LINK, 0, "prog.debug"), 0, "inside");
	assert_found(ask_name(OTHER_LINK, 1, "prog.debug"), 2, "inside, in a tree");
	assert_int_equal(ask_name(OTHER_LINK, 0, "other.debug"), -ENOENT);
	victim_end(&victim);
	assert_return_code(setns(own_ns, CLONE_NEWNS), 0);
	close(own_ns);
	close(own_root);
}

static void test_names_refused(void **state)
{
	static const uint8_t long_id[65] = {0xee, 1};
	static const struct {
		const char *name;
		uint32_t bytes;
	} names[] = {{"", 0},
		     {".", 1},
		     {"..", 2},
		     {"../prog.debug", 13},
		     {"/x.debug", 8},
		     {"x/y.debug", 9},
		     {"a\0.debug", 8},
		     {"x.debug\0", 8},
		     {"x", MESSAGE_OTHER_BYTES + 1},
		     {"x", UINT32_MAX}};
	static const enum other_kind kinds[] = {OTHER_LINK, OTHER_ALT, OTHER_DWO, OTHER_KINDS, 77};
	static const char *const secrets[] = {"secret", "secret.debug.txt", "debug", "secret.dwp"};

	(void)state;
	world_begin();
	make("/mnt/bin/prog", "program");
	make("/mnt/bin/x.debug", "debug");
	for (size_t i = 0; i < 4; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/mnt/bin/%s", secrets[i]);
		make(path, "secret");
	}
	world_run("/mnt/bin/prog");
	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			assert_int_equal(ask(kinds[k], 0, names[i].name, names[i].bytes), -EPROTO);
	assert_int_equal(ask(OTHER_BUILD_ID, 0, long_id, 1), -EPROTO);
	assert_int_equal(ask(OTHER_BUILD_ID, 0, long_id, sizeof(long_id)), -EPROTO);
	assert_int_equal(ask(OTHER_BUILD_ID, 0, long_id, sizeof(long_id) - 1), -ENOENT);
	assert_found(ask_name(OTHER_LINK, 0, "x.debug"), 0, "debug");
	/* In the folder of the program the name has to say that it is for us. */
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(ask_name(OTHER_LINK, 0, secrets[i]), -ENOENT);
		assert_int_equal(ask_name(OTHER_DWO, 0, secrets[i]), -ENOENT);
	}
	victim_end(&victim);
}

static void test_types_and_links_refused(void **state)
{
	(void)state;
	world_begin();
	make("/mnt/bin/prog", "program");
	make("/mnt/secret", "secret");
	assert_return_code(symlink("/mnt/secret", "/mnt/bin/link.debug"), 0);
	assert_return_code(mkfifo("/mnt/bin/fifo.debug", 0644), 0);
	assert_return_code(mkdir("/mnt/bin/folder.debug", 0755), 0);
	assert_return_code(symlink("/mnt", "/mnt/bin/.debug"), 0);
	assert_return_code(symlink("/mnt", "/usr/lib/debug/mnt"), 0);
	assert_return_code(symlink("/mnt/secret", "/usr/lib/debug/link.debug"), 0);
	world_run("/mnt/bin/prog");
	assert_int_equal(ask_name(OTHER_LINK, 0, "link.debug"), -ELOOP);
	assert_int_equal(ask_name(OTHER_LINK, 1, "secret"), -ELOOP);
	assert_int_equal(ask_name(OTHER_LINK, 2, "secret"), -ELOOP);
	assert_int_equal(ask_name(OTHER_LINK, 0, "fifo.debug"), -ELOOP);
	assert_int_equal(other.need.place, 2 * HOST_PLACES - 1);
	assert_int_equal(ask_name(OTHER_DWO, 0, "fifo.debug"), -EINVAL);
	assert_int_equal(ask_name(OTHER_DWO, 0, "folder.debug"), -EINVAL);
	victim_end(&victim);
}

/* On the machine itself its folder of debug information may lead elsewhere, and no other may. */
static void test_links_of_the_machine(void **state)
{
	static const char *const made[] = {"/usr/lib/debug", "/usr/lib/debug/.build-id",
					   "/usr/lib/debug/.build-id/5c"};
	char path[128], beside[256];
	const char *mapped = victim_file("linked");
	uint32_t pid = (uint32_t)getpid();
	uint8_t id[8] = {0x5c, 0x0c, 0xe0, 0};
	int before = 0;

	(void)state;
	for (int i = 0; i < 3; i++)
		before += mkdir(made[i], 0755) != 0;
	memcpy(id + 4, &pid, sizeof(pid));
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/5c/0ce000%02x%02x%02x%02x.debug",
		 id[4], id[5], id[6], id[7]);
	assert_return_code(symlink(mapped, path), errno);
	snprintf(beside, sizeof(beside), "%s.debug", mapped);
	assert_return_code(symlink(mapped, beside), errno);
	victim_start(&victim, mapped, 0);
	assert_found(ask(OTHER_BUILD_ID, 0, id, sizeof(id)), 0, "\x90\x90");
	assert_int_equal(ask_name(OTHER_LINK, 0, strrchr(beside, '/') + 1), -ELOOP);
	victim_end(&victim);
	unlink(beside);
	unlink(path);
	unlink(mapped);
	for (int i = 2; i >= before; i--)
		rmdir(made[i]);
}

static void test_blamed(void **state)
{
	struct stat st;

	(void)state;
	world_begin();
	make("/mnt/bin/prog", "program");
	make("/mnt/bin/prog.debug", "beside");
	assert_return_code(stat("/mnt/bin/prog.debug", &st), 0);
	world_run("/mnt/bin/prog");
	blame.files[0] =
	    (struct blame_file){.device = st.st_dev, .inode = st.st_ino, .points = BLAME_FILE};
	assert_int_equal(ask_name(OTHER_LINK, 0, "prog.debug"), -EOWNERDEAD);
	memset(&blame, 0, sizeof(blame));
	assert_found(ask_name(OTHER_LINK, 0, "prog.debug"), 0, "beside");
	assert_int_equal(blame.at.inode, st.st_ino);
	victim_end(&victim);
}

/* Mounts that may hang are not entered; a list as the kernel writes it. */
static void test_ways(void **state)
{
	static const struct {
		const char *path;
		int err;
	} ways[] = {{"/usr/lib/debug/x", 0},
		    {"/fuse", -EOPNOTSUPP},
		    {"/fuse/x", -EOPNOTSUPP},
		    {"/fusel/x", 0},
		    {"/fus", 0},
		    {"/a b/.debug/x", -EOPNOTSUPP},
		    {"/a b/x", 0},
		    {"/a\\040b/.debug/x", 0},
		    {"/home/x/y.debug", -EOPNOTSUPP}};
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/tmp/sconce-other-test-%d", getpid());
	make(path, "1 0 8:1 / / rw shared:1 - ext4 /dev/sda rw\n"
		   "2 1 0:1 / /fuse rw - fuse.sshfs x rw\n"
		   "3 1 0:2 / /a\\040b/.debug rw - nfs4 x rw\n"
		   "4 1 0:3 / /home rw - autofs x rw\n"
		   "5 4 0:3 / /home/x rw - ext4 x rw\n");
	victim_start(&victim, NULL, 0);
	assert_int_equal(target_open(&target, (uint32_t)victim.pid, 0, UINT64_MAX), 0);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		assert_int_equal(open_check_way(&target, path, ways[i].path), ways[i].err);
	assert_int_equal(open_check_way(&target, "mountinfo", "/usr/lib/debug"), 0);
	assert_int_equal(open_check_way(&target, "/proc/nothing", "/usr/lib/debug"), -ENOENT);
	target_close(&target);
	victim_end(&victim);
	unlink(path);
}

/* A server that answers nothing, below the folder of the program: it is not even looked up. */
static void test_mount_that_hangs(void **state)
{
	int to[2], from[2], nothing;
	char text[64] = "";
	pid_t server;

	(void)state;
	world_begin();
	make("/mnt/bin/prog", "program");
	make("/mnt/back/prog.debug", "debug");
	assert_return_code(mkdir("/mnt/bin/.debug", 0755), 0);
	assert_return_code(pipe(to) | pipe(from), 0);
	server = fork();
	if (server == 0) {
		nothing = dup2(to[0], 0) | dup2(from[1], 1);
		close(to[1]);
		fexecve(hangfs, (char *[]){"hangfs", "/mnt/back", "/mnt/bin/.debug", NULL},
			environ);
		_exit(nothing ? 127 : 0);
	}
	close(to[0]);
	close(from[1]);
	if (read(from[0], text, sizeof(text) - 1) <= 0 || strcmp(text, "ready\n") != 0) {
		print_message("skipped: no FUSE: %s\n", text);
		waitpid(server, NULL, 0);
		setns(own_ns, CLONE_NEWNS);
		skip();
	}
	assert_int_equal(write(to[1], "hang LOOKUP\nhang GETATTR\n", 25), 25);
	for (ssize_t said = 0; said < 25;) /* the same again */
		said += read(from[0], text, sizeof(text));
	world_run("/mnt/bin/prog");
	assert_int_equal(ask_name(OTHER_LINK, 0, "prog.debug"), -EOPNOTSUPP);
	assert_int_equal(fcntl(from[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(read(from[0], text, sizeof(text)), -1); /* nobody asked it */
	/* It holds the other end of the server's input as well. */
	victim_end(&victim);
	close(to[1]);
	waitpid(server, NULL, 0);
	close(from[0]);
}

/* By the number that the process has for itself, and made by itself or by root. */
static void test_perf_map(void **state)
{
	int pids = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);

	(void)state;
	world_begin();
	make("/mnt/bin/prog", "program");
	make("/tmp/perf-1.map", "1000 10 f\n");
	assert_return_code(unshare(CLONE_NEWPID), 0);
	world_run("/mnt/bin/prog"); /* as pid 1 */
	assert_return_code(setns(pids, CLONE_NEWPID), 0);
	close(pids);
	assert_found(ask(OTHER_PERF_MAP, 0, "", 0), 0, "1000 10 f\n");
	assert_int_equal(ask(OTHER_PERF_MAP, 1, "", 0), -ENOENT);
	assert_found(ask_name(OTHER_PERF_MAP, 0, "../x"), 0,
		     "1000 10 f\n"); /* nobody asks for it */
	victim_end(&victim);
}

static void test_perf_map_of_others(void **state)
{
	char map[64], again[64];

	(void)state;
	world_begin();
	make("/mnt/bin/prog", "program");
	victim_start(&victim, "/mnt/bin/prog", 0);
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", victim.pid);
	snprintf(again, sizeof(again), "/tmp/again-%d", victim.pid);
	assert_int_equal(ask(OTHER_PERF_MAP, 0, "", 0), -ENOENT);
	make(map, "1000 10 f\n");
	assert_found(ask(OTHER_PERF_MAP, 0, "", 0), 0, "1000 10 f\n");
	assert_return_code(chown(map, 4711, 4711), 0);
	assert_int_equal(ask(OTHER_PERF_MAP, 0, "", 0), -EPERM);
	assert_return_code(chown(map, 0, 0), 0);
	assert_return_code(link(map, again), 0);
	assert_int_equal(ask(OTHER_PERF_MAP, 0, "", 0), -EPERM);
	assert_return_code(unlink(map), 0);
	assert_return_code(symlink(again, map), 0);
	assert_int_equal(ask(OTHER_PERF_MAP, 0, "", 0), -ELOOP);
	victim_end(&victim);
	assert_return_code(setns(own_ns, CLONE_NEWNS), 0);
	close(own_ns);
	close(own_root);
}

int main(int argc, char **argv)
{
	char path[PATH_MAX];
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_places),
	    cmocka_unit_test(test_chroot),
	    cmocka_unit_test(test_names_refused),
	    cmocka_unit_test(test_types_and_links_refused),
	    cmocka_unit_test(test_links_of_the_machine),
	    cmocka_unit_test(test_blamed),
	    cmocka_unit_test(test_ways),
	    cmocka_unit_test(test_mount_that_hangs),
	    cmocka_unit_test(test_perf_map),
	    cmocka_unit_test(test_perf_map_of_others),
	};

	(void)argc;
	if (geteuid() != 0) {
		print_message("needs root\n");
		return 77;
	}
	/* Before other folders lie over it. */
	snprintf(path, sizeof(path), "%s/../hostile/hangfs", dirname(argv[0]));
	hangfs = open(path, O_RDONLY | O_CLOEXEC);
	assert_return_code(hangfs, errno);
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
