/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `sconce doctor` on machines made of a few files. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/checks.h"
#include "cli/places.h"

#define ALL (~0ull)

static char root[] = "/tmp/checks-XXXXXX";
static struct checks_world world;
static struct config config;
static int answers[PROBE_MAP_FILES + 1]; /* of the kernel, to each question */
static uint32_t room, refused;		 /* pages of perf memory; namespaces */

static int probe(enum probe which, uint32_t argument)
{
	if (which == PROBE_PERF_MEMORY)
		return argument > room ? -EPERM : 0;
	if (which == PROBE_NAMESPACES)
		return argument & refused ? -ENOSPC : 0;
	return answers[which];
}

static void make(const char *path, const char *text)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = full + sizeof(root); (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(full, 0700);
		*slash = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void make_link(const char *path, const char *target)
{
	char full[256];

	make(path, "");
	snprintf(full, sizeof(full), "%s%s", root, path);
	assert_return_code(unlink(full), errno);
	assert_return_code(symlink(target, full), errno);
}

static void make_program(enum role role)
{
	char full[256], name[64];

	snprintf(name, sizeof(name), "/sconce-%s", role_name(role));
	snprintf(full, sizeof(full), "%s%s", root, name);
	make(name, "");
	assert_return_code(chmod(full, 0755), errno);
}

/* A machine on which all is well. */
static int setup(void **state)
{
	(void)state;
	make("/proc/sys/kernel/perf_event_paranoid", "2\n");
	make("/proc/sys/kernel/io_uring_disabled", "0\n");
	make("/proc/kallsyms", "ffffffff81000000 T _stext\n");
	make("/proc/self/cgroup", "4:memory:/\n0::/user.slice\n");
	make("/proc/self/mountinfo", "22 27 0:21 / /proc rw - proc proc rw\n");
	make("/proc/modules", "");
	make("/etc/machine-id", "0123456789abcdef0123456789abcdef\n");
	make("/sys/kernel/btf/vmlinux", "btf");
	make("/sys/devices/system/cpu/possible", "0-1\n");
	make("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	for (enum role role = ROLE_SUPERVISOR; role < ROLE_COUNT; role++)
		make_program(role);
	make_link("/proc/self/ns/user", "user:[4026531837]");
	make_link("/proc/self/ns/pid", "pid:[4026531836]");
	config_defaults(&config, MODE_RUN);
	memset(answers, 0, sizeof(answers));
	answers[PROBE_LANDLOCK] = 4;
	room = ~0u;
	refused = 0;
	world = (struct checks_world){root,	     ALL,	    0,	     "6.12.0", "#1 SMP",
				      RLIM_INFINITY, RLIM_INFINITY, &config, false,    probe};
	return 0;
}

static struct check_result check(const char *name)
{
	struct check_result result;

	for (size_t i = 0; i < checks_count(); i++)
		if (!strcmp(checks_name(i), name)) {
			checks_run(i, &world, &result);
			return result;
		}
	fail_msg("no check %s", name);
	abort();
}

static void assert_state(const char *name, enum check_state state, const char *lost)
{
	struct check_result result = check(name);

	assert_int_equal(result.state, state);
	assert_true(result.found[0]);
	assert_non_null(strstr(result.lost, lost));
	assert_int_equal(result.lost[0] == 0, state == CHECK_OK);
}

static void test_all_is_well(void **state)
{
	struct check_result result;

	(void)state;
	for (size_t i = 0; i < checks_count(); i++) {
		checks_run(i, &world, &result);
		if (result.state != CHECK_OK)
			fail_msg("%s: %s: %s", checks_name(i), result.found, result.lost);
	}
}

static void test_rights(void **state)
{
	(void)state;
	world.uid = 1000;
	world.capabilities = 0;
	assert_state("root", CHECK_FATAL, "sudo");
	assert_state("CAP_BPF", CHECK_FATAL, "BPF");
	assert_state("CAP_SYS_PTRACE", CHECK_LACKS, "[unknown]");
	assert_state("perf events", CHECK_OK, "");
	assert_string_equal(check("bpf_loop").found, "not tried without CAP_BPF and CAP_PERFMON");
	assert_state("perf_event_paranoid", CHECK_OK, "");
	make("/proc/sys/kernel/perf_event_paranoid", "3\n");
	assert_state("perf_event_paranoid", CHECK_FATAL, "CAP_SYS_ADMIN");
	world.capabilities = 1ull << CAP_SYS_ADMIN;
	assert_state("perf_event_paranoid", CHECK_OK, "");
	assert_state("CAP_BPF", CHECK_FATAL, "");
}

static void remove_file(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s%s", root, path);
	assert_return_code(unlink(full), errno);
}

static void test_kernel(void **state)
{
	(void)state;
	world.release = "6.2.5";
	assert_state("kernel", CHECK_FATAL, "6.3.10");
	world.unsafe_kernel = true;
	assert_state("kernel", CHECK_OK, "");
	make("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	assert_state("lockdown", CHECK_OK, "");
	make("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	assert_state("lockdown", CHECK_FATAL, "lockdown=integrity");
	remove_file("/sys/kernel/security/lockdown");
	make("/proc/sys/net/core/bpf_jit_enable", "0\n");
	assert_state("BPF JIT", CHECK_LACKS, "bpf_jit_enable=1");
	remove_file("/proc/sys/net/core/bpf_jit_enable");
	make("/proc/sys/kernel/io_uring_disabled", "2\n");
	assert_state("io_uring", CHECK_LACKS, "pread");
	assert_string_equal(check("io_uring").found, "kernel.io_uring_disabled is 2");
}

/* What the kernel answers, and what becomes of it. */
static void test_probes(void **state)
{
	static const struct {
		const char *name;
		enum probe probe;
		enum check_state state;
		const char *lost;
	} rows[] = {
	    {"perf events", PROBE_PERF_EVENT, CHECK_FATAL, "perf_event_open"},
	    {"BPF ring buffer", PROBE_RING_BUFFER, CHECK_FATAL, "5.17"},
	    {"bpf_loop", PROBE_BPF_LOOP, CHECK_FATAL, "5.17"},
	    {"PROCMAP_QUERY", PROBE_PROCMAP_QUERY, CHECK_LACKS, "text"},
	    {"map_files", PROBE_MAP_FILES, CHECK_LACKS, "deleted or replaced"},
	    {"io_uring", PROBE_IO_URING, CHECK_LACKS, "pread"},
	    {"seccomp", PROBE_SECCOMP, CHECK_LACKS, "not filtered"},
	    {"Landlock", PROBE_LANDLOCK, CHECK_LACKS, "lsm="},
	    {"MDWE", PROBE_MDWE, CHECK_LACKS, "executable"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int kept = answers[rows[i].probe];

		assert_state(rows[i].name, CHECK_OK, "");
		answers[rows[i].probe] = -ENOSYS;
		assert_state(rows[i].name, rows[i].state, rows[i].lost);
		assert_string_equal(check(rows[i].name).found, strerror(ENOSYS));
		answers[rows[i].probe] = kept;
	}
	answers[PROBE_LANDLOCK] = 2;
	assert_state("Landlock", CHECK_OK, "");
	assert_string_equal(check("Landlock").found, "ABI 2, without rules for the network");
	refused = CLONE_NEWNET;
	assert_state("namespaces", CHECK_LACKS, "user.max_*_namespaces");
	assert_state("user namespaces", CHECK_OK, "");
	refused = CLONE_NEWUSER;
	assert_state("namespaces", CHECK_OK, "");
	assert_state("user namespaces", CHECK_LACKS, "empty root");
}

static void test_files(void **state)
{
	(void)state;
	make("/proc/sys/kernel/kptr_restrict", "2\n");
	make("/proc/kallsyms", "0000000000000000 T _stext\n0000000000000000 T _etext\n");
	assert_state("kernel symbols", CHECK_LACKS, "sysctl kernel.kptr_restrict=1");
	assert_string_equal(check("kernel symbols").found,
			    "without addresses (kernel.kptr_restrict is 2)");
	make("/proc/sys/kernel/kptr_restrict", "1\n");
	assert_state("kernel symbols", CHECK_LACKS, "CAP_SYSLOG");
	remove_file("/proc/kallsyms");
	assert_string_equal(check("kernel symbols").found, "not readable");
	assert_state("ptrace_scope", CHECK_OK, "");
	make("/proc/sys/kernel/yama/ptrace_scope", "2\n");
	assert_state("ptrace_scope", CHECK_OK, "");
	make("/proc/sys/kernel/yama/ptrace_scope", "3\n");
	assert_state("ptrace_scope", CHECK_LACKS, "[python]");
	remove_file("/proc/self/cgroup");
	assert_state("cgroups", CHECK_LACKS, "programs");
	remove_file("/proc/modules");
	assert_state("kernel modules", CHECK_OK, "");
	remove_file("/sys/kernel/btf/vmlinux");
	assert_state("BTF", CHECK_FATAL, "CONFIG_DEBUG_INFO_BTF");
	remove_file("/sys/devices/system/cpu/possible");
	assert_state("/sys", CHECK_LACKS, "mount -t sysfs");
	remove_file("/sys/fs/cgroup/memory/memory.limit_in_bytes");
	assert_state("memory cgroup", CHECK_LACKS, "process by process");
	remove_file("/etc/machine-id");
	assert_state("machine id", CHECK_LACKS, "host.id");
	remove_file("/sconce-broker");
	assert_state("programs", CHECK_FATAL, "reinstall");
	assert_string_equal(check("programs").found, "sconce-broker is not there");
}

static void test_proc(void **state)
{
	(void)state;
	assert_string_equal(check("/proc").found, "mounted");
	make("/proc/self/mountinfo",
	     "22 27 0:21 / /proc rw - proc proc rw\n"
	     "23 27 0:22 / /proc rw - proc proc rw,hidepid=invisible,gid=4\n");
	assert_state("/proc", CHECK_OK, "");
	assert_string_equal(check("/proc").found, "hidepid=invisible");
	world.capabilities &= ~(1ull << CAP_SYS_PTRACE);
	assert_state("/proc", CHECK_LACKS, "CAP_SYS_PTRACE");
	make("/proc/self/mountinfo", "22 27 0:21 / /proc rw - proc proc rw,hidepid=off\n");
	assert_state("/proc", CHECK_OK, "");
	remove_file("/proc/self/mountinfo");
	assert_state("mountinfo", CHECK_LACKS, "no names");
	make_link("/proc/self/ns/pid", "pid:[4026532000]");
	assert_state("pid namespace", CHECK_LACKS, "--pid=host");
	config_defaults(&config, MODE_RECORD);
	assert_state("pid namespace", CHECK_FATAL, "--pid=host");
	make_link("/proc/self/ns/user", "user:[4026532000]");
	assert_state("user namespace", CHECK_FATAL, "user namespace");
	remove_file("/proc/self/ns/user");
	assert_state("user namespace", CHECK_OK, "");
}

static void test_limits(void **state)
{
	(void)state;
	world.files_max = 64;
	assert_state("open files", CHECK_FATAL, "ulimit -Hn");
	world.files_max = 1024;
	assert_state("open files", CHECK_OK, "");
	room = 16;
	assert_state("locked memory", CHECK_LACKS, "CAP_IPC_LOCK");
	assert_string_equal(check("locked memory").found, "16 of 64 pages per cpu");
	assert_int_equal(places_sideband_pages(&world), 16);
	room = 0;
	assert_state("locked memory", CHECK_FATAL, "perf_event_mlock_kb");
	world.file_bytes_max = 1 << 20;
	assert_state("file size", CHECK_FATAL, "ulimit -Hf");
	world.file_bytes_max = config.spool_bytes + (1 << 20);
	assert_state("file size", CHECK_OK, "");
	snprintf(config.run_dir, sizeof(config.run_dir), "/etc/machine-id/x");
	assert_state("run directory", CHECK_LACKS, "--run-dir");
	snprintf(config.run_dir, sizeof(config.run_dir), "/etc/no/such/directory");
	assert_state("run directory", CHECK_OK, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_all_is_well, setup),
	    cmocka_unit_test_setup(test_rights, setup),
	    cmocka_unit_test_setup(test_kernel, setup),
	    cmocka_unit_test_setup(test_probes, setup),
	    cmocka_unit_test_setup(test_files, setup),
	    cmocka_unit_test_setup(test_proc, setup),
	    cmocka_unit_test_setup(test_limits, setup),
	};
	char command[64];
	int failed;

	if (!mkdtemp(root))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command) ? 1 : failed;
}
