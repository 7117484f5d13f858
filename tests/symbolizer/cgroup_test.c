/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/cgroup as the runtimes write it, and as nobody should. */
#define _GNU_SOURCE
#include "symbolizer/cgroup.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ID  "8f0b2d6d1c3e4a5b6c7d8e9f00112233445566778899aabbccddeeff00112233"
#define ID2 "ffffffff1c3e4a5b6c7d8e9f00112233445566778899aabbccddeeff00112233"
#define POD "pod6a5b4c3d_1111_2222_3333_444455556666"

static const struct {
	const char *what, *bytes, *path, *id, *unit;
} cases[] = {
    {"v2, a service", "0::/system.slice/nginx.service\n", "/system.slice/nginx.service", "",
     "nginx.service"},
    {"v2, root", "0::/\n", "/", "", ""},
    {"v2, a user's service",
     "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-foo.service\n",
     "/user.slice/user-1000.slice/user@1000.service/app.slice/app-foo.service", "",
     "app-foo.service"},
    {"v2, a login", "0::/user.slice/user-0.slice/session-3.scope\n",
     "/user.slice/user-0.slice/session-3.scope", "", "session-3.scope"},
    {"v2, below a service", "0::/system.slice/a.service/workers/1\n",
     "/system.slice/a.service/workers/1", "", "a.service"},
    {"v2, docker by systemd", "0::/system.slice/docker-" ID ".scope\n",
     "/system.slice/docker-" ID ".scope", ID, ""},
    {"v2, docker by cgroupfs", "0::/docker/" ID "\n", "/docker/" ID, ID, ""},
    {"v2, systemd in a container",
     "0::/system.slice/docker-" ID ".scope/system.slice/sshd.service\n",
     "/system.slice/docker-" ID ".scope/system.slice/sshd.service", ID, "sshd.service"},
    {"v2, kubernetes on containerd",
     "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-" POD
     ".slice/cri-containerd-" ID ".scope\n",
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-" POD ".slice/cri-containerd-" ID
     ".scope",
     ID, ""},
    {"v2, kubernetes on CRI-O", "0::/kubepods.slice/kubepods-" POD ".slice/crio-" ID ".scope\n",
     "/kubepods.slice/kubepods-" POD ".slice/crio-" ID ".scope", ID, ""},
    {"v2, CRI-O's monitor is in no container",
     "0::/kubepods.slice/kubepods-" POD ".slice/crio-conmon-" ID ".scope\n",
     "/kubepods.slice/kubepods-" POD ".slice/crio-conmon-" ID ".scope", "",
     "crio-conmon-" ID ".scope"},
    {"containerd told to use systemd, but not the kubelet",
     "0::/system.slice/containerd.service/kubepods-besteffort-" POD ".slice:cri-containerd:" ID
     "\n",
     "/system.slice/containerd.service/kubepods-besteffort-" POD ".slice:cri-containerd:" ID, ID,
     ""},
    {"kubepods by cgroupfs", "0::/kubepods/besteffort/" POD "/" ID "\n",
     "/kubepods/besteffort/" POD "/" ID, ID, ""},
    {"podman", "0::/machine.slice/libpod-" ID ".scope/container\n",
     "/machine.slice/libpod-" ID ".scope/container", ID, ""},
    {"podman of a user",
     "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope\n",
     "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", ID, ""},
    {"podman's monitor", "0::/machine.slice/libpod-conmon-" ID ".scope\n",
     "/machine.slice/libpod-conmon-" ID ".scope", "", "libpod-conmon-" ID ".scope"},
    {"a node in a container: the inner one counts",
     "0::/docker/" ID2 "/kubelet/kubepods/" POD "/" ID "\n",
     "/docker/" ID2 "/kubelet/kubepods/" POD "/" ID, ID, ""},
    {"v1, a service",
     "12:pids:/system.slice/cron.service\n5:freezer:/\n1:name=systemd:/system.slice/cron.service\n",
     "/system.slice/cron.service", "", "cron.service"},
    {"v1, docker",
     "12:pids:/docker/" ID "\n2:cpu,cpuacct:/docker/" ID "\n1:name=systemd:/docker/" ID "\n",
     "/docker/" ID, ID, ""},
    {"v1, the systemd hierarchy names the workload",
     "3:memory:/user.slice\n1:name=systemd:/user.slice/user-0.slice/session-1.scope\n",
     "/user.slice/user-0.slice/session-1.scope", "", "session-1.scope"},
    {"hybrid, a service",
     "4:memory:/system.slice/a.service\n1:name=systemd:/system.slice/a.service\n"
     "0::/system.slice/a.service\n",
     "/system.slice/a.service", "", "a.service"},
    {"hybrid, docker: the container wins over v2",
     "1:name=systemd:/docker/" ID "\n0::/system.slice/containerd.service\n", "/docker/" ID, ID, ""},
    {"hybrid, nothing in v2", "1:name=systemd:/system.slice/b.service\n0::/\n",
     "/system.slice/b.service", "", "b.service"},
    {"a reader in a container: the one beside it", "0::/../docker-" ID ".scope\n",
     "/docker-" ID ".scope", ID, ""},
    {"a reader in a pod: a service", "0::/../../../../system.slice/nginx.service\n",
     "/system.slice/nginx.service", "", "nginx.service"},
    {"a reader in a container: the root", "0::/../..\n", "/", "", ""},
    {"a reader in a container: itself", "0::/\n", "/", "", ""},
    {"hybrid, a reader in a container, nothing in v2",
     "1:name=systemd:/../../system.slice/b.service\n0::/../..\n", "/system.slice/b.service", "",
     "b.service"},
    {"not a way up", "0::/..a/b.service\n", "/..a/b.service", "", "b.service"},
    {"a way up in the middle is a name", "0::/../a/../b.service\n", "/a/../b.service", "",
     "b.service"},
    {"no newline at the end", "0::/a.service", "/a.service", "", "a.service"},
    {"colons in the path", "0::/a:b/c.service\n", "/a:b/c.service", "", "c.service"},
    {"65 digits are no id", "0::/docker/0" ID "\n", "/docker/0" ID, "", ""},
    {"capitals are no id", "0::/docker/F" ID "\n", "/docker/F" ID, "", ""},
    {"empty", "", "", "", ""},
    {"no colon", "nonsense\n", "", "", ""},
    {"one colon", "0:nonsense\n", "", "", ""},
    {"bad lines between good ones", "x\n::\n0::/a.scope\n:\n", "/a.scope", "", "a.scope"},
};

static void test_table(void **state)
{
	struct cgroup cgroup;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		/* In memory of just that size, so that a read too far is seen. */
		size_t n = strlen(cases[i].bytes);
		char *bytes = malloc(n + 1);

		memcpy(bytes, cases[i].bytes, n);
		bytes = realloc(bytes, n ? n : 1);
		cgroup_parse(&cgroup, bytes, n);
		free(bytes);
		if (strcmp(cgroup.path, cases[i].path) ||
		    strcmp(cgroup.container_id, cases[i].id) || strcmp(cgroup.unit, cases[i].unit))
			fail_msg("%s: path %s id %s unit %s", cases[i].what, cgroup.path,
				 cgroup.container_id, cgroup.unit);
	}
}

static void test_long_and_random(void **state)
{
	static const char alphabet[] = "0:/\n-.scopeservicea5f\0";
	struct cgroup cgroup;
	char bytes[4096];

	(void)state;
	memset(bytes, 'a', sizeof(bytes));
	memcpy(bytes, "0::/", 4);
	cgroup_parse(&cgroup, bytes, sizeof(bytes));
	assert_int_equal(strlen(cgroup.path), CGROUP_PATH_BYTES - 1);
	memcpy(bytes + sizeof(bytes) - 8, ".service", 8);
	cgroup_parse(&cgroup, bytes, sizeof(bytes));
	assert_int_equal(strlen(cgroup.unit), CGROUP_UNIT_BYTES - 1);
	srand(3);
	for (int round = 0; round < 20000; round++) {
		size_t n = (size_t)rand() % 200;
		char *p = malloc(n + 1);

		for (size_t i = 0; i < n; i++)
			p[i] = alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
		cgroup_parse(&cgroup, p, n);
		assert_true(memchr(cgroup.path, 0, sizeof(cgroup.path)) != NULL);
		free(p);
	}
}

/* The first hierarchy of this machine in which we may make groups: v2, or that of systemd. */
static const char *hierarchy(void)
{
	static const char *const places[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd",
					     "/sys/fs/cgroup"};
	char path[128];

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(path, sizeof(path), "%s/cgroup.procs", places[i]);
		if (access(path, W_OK) == 0)
			return places[i];
	}
	return NULL;
}

static void join(const char *group)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	file = fopen(path, "w");
	if (!file || fprintf(file, "%d", getpid()) < 0 || fclose(file))
		_exit(1);
}

/* In group `reader`, with a namespace that begins there: what is in the cgroup file of pid. */
static void read_from(const char *reader, pid_t pid, int out)
{
	char path[64], bytes[4096];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	join(reader);
	if (unshare(CLONE_NEWCGROUP))
		_exit(2);
	fd = open(path, O_RDONLY);
	n = read(fd, bytes, sizeof(bytes));
	_exit(n > 0 && write(out, bytes, (size_t)n) == n ? 0 : 3);
}

static void test_reader_in_a_namespace(void **state)
{
	const char *root = geteuid() == 0 ? hierarchy() : NULL;
	char parent[256], reader[300], container[400], bytes[4096];
	struct cgroup cgroup;
	int victim_pipe[2], pipe_fds[2], status;
	pid_t victim, child;
	ssize_t n;

	(void)state;
	snprintf(parent, sizeof(parent), "%s/cgroup-test-%d", root ? root : "", getpid());
	if (!root || mkdir(parent, 0755)) {
		puts("no cgroups may be made here: not tried in a real namespace");
		skip();
	}
	snprintf(reader, sizeof(reader), "%s/reader", parent);
	snprintf(container, sizeof(container), "%s/docker-" ID ".scope", parent);
	assert_int_equal(mkdir(reader, 0755) | mkdir(container, 0755), 0);
	assert_int_equal(pipe(victim_pipe) | pipe(pipe_fds), 0);
	victim = fork();
	if (victim == 0) {
		join(container);
		if (write(victim_pipe[1], "y", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(victim_pipe[0], bytes, 1), 1);
	child = fork();
	if (child == 0)
		read_from(reader, victim, pipe_fds[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	kill(victim, SIGKILL);
	waitpid(victim, NULL, 0);
	rmdir(container);
	rmdir(reader);
	rmdir(parent);
	assert_int_equal(status, 0);
	n = read(pipe_fds[0], bytes, sizeof(bytes) - 1);
	assert_true(n > 0);
	bytes[n] = 0;
	assert_non_null(strstr(bytes, ":/../docker-" ID ".scope"));
	cgroup_parse(&cgroup, bytes, (size_t)n);
	assert_string_equal(cgroup.container_id, ID);
	assert_string_equal(cgroup.path, "/docker-" ID ".scope");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_table),
	    cmocka_unit_test(test_long_and_random),
	    cmocka_unit_test(test_reader_in_a_namespace),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
