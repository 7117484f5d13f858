/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `sconce doctor` on machines made of a few files. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/checks.h"

#define ALL (~0ull)

static char root[] = "/tmp/checks-XXXXXX";
static struct checks_world world;

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

/* A machine on which all is well. */
static int setup(void **state)
{
	(void)state;
	make("/proc/sys/kernel/perf_event_paranoid", "2\n");
	make("/proc/sys/kernel/io_uring_disabled", "0\n");
	make("/proc/kallsyms", "ffffffff81000000 T _stext\n");
	make("/proc/self/cgroup", "0::/user.slice\n");
	make("/sys/kernel/btf/vmlinux", "btf");
	world = (struct checks_world){root, ALL, 0, "6.12.0", "#1 SMP"};
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
		/* This machine's kernel has a word in it. */
		if (!strcmp(checks_name(i), "io_uring"))
			continue;
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
	remove_file("/sys/kernel/btf/vmlinux");
	assert_state("BTF", CHECK_FATAL, "CONFIG_DEBUG_INFO_BTF");
	make("/proc/sys/kernel/io_uring_disabled", "2\n");
	assert_state("io_uring", CHECK_LACKS, "pread");
}

static void test_files(void **state)
{
	(void)state;
	make("/proc/kallsyms", "0000000000000000 T _stext\n0000000000000000 T _etext\n");
	assert_state("kernel symbols", CHECK_LACKS, "CAP_SYSLOG");
	assert_string_equal(check("kernel symbols").found, "without addresses");
	remove_file("/proc/kallsyms");
	assert_string_equal(check("kernel symbols").found, "not readable");
	remove_file("/proc/self/cgroup");
	assert_state("cgroups", CHECK_LACKS, "programs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_all_is_well, setup),
	    cmocka_unit_test_setup(test_rights, setup),
	    cmocka_unit_test_setup(test_kernel, setup),
	    cmocka_unit_test_setup(test_files, setup),
	};
	char command[64];
	int failed;

	if (!mkdtemp(root))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command) ? 1 : failed;
}
