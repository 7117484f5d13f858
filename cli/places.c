/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/places.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/cgroup.h"
#include "cli/session.h"

#define KALLSYMS_LINES 64 /* the first of them are addresses of every kernel */

/* Inode numbers of the namespaces that the kernel starts with: include/linux/proc_ns.h. */
#define FIRST_USER_NAMESPACE "user:[4026531837]"
#define FIRST_PID_NAMESPACE  "pid:[4026531836]"

/* The supervisor holds so many descriptors, and makes copies above the sampler's highest number. */
#define FILES_BASE	 128
#define FILES_PER_CPU	 2
#define FILES_PER_WORKER 48

static const char *places_path(const struct checks_world *world, const char *path)
{
	static char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", world->root, path);
	return full;
}

/* Are we in the namespace that the machine started with? Where it cannot be told, we are. */
static bool places_first(const struct checks_world *world, const char *link, const char *first,
			 struct check_result *result)
{
	char target[64];
	ssize_t n = readlink(places_path(world, link), target, sizeof(target) - 1);

	target[n > 0 ? n : 0] = 0;
	if (n <= 0)
		checks_found(result, "cannot be told");
	else
		checks_found(result, strcmp(target, first) == 0 ? "the machine's" : "another one");
	return n <= 0 || strcmp(target, first) == 0;
}

void places_user_namespace(const struct checks_world *world, struct check_result *result)
{
	if (!places_first(world, "/proc/self/ns/user", FIRST_USER_NAMESPACE, result))
		checks_lose(result, CHECK_FATAL,
			    "rights count for nothing here: start it outside of a user namespace");
}

void places_pid_namespace(const struct checks_world *world, struct check_result *result)
{
	const struct config *config = world->config;
	bool targets = config->mode == MODE_RECORD && !config->all;

	if (!places_first(world, "/proc/self/ns/pid", FIRST_PID_NAMESPACE, result))
		checks_lose(result, targets ? CHECK_FATAL : CHECK_LACKS,
			    "processes have other numbers here: frames have no names, and no "
			    "process can be chosen; start it in the machine's (--pid=host)");
}

/* Without the right, all addresses are 0. */
void places_kallsyms(const struct checks_world *world, struct check_result *result)
{
	FILE *f = fopen(places_path(world, "/proc/kallsyms"), "re");
	int restricted = checks_number(world, "/proc/sys/kernel/kptr_restrict", 0);
	int lines = 0, addresses = 0;
	char line[512];

	for (; f && lines < KALLSYMS_LINES && fgets(line, sizeof(line), f); lines++)
		addresses += strtoull(line, NULL, 16) != 0;
	if (f)
		fclose(f);
	checks_found(result,
		     addresses ? "readable"
		     : lines   ? "without addresses (kernel.kptr_restrict is %d)"
			       : "not readable",
		     restricted);
	if (!addresses)
		checks_lose(result, CHECK_LACKS, "frames of the kernel are [kernel]: %s",
			    !lines	     ? "leave /proc/kallsyms unmasked"
			    : restricted > 1 ? "sysctl kernel.kptr_restrict=1"
					     : "give CAP_SYSLOG");
}

void places_modules(const struct checks_world *world, struct check_result *result)
{
	int err = access(places_path(world, "/proc/modules"), R_OK) ? errno : 0;

	checks_found(result, !err	     ? "readable"
			     : err == ENOENT ? "the kernel takes none"
					     : "not readable");
	if (err && err != ENOENT)
		checks_lose(result, CHECK_LACKS,
			    "functions of modules that are loaded later have no names");
}

/* The mount options of /proc, from behind " - " of its line: "proc proc rw,hidepid=invisible". */
static bool places_proc_options(const struct checks_world *world, char *options, size_t size)
{
	FILE *f = fopen(places_path(world, "/proc/self/mountinfo"), "re");
	char line[PATH_MAX];
	bool found = false;

	while (f && fgets(line, sizeof(line), f)) {
		const char *type = strstr(line, " - proc ");

		line[strcspn(line, "\n")] = 0;
		if (type && strstr(line, " /proc ")) {
			snprintf(options, size, "%s", type + strlen(" - proc "));
			found = true; /* the last one lies on top */
		}
	}
	if (f)
		fclose(f);
	return found;
}

void places_proc(const struct checks_world *world, struct check_result *result)
{
	char options[256] = "", *hidden;
	bool mounted = access(places_path(world, "/proc/self/exe"), F_OK) == 0 || world->root[0];

	if (!mounted) {
		checks_found(result, "not mounted");
		checks_lose(result, CHECK_FATAL, "mount -t proc proc /proc");
		return;
	}
	checks_found(result, "mounted");
	hidden = places_proc_options(world, options, sizeof(options)) ? strstr(options, "hidepid=")
								      : NULL;
	if (!hidden || strncmp(hidden, "hidepid=0", 9) == 0 ||
	    strncmp(hidden, "hidepid=off", 11) == 0)
		return;
	checks_found(result, "%.*s", (int)strcspn(hidden, ","), hidden);
	if (!checks_held(world, CAP_SYS_PTRACE))
		checks_lose(result, CHECK_LACKS,
			    "it hides other processes from us: give CAP_SYS_PTRACE");
}

void places_sys(const struct checks_world *world, struct check_result *result)
{
	bool there = access(places_path(world, "/sys/devices/system/cpu/possible"), R_OK) == 0;

	checks_found(result, there ? "there" : "hidden");
	if (!there)
		checks_lose(result, CHECK_LACKS,
			    "cpus that are plugged in later may be missed: mount -t sysfs sysfs "
			    "/sys");
}

void places_mountinfo(const struct checks_world *world, struct check_result *result)
{
	if (!checks_readable(world, "/proc/self/mountinfo", result))
		checks_lose(result, CHECK_LACKS,
			    "nothing tells which files may hang, so none is opened, and frames "
			    "have no names");
}

void places_cgroup(const struct checks_world *world, struct check_result *result)
{
	if (!checks_readable(world, "/proc/self/cgroup", result))
		checks_lose(result, CHECK_LACKS, "workloads are told by their programs only");
}

/* The one around everything that `sconce run` makes. */
void places_memory_cgroup(const struct checks_world *world, struct check_result *result)
{
	struct cgroup cgroup;
	bool may = cgroup_probe(&cgroup, world->root);

	checks_found(result, "%s", may ? "may be made" : cgroup.why);
	if (!may)
		checks_lose(result, CHECK_LACKS, "memory is limited process by process only");
}

void places_machine_id(const struct checks_world *world, struct check_result *result)
{
	if (!checks_readable(world, "/etc/machine-id", result))
		checks_lose(result, CHECK_LACKS, "profiles carry no host.id");
}

void places_open_files(const struct checks_world *world, struct check_result *result)
{
	uint64_t need = FILES_BASE + FILES_PER_CPU * (uint64_t)sysconf(_SC_NPROCESSORS_CONF) +
			FILES_PER_WORKER * (uint64_t)world->config->workers;

	if (world->files_max >= SESSION_FILES_WANTED)
		checks_found(result, "enough");
	else
		checks_found(result, "at most %llu", (unsigned long long)world->files_max);
	if (world->files_max < need)
		checks_lose(result, CHECK_FATAL,
			    "%llu are needed: raise the hard limit (ulimit -Hn, LimitNOFILE=)",
			    (unsigned long long)need);
}

uint32_t places_sideband_pages(const struct checks_world *world)
{
	uint32_t pages = world->config->sideband_pages;

	/* Without the right to open them it cannot be told, and is not what is missing. */
	while (pages && world->probe(PROBE_PERF_MEMORY, pages) == -EPERM)
		pages /= 2;
	return pages;
}

void places_locked_memory(const struct checks_world *world, struct check_result *result)
{
	const uint32_t wanted = world->config->sideband_pages;
	uint32_t pages = places_sideband_pages(world);
	static const char mend[] = "give CAP_IPC_LOCK, or raise RLIMIT_MEMLOCK or "
				   "kernel.perf_event_mlock_kb";

	checks_found(result, pages == wanted ? "enough" : "%u of %u pages per cpu", pages, wanted);
	if (!pages)
		checks_lose(result, CHECK_FATAL, "perf events have no memory: %s", mend);
	else if (pages < wanted)
		checks_lose(result, CHECK_LACKS,
			    "smaller buffers tell of mappings, and overflow sooner: %s", mend);
}

/* The largest piece of memory that processes share; it counts as a file. */
static uint64_t places_largest(const struct config *config)
{
	const uint64_t sizes[] = {config->sample_queue_bytes, config->process_queue_bytes,
				  config->output_queue_bytes, config->log_bytes,
				  config->spool_bytes};
	uint64_t largest = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		largest = sizes[i] > largest ? sizes[i] : largest;
	return largest;
}

void places_file_size(const struct checks_world *world, struct check_result *result)
{
	uint64_t need = places_largest(world->config) + (1 << 20); /* with what stands before it */

	if (world->file_bytes_max == RLIM_INFINITY)
		checks_found(result, "no limit");
	else
		checks_found(result, "at most %llu KiB",
			     (unsigned long long)world->file_bytes_max >> 10);
	if (world->file_bytes_max < need)
		checks_lose(result, CHECK_FATAL,
			    "shared memory needs %llu KiB: raise it (ulimit -Hf, LimitFSIZE=), or "
			    "lower --spool-memory",
			    (unsigned long long)need >> 10);
}

/* The directory, or the nearest that is there and would hold it. */
void places_run_directory(const struct checks_world *world, struct check_result *result)
{
	char path[CONFIG_PATH_BYTES], *slash;
	int err;

	snprintf(path, sizeof(path), "%s", world->config->run_dir);
	while ((err = access(places_path(world, path[0] ? path : "/"), W_OK) ? errno : 0) ==
		   ENOENT &&
	       (slash = strrchr(path, '/')))
		*slash = 0;
	checks_found(result, "%s: %s", world->config->run_dir, err ? strerror(err) : "writable");
	if (err)
		checks_lose(result, CHECK_LACKS,
			    "sconce run has no place for its sockets: choose another with "
			    "--run-dir or SCONCE_RUN_DIR");
}

void places_programs(const struct checks_world *world, struct check_result *result)
{
	int folder = world->root[0] ? open(world->root, O_PATH | O_CLOEXEC) : session_binaries();
	char missing[32] = "", name[32];

	for (enum role role = ROLE_SUPERVISOR; role < ROLE_COUNT && !missing[0]; role++) {
		snprintf(name, sizeof(name), "sconce-%s", role_name(role));
		if (folder < 0 || faccessat(folder, name, X_OK, 0))
			snprintf(missing, sizeof(missing), "%s", name);
	}
	if (folder >= 0)
		close(folder);
	checks_found(result, missing[0] ? "%s is not there" : "all there", missing);
	if (missing[0])
		checks_lose(result, CHECK_FATAL,
			    "reinstall: they lie beside sconce, or in libexec/sconce");
}
