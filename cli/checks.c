/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/checks.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/features.h"
#include "cli/places.h"

bool checks_held(const struct checks_world *world, int capability)
{
	return world->capabilities >> capability & 1;
}

void checks_found(struct check_result *result, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(result->found, sizeof(result->found), format, args);
	va_end(args);
}

void checks_lose(struct check_result *result, enum check_state state, const char *format, ...)
{
	va_list args;

	result->state = state;
	va_start(args, format);
	vsnprintf(result->lost, sizeof(result->lost), format, args);
	va_end(args);
}

int checks_probe(const struct checks_world *world, struct check_result *result, enum probe probe,
		 uint32_t argument)
{
	int answer = world->probe(probe, argument);

	checks_found(result, "%s", answer < 0 ? strerror(-answer) : "works");
	return answer;
}

bool checks_line(const struct checks_world *world, const char *path, char *line, size_t size)
{
	char full[512];
	FILE *f;
	bool ok;

	snprintf(full, sizeof(full), "%s%s", world->root, path);
	f = fopen(full, "re");
	ok = f && fgets(line, (int)size, f);
	if (ok)
		line[strcspn(line, "\n")] = 0;
	if (f)
		fclose(f);
	return ok;
}

bool checks_readable(const struct checks_world *world, const char *path,
		     struct check_result *result)
{
	char line[64];
	bool ok = checks_line(world, path, line, sizeof(line));

	checks_found(result, ok ? "readable" : "not readable");
	return ok;
}

int checks_number(const struct checks_world *world, const char *path, int missing)
{
	char line[32];

	return checks_line(world, path, line, sizeof(line)) ? atoi(line) : missing;
}

static void checks_root(const struct checks_world *world, struct check_result *result)
{
	checks_found(result, "uid %u", world->uid);
	if (world->uid != 0)
		checks_lose(result, CHECK_FATAL, "start it as root, with sudo");
}

#define CHECKS_FIRST 4 /* rows that stand before the capabilities */
#define LACKS	     CHECK_LACKS
#define FATAL	     CHECK_FATAL

static const struct {
	const char *name;
	int number;
	bool shows;
	enum check_state without;
	const char *lost;
} capabilities[] = {
    {"CAP_BPF", CAP_BPF, true, FATAL, "no BPF program can be loaded"},
    {"CAP_PERFMON", CAP_PERFMON, true, FATAL, "no perf event can be opened"},
    {"CAP_SETUID", CAP_SETUID, true, FATAL, "processes cannot be given uids of their own"},
    {"CAP_SETGID", CAP_SETGID, true, FATAL, "processes cannot be given groups of their own"},
    {"CAP_SETPCAP", CAP_SETPCAP, true, FATAL, "capabilities cannot be dropped for good"},
    {"CAP_SYS_PTRACE", CAP_SYS_PTRACE, true, LACKS,
     "no file of another process is opened: frames are [module+0xoffset], stacks go by frame "
     "pointers, and of what ran before us frames are [unknown]"},
    {"CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH, true, LACKS,
     "what not everybody may read, and libraries that were deleted or replaced, have no names"},
    {"CAP_CHECKPOINT_RESTORE", CAP_CHECKPOINT_RESTORE, true, LACKS,
     "libraries that were deleted or replaced have no names"},
    {"CAP_SYSLOG", CAP_SYSLOG, false, LACKS, "frames of the kernel are [kernel]"},
    {"CAP_SYS_ADMIN", CAP_SYS_ADMIN, false, LACKS,
     "symbolizers share processes, network and ipc with the machine"},
    {"CAP_KILL", CAP_KILL, false, LACKS,
     "a process of ours that stands still is not ended, and the end takes two seconds more"},
    {"CAP_CHOWN", CAP_CHOWN, false, LACKS,
     "no viewer: its socket cannot be made its own; files of record belong to root"},
    {"CAP_DAC_OVERRIDE", CAP_DAC_OVERRIDE, false, LACKS,
     "output and run directory have to be where root may write as their owner"},
};

#define CAPABILITIES (sizeof(capabilities) / sizeof(capabilities[0]))

static void checks_capability(size_t i, const struct checks_world *world,
			      struct check_result *result)
{
	bool held = checks_held(world, capabilities[i].number);

	checks_found(result, held ? "held" : "not held");
	if (!held)
		checks_lose(result, capabilities[i].without, "%s", capabilities[i].lost);
}

static const struct {
	const char *name;
	bool shows;
	check_fn *run;
} checks[] = {
    {"root", true, checks_root},
    {"/proc", true, places_proc},
    {"user namespace", true, places_user_namespace},
    {"pid namespace", true, places_pid_namespace},
    {"kernel", true, features_kernel},
    {"lockdown", true, features_lockdown},
    {"perf_event_paranoid", true, features_paranoid},
    {"perf events", true, features_perf_event},
    {"BTF", true, features_btf},
    {"BPF ring buffer", true, features_ring_buffer},
    {"bpf_loop", true, features_bpf_loop},
    {"BPF JIT", false, features_jit},
    {"PROCMAP_QUERY", false, features_procmap_query},
    {"map_files", true, features_map_files},
    {"ptrace_scope", false, features_ptrace_scope},
    {"io_uring", false, features_io_uring},
    {"seccomp", false, features_seccomp},
    {"Landlock", false, features_landlock},
    {"MDWE", false, features_mdwe},
    {"namespaces", false, features_namespaces},
    {"user namespaces", false, features_user_namespaces},
    {"kernel symbols", true, places_kallsyms},
    {"kernel modules", false, places_modules},
    {"/sys", false, places_sys},
    {"mountinfo", true, places_mountinfo},
    {"cgroups", false, places_cgroup},
    {"memory cgroup", false, places_memory_cgroup},
    {"machine id", false, places_machine_id},
    {"open files", true, places_open_files},
    {"locked memory", true, places_locked_memory},
    {"file size", true, places_file_size},
    {"run directory", false, places_run_directory},
    {"programs", true, places_programs},
};

static uint64_t checks_limit(int resource, int raising_capability, const struct checks_world *world)
{
	struct rlimit limit;

	if (raising_capability && checks_held(world, raising_capability))
		return RLIM_INFINITY;
	return getrlimit((__rlimit_resource_t)resource, &limit) ? 0 : limit.rlim_max;
}

void checks_here(struct checks_world *world, const struct config *config)
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
	    .config = config,
	    .probe = probes_ask,
	};
	/* Those who may raise it, do: session.c. */
	world->files_max = checks_limit(RLIMIT_NOFILE, CAP_SYS_RESOURCE, world);
	world->file_bytes_max = checks_limit(RLIMIT_FSIZE, 0, world);
}

_Static_assert(CAPABILITIES + sizeof(checks) / sizeof(checks[0]) <= CHECKS_MAX, "room for all");

/* The row of a capability. Who we are and where stands before them: it tells why they are missing.
 */
static bool checks_capability_row(size_t i, size_t *row)
{
	*row = i < CHECKS_FIRST ? i : i - CAPABILITIES;
	if (i < CHECKS_FIRST || i >= CHECKS_FIRST + CAPABILITIES)
		return false;
	*row = i - CHECKS_FIRST;
	return true;
}

size_t checks_count(void)
{
	return CAPABILITIES + sizeof(checks) / sizeof(checks[0]);
}

const char *checks_name(size_t i)
{
	size_t row;

	return checks_capability_row(i, &row) ? capabilities[row].name : checks[row].name;
}

bool checks_shows(size_t i)
{
	size_t row;

	return checks_capability_row(i, &row) ? capabilities[row].shows : checks[row].shows;
}

void checks_run(size_t i, const struct checks_world *world, struct check_result *result)
{
	size_t row;

	memset(result, 0, sizeof(*result));
	if (checks_capability_row(i, &row))
		checks_capability(row, world, result);
	else
		checks[row].run(world, result);
}
