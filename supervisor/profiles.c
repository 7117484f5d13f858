/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "supervisor/profiles.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* clang-format off */
#define INT 0xffffffffull /* of an int argument the upper half of the register is undefined */
#define ANY(name)                       {#name, {{0}}}
#define IF(name, argument, mask, value) {#name, {{argument, mask, value}}}
#define IF2(name, a, a_mask, a_value, b, b_mask, b_value) \
	{#name, {{a, a_mask, a_value}, {b, b_mask, b_value}}}
#define FUTEX(op)  IF(futex, 1, INT & ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME), op)
#define FCNTL(cmd) IF(fcntl, 1, INT, cmd)
#define BPF(cmd)   IF(bpf, 0, INT, cmd)
#define MMAP(kind) IF2(mmap, 2, PROT_EXEC, 0, 3, MAP_TYPE | MAP_ANONYMOUS, kind)
#define IOCTL(cmd) IF(ioctl, 1, INT, cmd)

/* What is there, and nothing is made or emptied; or that, and to read only. */
#define MAKES	  (O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))
#define READ_ONLY (O_ACCMODE | MAKES)

/* linux/ioctl of PROCMAP_QUERY, _IOWR('f', 17, 104 bytes): newer than the headers of Debian 12. */
#define PROCMAP_QUERY 0xc0686611u

/* A thread, and nothing of a process or a namespace. */
#define CLONE_NEW_ANY                                                                              \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)

static const struct profile_rule everybody[] = {
	ANY(read), ANY(write), ANY(pread64), ANY(lseek), ANY(close), ANY(fstat),
	/* glibc's fstat(); a path would need a right that nobody here has */
	IF(newfstatat, 3, INT, AT_EMPTY_PATH),
	ANY(recvmsg), ANY(sendmsg), ANY(poll), ANY(ppoll), ANY(epoll_wait), ANY(epoll_pwait),
	FCNTL(F_GETFD), FCNTL(F_SETFD), FCNTL(F_GETFL), FCNTL(F_SETFL),
	ANY(brk), ANY(munmap), ANY(mremap),
	/* anonymous memory that is shared counts for no limit of a process */
	MMAP(MAP_PRIVATE), MMAP(MAP_PRIVATE | MAP_ANONYMOUS), MMAP(MAP_SHARED),
	IF(mprotect, 2, PROT_EXEC, 0),
	IF(madvise, 2, INT, MADV_DONTNEED), IF(madvise, 2, INT, MADV_FREE),
	FUTEX(FUTEX_WAIT), FUTEX(FUTEX_WAKE), FUTEX(FUTEX_WAIT_BITSET),
	ANY(clock_gettime), ANY(gettimeofday), ANY(time), ANY(clock_nanosleep), ANY(nanosleep),
	ANY(getpid), ANY(gettid), ANY(getrandom), ANY(uname), ANY(sysinfo), ANY(sched_yield),
	ANY(rt_sigaction), ANY(rt_sigprocmask), ANY(rt_sigreturn), ANY(restart_syscall),
	ANY(exit), ANY(exit_group),
};

static const struct profile_rule loader[] = {
	BPF(BPF_MAP_CREATE), BPF(BPF_MAP_UPDATE_ELEM), BPF(BPF_MAP_FREEZE), BPF(BPF_BTF_LOAD),
	BPF(BPF_PROG_LOAD), BPF(BPF_PROG_BIND_MAP), BPF(BPF_OBJ_GET_INFO_BY_FD),
	BPF(BPF_RAW_TRACEPOINT_OPEN), BPF(BPF_LINK_CREATE),
	ANY(perf_event_open), IOCTL(PERF_EVENT_IOC_SET_BPF),
	MMAP(MAP_SHARED | MAP_ANONYMOUS), /* libbpf, for maps of global data */
	IF(openat, 2, READ_ONLY, O_RDONLY), ANY(access), ANY(faccessat), ANY(faccessat2),
	ANY(newfstatat),
};

static const struct profile_rule sampler[] = {
	BPF(BPF_MAP_LOOKUP_ELEM), BPF(BPF_MAP_UPDATE_ELEM), BPF(BPF_MAP_DELETE_ELEM),
	FCNTL(F_GET_SEALS),
};

static const struct profile_rule broker[] = {
	IF(openat, 2, READ_ONLY, O_RDONLY), ANY(openat2), ANY(readlinkat), ANY(getdents64), ANY(statx),
	ANY(pidfd_open), IOCTL(PROCMAP_QUERY),
	/* another thread's directory, when the first has ended */
	ANY(faccessat), ANY(faccessat2), ANY(dup3),
};

static const struct profile_rule symbolizer[] = {
	ANY(io_uring_enter), IF(io_uring_register, 1, INT, IORING_REGISTER_FILES_UPDATE),
	/* tables, for the sampler and for its peers, and theirs */
	IF(memfd_create, 1, INT, MFD_CLOEXEC | MFD_ALLOW_SEALING), FCNTL(F_ADD_SEALS), FCNTL(F_GET_SEALS),
};

static const struct profile_rule exporter[] = {
	/* the file of record; certificates, hosts and resolv.conf (Landlock says which directories) */
	ANY(ftruncate), ANY(fsync), ANY(fdatasync),
	IF(openat, 2, READ_ONLY, O_RDONLY), ANY(newfstatat), ANY(statx), ANY(readlink),
	ANY(readlinkat), ANY(access), ANY(faccessat2), ANY(getdents64),
	IF(socket, 0, INT, AF_INET), IF(socket, 0, INT, AF_INET6), IF(socket, 0, INT, AF_UNIX),
	/* getaddrinfo() asks which addresses this machine has */
	IF2(socket, 0, INT, AF_NETLINK, 2, INT, NETLINK_ROUTE), ANY(bind),
	IF(socketpair, 0, INT, AF_UNIX), ANY(connect), ANY(shutdown),
	ANY(getsockopt), ANY(setsockopt), ANY(getsockname), ANY(getpeername),
	ANY(sendto), ANY(recvfrom), ANY(sendmmsg), ANY(pipe2), ANY(eventfd2),
	IOCTL(FIONREAD), IOCTL(FIONBIO),
	ANY(getuid), ANY(geteuid), ANY(getgid), ANY(getegid),
	/* libcurl asks for names in a thread */
	IF(clone, 0, CLONE_THREAD | CLONE_NEW_ANY, CLONE_THREAD), ANY(set_robust_list), ANY(rseq),
	ANY(sched_getaffinity), IF(madvise, 2, INT, MADV_DONTDUMP),
};

static const struct profile_rule viewer[] = {
	ANY(accept4), ANY(epoll_ctl), ANY(recvfrom), ANY(sendto), ANY(writev), ANY(shutdown),
	ANY(setsockopt), ANY(getsockopt), ANY(getsockname), ANY(getpeername),
};

/* The supervisor, and the cli that starts it, in a container of their own: all others have theirs. */
static const struct profile_rule supervisor[] = {
	ANY(accept4), ANY(memfd_create), ANY(ftruncate), ANY(sendfile), ANY(unlink), ANY(unlinkat),
	ANY(epoll_create1), ANY(epoll_ctl), ANY(signalfd4), ANY(pidfd_send_signal),
	IF(socket, 0, INT, AF_INET), IF(socket, 0, INT, AF_INET6), ANY(shutdown),
	ANY(bind), ANY(listen), ANY(chmod), ANY(fchmod), ANY(chown), ANY(fchown), ANY(fchownat),
	ANY(mkdir), ANY(mkdirat), ANY(getsockopt), ANY(setsockopt), ANY(getsockname), ANY(getpeername),
	IOCTL(PERF_EVENT_IOC_ENABLE), IOCTL(PERF_EVENT_IOC_DISABLE), IOCTL(PERF_EVENT_IOC_PERIOD),
	ANY(sched_getaffinity),
};

/*
 * Before sandbox_enter(): a container's filter is there from its first program on. Of the layers of
 * the sandbox it allows those that only take rights away.
 */
static const struct profile_rule start[] = {
	ANY(execve), ANY(execveat), ANY(arch_prctl), ANY(set_tid_address), ANY(set_robust_list),
	ANY(rseq), ANY(mmap), ANY(mprotect), ANY(prlimit64), ANY(setrlimit), ANY(getrlimit),
	/* to write as well: runc its fifo, just before it executes, and the init /dev/null */
	IF(openat, 2, MAKES, 0), ANY(access), ANY(faccessat2), ANY(newfstatat), ANY(statfs),
	ANY(fstatfs), ANY(readlink), ANY(readlinkat), ANY(getdents64), ANY(getcwd), ANY(chdir), ANY(umask),
	ANY(dup), ANY(dup2), ANY(dup3), ANY(close_range), ANY(fcntl), ANY(pipe2), ANY(eventfd2),
	ANY(sigaltstack), ANY(getuid), ANY(geteuid), ANY(getgid), ANY(getegid), ANY(getppid),
	ANY(getpgrp), ANY(setsid), ANY(capget), ANY(capset), ANY(prctl), ANY(seccomp),
	ANY(landlock_create_ruleset), ANY(landlock_add_rule), ANY(landlock_restrict_self),
	ANY(epoll_create1), ANY(epoll_ctl),
	/* the init */
	IF(clone, 0, CLONE_NEW_ANY, 0), ANY(vfork), ANY(fork), ANY(wait4), ANY(waitid), ANY(kill), ANY(tgkill),
	ANY(pidfd_open), ANY(pidfd_send_signal), ANY(signalfd4), ANY(sched_getaffinity), ANY(madvise),
	IF(socket, 0, INT, AF_UNIX), IF(socketpair, 0, INT, AF_UNIX), ANY(connect),
};

static const struct profile_rule start_symbolizer[] = {
	ANY(io_uring_setup), ANY(io_uring_register), ANY(memfd_create),
};
/* clang-format on */

const char *const profiles_attacks[] = {"execve",
					"execveat",
					"ptrace",
					"process_vm_readv",
					"process_vm_writev",
					"process_madvise",
					"pidfd_getfd",
					"open_by_handle_at",
					"name_to_handle_at",
					"kcmp",
					"userfaultfd",
					"bpf",
					"perf_event_open",
					"mount",
					"umount2",
					"pivot_root",
					"chroot",
					"move_mount",
					"open_tree",
					"fsopen",
					"fsmount",
					"fsconfig",
					"mount_setattr",
					"setns",
					"unshare",
					"init_module",
					"finit_module",
					"delete_module",
					"kexec_load",
					"kexec_file_load",
					"reboot",
					"swapon",
					"swapoff",
					"keyctl",
					"add_key",
					"request_key",
					"iopl",
					"ioperm",
					"modify_ldt",
					"personality",
					"acct",
					"capset",
					"setuid",
					"setgid",
					"setreuid",
					"setregid",
					"setresuid",
					"setresgid",
					"setfsuid",
					"setfsgid",
					"setgroups",
					"mknod",
					"mknodat",
					"io_uring_setup",
					"fork",
					"vfork",
					"syslog",
					"quotactl",
					"sethostname",
					"setdomainname",
					"settimeofday",
					"clock_settime",
					"clock_adjtime",
					"adjtimex",
					"move_pages",
					"migrate_pages",
					"mbind",
					"memfd_secret",
					"vmsplice",
					NULL};

#define PART(list)                                                                                 \
	{                                                                                          \
		list, sizeof(list) / sizeof(list[0])                                               \
	}

static const struct profile_part own[ROLE_COUNT] = {
    [ROLE_LOADER] = PART(loader), [ROLE_SAMPLER] = PART(sampler),
    [ROLE_BROKER] = PART(broker), [ROLE_EXPORTER] = PART(exporter),
    [ROLE_VIEWER] = PART(viewer), [ROLE_SYMBOLIZER] = PART(symbolizer),
};

size_t profiles_allowed(enum role role, enum profile_for whom, struct profile_part *parts)
{
	static const struct profile_part common[] = {PART(everybody), PART(start),
						     PART(start_symbolizer), PART(supervisor)};
	size_t n = 0;

	if (role == ROLE_CLI || (role == ROLE_SUPERVISOR && whom == PROFILE_PROCESS))
		return 0;
	parts[n++] = common[0];
	if (whom == PROFILE_CONTAINER)
		parts[n++] = common[1];
	if (whom == PROFILE_CONTAINER && role == ROLE_SYMBOLIZER)
		parts[n++] = common[2];
	parts[n++] = role == ROLE_SUPERVISOR ? common[3] : own[role];
	return n;
}

int profiles_has(const struct profile_part *parts, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < parts[i].n; k++)
			if (strcmp(parts[i].rules[k].name, name) == 0)
				return 1;
	return 0;
}

#define BIT(layer) (1u << LAYER_##layer)

/*
 * Landlock would keep the broker from what it is there for, as it lets nobody look into a process
 * outside. The exporter needs the network and its resolver's files.
 */
static const uint32_t layers[ROLE_COUNT] = {
    [ROLE_LOADER] = BIT(SECCOMP) | BIT(MDWE),
    [ROLE_SAMPLER] = BIT(SECCOMP) | BIT(LANDLOCK) | BIT(MDWE),
    [ROLE_BROKER] = BIT(SECCOMP) | BIT(MDWE),
    [ROLE_EXPORTER] = BIT(SECCOMP) | BIT(LANDLOCK) | BIT(MDWE),
    [ROLE_VIEWER] = BIT(SECCOMP) | BIT(LANDLOCK) | BIT(MDWE),
    [ROLE_SYMBOLIZER] = BIT(SECCOMP) | BIT(LANDLOCK) | BIT(ROOT) | BIT(PIDS) | BIT(MDWE),
};

uint32_t profiles_layers(enum role role)
{
	return layers[role];
}
