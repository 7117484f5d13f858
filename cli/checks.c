/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/checks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/floor.h"

/* perf_event_paranoid from which on Debian and Ubuntu ask for CAP_SYS_ADMIN. */
#define PARANOID_ADMIN 3
#define KALLSYMS_LINES 64 /* the first of them are addresses of every kernel */

typedef void check_fn(const struct checks_world *world, struct check_result *result);

__attribute__((format(printf, 2, 3))) static void check_found(struct check_result *result,
							      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(result->found, sizeof(result->found), format, args);
	va_end(args);
}

static void check_lost(struct check_result *result, enum check_state state, const char *lost)
{
	result->state = state;
	snprintf(result->lost, sizeof(result->lost), "%s", lost);
}

/* The first line of a file of the world, without its end. False when it cannot be read. */
static int check_line(const struct checks_world *world, const char *path, char *line, size_t size)
{
	char full[512];
	FILE *f;
	int ok;

	snprintf(full, sizeof(full), "%s%s", world->root, path);
	f = fopen(full, "re");
	ok = f && fgets(line, (int)size, f);
	if (ok)
		line[strcspn(line, "\n")] = 0;
	if (f)
		fclose(f);
	return ok;
}

static int check_number(const struct checks_world *world, const char *path, int missing)
{
	char line[32];

	return check_line(world, path, line, sizeof(line)) ? atoi(line) : missing;
}

static void check_root(const struct checks_world *world, struct check_result *result)
{
	check_found(result, "uid %u", world->uid);
	if (world->uid != 0)
		check_lost(result, CHECK_FATAL, "start it as root: sudo sconce run");
}

static const struct {
	const char *name;
	int number;
	enum check_state without;
	const char *lost;
} capabilities[] = {
    {"CAP_BPF", CAP_BPF, CHECK_FATAL, "no BPF program can be loaded"},
    {"CAP_PERFMON", CAP_PERFMON, CHECK_FATAL, "no perf event can be opened"},
    {"CAP_SETUID", CAP_SETUID, CHECK_FATAL, "processes cannot be given uids of their own"},
    {"CAP_SETGID", CAP_SETGID, CHECK_FATAL, "processes cannot be given groups of their own"},
    {"CAP_SETPCAP", CAP_SETPCAP, CHECK_FATAL, "capabilities cannot be dropped for good"},
    {"CAP_KILL", CAP_KILL, CHECK_LACKS, "a process that stands still cannot be ended"},
    {"CAP_SYS_PTRACE", CAP_SYS_PTRACE, CHECK_LACKS,
     "frames of other users' processes are [unknown]"},
    {"CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH, CHECK_LACKS,
     "programs that only root can read have no names"},
    {"CAP_CHECKPOINT_RESTORE", CAP_CHECKPOINT_RESTORE, CHECK_LACKS,
     "programs that were deleted or replaced have no names"},
};

#define CAPABILITIES (sizeof(capabilities) / sizeof(capabilities[0]))

static void check_capability(size_t i, const struct checks_world *world,
			     struct check_result *result)
{
	int held = world->capabilities >> capabilities[i].number & 1;

	check_found(result, held ? "held" : "not held");
	if (!held)
		check_lost(result, capabilities[i].without, capabilities[i].lost);
}

static void check_paranoid(const struct checks_world *world, struct check_result *result)
{
	int paranoid = check_number(world, "/proc/sys/kernel/perf_event_paranoid", 2);

	check_found(result, "%d", paranoid);
	if (paranoid >= PARANOID_ADMIN && !(world->capabilities >> CAP_SYS_ADMIN & 1))
		check_lost(result, CHECK_FATAL,
			   "from 3 on perf events need CAP_SYS_ADMIN: give it, or sysctl "
			   "kernel.perf_event_paranoid=2");
}

static void check_kernel(const struct checks_world *world, struct check_result *result)
{
	const char *mended = floor_hangs(world->release, world->version);

	check_found(result, "Linux %.60s", world->release);
	if (!mended)
		return;
	result->state = CHECK_FATAL;
	snprintf(
	    result->lost, sizeof(result->lost),
	    "it may hang when it is profiled, which is mended in %s: boot a newer one, or take "
	    "the risk with --unsafe-kernel",
	    mended);
}

static void check_btf(const struct checks_world *world, struct check_result *result)
{
	char full[512];

	snprintf(full, sizeof(full), "%s/sys/kernel/btf/vmlinux", world->root);
	check_found(result, access(full, R_OK) ? "not there" : "there");
	if (access(full, R_OK))
		check_lost(result, CHECK_FATAL,
			   "boot a kernel with CONFIG_DEBUG_INFO_BTF=y, and mount /sys");
}

/* Without the right, all addresses are 0. */
static void check_kallsyms(const struct checks_world *world, struct check_result *result)
{
	char full[512], line[512];
	int lines = 0, addresses = 0;
	FILE *f;

	snprintf(full, sizeof(full), "%s/proc/kallsyms", world->root);
	f = fopen(full, "re");
	for (; f && lines < KALLSYMS_LINES && fgets(line, sizeof(line), f); lines++)
		addresses += strtoull(line, NULL, 16) != 0;
	if (f)
		fclose(f);
	check_found(result, addresses ? "readable" : lines ? "without addresses" : "not readable");
	if (!addresses)
		check_lost(result, CHECK_LACKS,
			   "frames of the kernel are [kernel]: give CAP_SYSLOG, or sysctl "
			   "kernel.kptr_restrict=1");
}

static void check_io_uring(const struct checks_world *world, struct check_result *result)
{
	struct io_uring_params params = {.flags = IORING_SETUP_R_DISABLED};
	int disabled = check_number(world, "/proc/sys/kernel/io_uring_disabled", 0), fd = -1;

	if (disabled == 0)
		fd = (int)syscall(SYS_io_uring_setup, 4, &params);
	check_found(result,
		    fd >= 0    ? "works"
		    : disabled ? "disabled"
			       : "refused: %s",
		    strerror(errno));
	if (fd < 0)
		check_lost(result, CHECK_LACKS, "files are read one after the other, by pread");
	else
		close(fd);
}

static void check_cgroup(const struct checks_world *world, struct check_result *result)
{
	char line[64];
	int there = check_line(world, "/proc/self/cgroup", line, sizeof(line));

	check_found(result, there ? "readable" : "not readable");
	if (!there)
		check_lost(result, CHECK_LACKS, "workloads are told by their programs only");
}

static const struct {
	const char *name;
	check_fn *run;
} checks[] = {
    {"root", check_root},
    {"perf_event_paranoid", check_paranoid},
    {"kernel", check_kernel},
    {"BTF", check_btf},
    {"kernel symbols", check_kallsyms},
    {"io_uring", check_io_uring},
    {"cgroups", check_cgroup},
};

void checks_here(struct checks_world *world)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {0};
	static struct utsname name;

	syscall(SYS_capget, &header, data);
	uname(&name);
	*world = (struct checks_world){
	    .root = "",
	    .capabilities = data[0].permitted | (uint64_t)data[1].permitted << 32,
	    .uid = geteuid(),
	    .release = name.release,
	    .version = name.version,
	};
}

size_t checks_count(void)
{
	return CAPABILITIES + sizeof(checks) / sizeof(checks[0]);
}

const char *checks_name(size_t i)
{
	return i < CAPABILITIES ? capabilities[i].name : checks[i - CAPABILITIES].name;
}

void checks_run(size_t i, const struct checks_world *world, struct check_result *result)
{
	memset(result, 0, sizeof(*result));
	if (i < CAPABILITIES)
		check_capability(i, world, result);
	else
		checks[i - CAPABILITIES].run(world, result);
}
