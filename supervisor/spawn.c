/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/log.h"

#define CAP(name) (1ull << CAP_##name)
#define SECUREBITS                                                                                 \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |                    \
	 SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |                                   \
	 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* All that a role may ever hold; whoever is not listed holds nothing. */
static const uint64_t capabilities[ROLE_COUNT] = {
    [ROLE_LOADER] = CAP(BPF) | CAP(PERFMON),
    [ROLE_BROKER] = CAP(SYS_PTRACE) | CAP(CHECKPOINT_RESTORE) | CAP(DAC_READ_SEARCH),
};

static int spawn_capset(uint64_t effective, uint64_t inheritable)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	for (int i = 0; i < 2; i++) {
		data[i].effective = data[i].permitted = (uint32_t)(effective >> (32 * i));
		data[i].inheritable = (uint32_t)(inheritable >> (32 * i));
	}
	return (int)syscall(SYS_capset, &header, data);
}

static uint64_t spawn_permitted(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {0};

	syscall(SYS_capget, &header, data);
	return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

/* From root to uid with nothing but `wanted`, in every set. */
static void spawn_privilege(uint32_t uid, uint64_t wanted)
{
	/* Less than is wanted is a matter of degrading, not of failing. */
	wanted &= spawn_permitted();
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || setgroups(0, NULL) || setresgid(uid, uid, uid) ||
	    setresuid(uid, uid, uid))
		fatal("cannot change to uid %u: %m", uid);
	if (spawn_capset(wanted | CAP(SETPCAP), wanted))
		fatal("cannot set capabilities: %m");
	for (int cap = 0; cap < 64; cap++) {
		if (!(wanted & 1ull << cap))
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
		else if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0))
			fatal("cannot raise ambient capability %d: %m", cap);
	}
	if (prctl(PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) || spawn_capset(wanted, wanted) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fatal("cannot drop capabilities: %m");
}

/*
 * First everything out of the way, above the highest number in use; then what is below goes, each
 * one moves to its number, and the copies go.
 */
static void spawn_descriptors(const struct wire *wires, size_t n, int *binary)
{
	static int moved[WIRES_MAX];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), base = 3;

	for (size_t i = 0; i < n; i++)
		if (wires[i].number >= base)
			base = wires[i].number + 1;
	for (size_t i = 0; i < n; i++) {
		moved[i] = fcntl(wires[i].fd > 0 ? wires[i].fd : null, F_DUPFD, base);
		if (moved[i] < 0)
			fatal("cannot place descriptor %d: %m", wires[i].number);
	}
	/* Close-on-exec survives the move here, and the binary is gone when it runs. */
	*binary = fcntl(*binary, F_DUPFD_CLOEXEC, base);
	if (*binary < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
	    close_range(3, (unsigned)base - 1, 0))
		fatal("cannot close descriptors: %m");
	for (size_t i = 0; i < n; i++)
		if (dup2(moved[i], wires[i].number) < 0)
			fatal("cannot place descriptor %d: %m", wires[i].number);
	close_range((unsigned)base, ~0u, CLOSE_RANGE_CLOEXEC);
}

static void spawn_signals(void)
{
	sigset_t none;

	/* A job of a shell in the background was started with some ignored, and would pass that on.
	 */
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	/* Ctrl-C reaches the whole foreground group, also before child_start() sees to it. */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

noreturn void spawn_enter(int slot, const struct config *config, const struct wire *wires,
			  size_t wires_n, int binary, pid_t parent)
{
	enum role role = slot_role(slot);
	uint64_t wanted = capabilities[role];
	char name[32], number[12];
	char *argv[] = {name, number, NULL};
	char *plain[] = {(char *)"LANG=C.UTF-8", NULL};

	snprintf(name, sizeof(name), "sconce-%s", role_name(role));
	snprintf(number, sizeof(number), "%d", slot);
	spawn_signals();
	umask(077);
	if (chdir("/"))
		fatal("cannot enter /: %m");
	spawn_descriptors(wires, wires_n, &binary);
	/* Debian and Ubuntu refuse CAP_PERFMON at level 3 and above. */
	if (role == ROLE_LOADER && config && config->runtime.perf_event_paranoid >= 3)
		wanted |= CAP(SYS_ADMIN);
	if (config)
		spawn_privilege(config->uid_base + (uint32_t)slot, wanted);
	/* Before exec: the supervisor's own, which is inherited, has no room for another program. */
	if (config && config_limit(config, role))
		fatal("cannot limit what %s may use: %m", name);
	/*
	 * The change of uid cleared it; and the parent may have ended before it was set. In a pid
	 * namespace there is no parent to be seen; the end of its socket tells the same.
	 */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || (getpid() != 1 && getppid() != parent))
		fatal("%s outlived its supervisor", name);
	/* The cli has left in ours what the exporter needs; see session.c. */
	execveat(binary, "", argv, role == ROLE_EXPORTER ? environ : plain, AT_EMPTY_PATH);
	fatal("cannot execute %s as uid %u: %m", name, getuid());
}

/* fork(); for those who need none of it without the network, processes and ipc of the machine. */
static pid_t spawn_fork(enum role role)
{
	const unsigned long apart = CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
	long pid = -1;

	if (role == ROLE_SYMBOLIZER)
		pid = syscall(SYS_clone, apart | SIGCHLD, NULL, NULL, NULL, NULL);
	return pid < 0 ? fork() : (pid_t)pid;
}

int spawn_binary(int folder, int slot)
{
	char name[32];

	snprintf(name, sizeof(name), "sconce-%s", role_name(slot_role(slot)));
	return openat(folder, name, O_PATH | O_CLOEXEC);
}

pid_t spawn_process(int slot, const struct config *config, const struct wire *wires, size_t wires_n)
{
	pid_t parent = getpid(), pid;
	int binary = spawn_binary(FD_SUPERVISOR_BINARIES, slot), err;

	if (binary < 0)
		return -errno;
	pid = spawn_fork(slot_role(slot));
	if (pid == 0)
		spawn_enter(slot, config, wires, wires_n, binary, parent);
	err = errno;
	close(binary);
	return pid < 0 ? -err : pid;
}
