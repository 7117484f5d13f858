/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/features.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/floor.h"

/* perf_event_paranoid from which on Debian and Ubuntu ask for CAP_SYS_ADMIN. */
#define PARANOID_ADMIN	 3
#define LANDLOCK_NETWORK 4 /* the ABI from which on it knows of TCP */

void features_kernel(const struct checks_world *world, struct check_result *result)
{
	const char *mended = floor_hangs(world->release, world->version);

	checks_found(result, "Linux %.60s", world->release);
	if (mended && world->unsafe_kernel)
		checks_found(result, "Linux %.60s, which may hang, as you wish", world->release);
	else if (mended)
		checks_lose(result, CHECK_FATAL,
			    "it may hang when it is profiled, which is mended in %s: boot a newer "
			    "one, or take the risk with --unsafe-kernel",
			    mended);
}

/* "none [integrity] confidentiality" */
void features_lockdown(const struct checks_world *world, struct check_result *result)
{
	char line[64], *mode;

	if (!checks_line(world, "/sys/kernel/security/lockdown", line, sizeof(line)) ||
	    !(mode = strchr(line, '['))) {
		checks_found(result, "none");
		return;
	}
	checks_found(result, "%.*s", (int)strcspn(mode + 1, "]"), mode + 1);
	if (strncmp(mode, "[confidentiality]", 17) == 0)
		checks_lose(result, CHECK_FATAL,
			    "BPF may not read the kernel's memory: boot with lockdown=integrity");
}

void features_paranoid(const struct checks_world *world, struct check_result *result)
{
	int paranoid = checks_number(world, "/proc/sys/kernel/perf_event_paranoid", 2);

	checks_found(result, "%d", paranoid);
	if (paranoid >= PARANOID_ADMIN && !checks_held(world, CAP_SYS_ADMIN))
		checks_lose(result, CHECK_FATAL,
			    "from 3 on perf events need CAP_SYS_ADMIN: give it, or sysctl "
			    "kernel.perf_event_paranoid=2");
}

/* Who lacks the right cannot tell whether the kernel would do it. */
static int features_privileged(const struct checks_world *world, struct check_result *result,
			       enum probe probe)
{
	if (checks_held(world, CAP_BPF) && checks_held(world, CAP_PERFMON))
		return checks_probe(world, result, probe, 0);
	checks_found(result, "not tried without CAP_BPF and CAP_PERFMON");
	return 0;
}

void features_perf_event(const struct checks_world *world, struct check_result *result)
{
	if (features_privileged(world, result, PROBE_PERF_EVENT) < 0)
		checks_lose(result, CHECK_FATAL,
			    "nothing is sampled: see perf_event_paranoid, and allow "
			    "perf_event_open() in the seccomp profile around us");
}

void features_ring_buffer(const struct checks_world *world, struct check_result *result)
{
	if (features_privileged(world, result, PROBE_RING_BUFFER) < 0)
		checks_lose(result, CHECK_FATAL,
			    "samples cannot leave the kernel: boot Linux 5.17 or newer, and allow "
			    "bpf() in the seccomp profile around us");
}

void features_bpf_loop(const struct checks_world *world, struct check_result *result)
{
	if (features_privileged(world, result, PROBE_BPF_LOOP) < 0)
		checks_lose(result, CHECK_FATAL,
			    "stacks cannot be walked: boot Linux 5.17 or newer");
}

void features_btf(const struct checks_world *world, struct check_result *result)
{
	char full[512];
	bool there;

	snprintf(full, sizeof(full), "%s/sys/kernel/btf/vmlinux", world->root);
	there = access(full, R_OK) == 0;
	checks_found(result, there ? "there" : "not there");
	if (!there)
		checks_lose(result, CHECK_FATAL,
			    "BPF is not fitted to this kernel: mount /sys, or boot one built with "
			    "CONFIG_DEBUG_INFO_BTF=y, as Debian 12 and Ubuntu 22.04 have it");
}

void features_jit(const struct checks_world *world, struct check_result *result)
{
	/* Without the file there is either no choice, or no answer. */
	int on = checks_number(world, "/proc/sys/net/core/bpf_jit_enable", 1);

	checks_found(result, on ? "on" : "off");
	if (!on)
		checks_lose(
		    result, CHECK_LACKS,
		    "a sample costs several times as much: sysctl net.core.bpf_jit_enable=1");
}

void features_procmap_query(const struct checks_world *world, struct check_result *result)
{
	if (checks_probe(world, result, PROBE_PROCMAP_QUERY, 0) < 0)
		checks_lose(result, CHECK_LACKS,
			    "the mappings of a process are read as text, which takes longer; Linux "
			    "6.11 has it");
}

void features_map_files(const struct checks_world *world, struct check_result *result)
{
	if (checks_probe(world, result, PROBE_MAP_FILES, 0) < 0)
		checks_lose(result, CHECK_LACKS,
			    "libraries that were deleted or replaced have no names");
}

/* Yama's; with 3 nobody may, whatever he holds. */
void features_ptrace_scope(const struct checks_world *world, struct check_result *result)
{
	int scope = checks_number(world, "/proc/sys/kernel/yama/ptrace_scope", 0);

	checks_found(result, "%d", scope);
	if (scope >= 3)
		checks_lose(result, CHECK_LACKS,
			    "functions of scripts have no names ([python]), as no memory of a "
			    "process may be read: boot with a lower kernel.yama.ptrace_scope");
}

void features_io_uring(const struct checks_world *world, struct check_result *result)
{
	int disabled = checks_number(world, "/proc/sys/kernel/io_uring_disabled", 0);
	int answer = checks_probe(world, result, PROBE_IO_URING, 0);

	if (disabled)
		checks_found(result, "kernel.io_uring_disabled is %d", disabled);
	if (disabled || answer < 0)
		checks_lose(result, CHECK_LACKS, "files are read one after the other, by pread");
}

void features_seccomp(const struct checks_world *world, struct check_result *result)
{
	if (checks_probe(world, result, PROBE_SECCOMP, 0) < 0)
		checks_lose(result, CHECK_LACKS,
			    "what our processes ask of the kernel is not filtered: boot one with "
			    "CONFIG_SECCOMP_FILTER=y");
}

void features_landlock(const struct checks_world *world, struct check_result *result)
{
	int abi = checks_probe(world, result, PROBE_LANDLOCK, 0);

	if (abi >= 0)
		checks_found(result, "ABI %d%s", abi,
			     abi < LANDLOCK_NETWORK ? ", without rules for the network" : "");
	if (abi < 0)
		checks_lose(result, CHECK_LACKS,
			    "exporter and viewer reach the files that their uids may: boot with "
			    "landlock in lsm=");
}

void features_mdwe(const struct checks_world *world, struct check_result *result)
{
	if (checks_probe(world, result, PROBE_MDWE, 0) < 0)
		checks_lose(result, CHECK_LACKS,
			    "memory of our processes can be made executable; Linux 6.3 has it");
}

void features_namespaces(const struct checks_world *world, struct check_result *result)
{
	if (checks_probe(world, result, PROBE_NAMESPACES,
			 CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		checks_lose(result, CHECK_LACKS,
			    "symbolizers share processes, network and ipc with the machine: see "
			    "CAP_SYS_ADMIN and user.max_*_namespaces");
}

void features_user_namespaces(const struct checks_world *world, struct check_result *result)
{
	if (checks_probe(world, result, PROBE_NAMESPACES, CLONE_NEWUSER | CLONE_NEWNS) < 0)
		checks_lose(result, CHECK_LACKS,
			    "symbolizers have no empty root directory: see "
			    "user.max_user_namespaces, kernel.unprivileged_userns_clone and "
			    "AppArmor");
}
