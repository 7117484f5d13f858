/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes every system call that a role's list does not have, in a process that has entered the
 * role's sandbox, and every use that a condition of the list rules out, and sees each refused.
 *
 * usage: confinement_test [ROLE ...]   without a role: all of them. Runs in the containers as well.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/profiles.h"
#include "supervisor/sandbox.h"

#define NUMBERS	  480 /* the last one of Linux 6.18 is 469 */
#define TIMEOUT_S 20  /* a call that was let through may sleep */

#define ROLES_MASK(role) (1u << ROLE_##role)
#define EVERYBODY	 (~0u)

/* What the process noted down before it ended: one entry per call. */
struct note {
	int made, error;
};

static struct note *notes;
static uint32_t *layers;
static enum role role;
static struct profile_part parts[PROFILE_PARTS_MAX];
static size_t parts_n;
static int failures;

__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("FAILED: %s: ", role_name(role));
	vprintf(format, args);
	putchar('\n');
	va_end(args);
	failures++;
}

struct call {
	const char *what;
	uint32_t roles; /* to whom it is refused */
	long number, args[6];
};

/* clang-format off */
#define ALL_BUT(role) (EVERYBODY & ~ROLES_MASK(role))
static const struct call calls[] = {
	{"shared memory from nothing", ALL_BUT(LOADER), SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0}},
	{"executable memory", EVERYBODY, SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}},
	{"writable and executable memory", EVERYBODY, SYS_mmap, {0, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}},
	{"memory that becomes executable", EVERYBODY, SYS_mprotect, {0, 4096, PROT_READ | PROT_EXEC}},
	{"a futex that knows its owner", EVERYBODY, SYS_futex, {0, FUTEX_LOCK_PI, 0, 0, 0, 0}},
	{"a wake that writes", EVERYBODY, SYS_futex, {0, FUTEX_WAKE_OP, 0, 0, 0, 0}},
	{"holes in shared memory", EVERYBODY, SYS_madvise, {0, 4096, MADV_REMOVE}},
	{"a lease", EVERYBODY, SYS_fcntl, {0, F_SETLEASE, 0}},
	{"a signal for I/O", EVERYBODY, SYS_fcntl, {0, F_SETOWN, 1}},
	{"seals", ALL_BUT(SYMBOLIZER), SYS_fcntl, {0, F_ADD_SEALS, 0}},
	{"stat by path", ALL_BUT(EXPORTER) & ALL_BUT(LOADER), SYS_newfstatat, {AT_FDCWD, (long)"/", 0, 0}},
	{"typing on a terminal", EVERYBODY, SYS_ioctl, {0, TIOCSTI, (long)"x"}},
	{"a BPF map", ALL_BUT(LOADER), SYS_bpf, {BPF_MAP_CREATE, 0, 0}},
	{"a BPF program", ALL_BUT(LOADER), SYS_bpf, {BPF_PROG_LOAD, 0, 0}},
	{"freezing a map", ALL_BUT(LOADER), SYS_bpf, {BPF_MAP_FREEZE, 0, 0}},
	{"a map by its id", EVERYBODY, SYS_bpf, {BPF_MAP_GET_FD_BY_ID, 0, 0}},
	{"pinning", EVERYBODY, SYS_bpf, {BPF_OBJ_PIN, 0, 0}},
	{"a file to write", EVERYBODY, SYS_openat, {AT_FDCWD, (long)"/dev/null", O_WRONLY, 0}},
	{"a file to read and write", EVERYBODY, SYS_openat, {AT_FDCWD, (long)"/dev/null", O_RDWR, 0}},
	{"a new file", EVERYBODY, SYS_openat, {AT_FDCWD, (long)"/dev/null", O_RDONLY | O_CREAT, 0}},
	{"an emptied file", EVERYBODY, SYS_openat, {AT_FDCWD, (long)"/dev/null", O_RDONLY | O_TRUNC, 0}},
	{"a file", ROLES_MASK(SAMPLER) | ROLES_MASK(VIEWER) | ROLES_MASK(SYMBOLIZER), SYS_openat, {AT_FDCWD, (long)"/dev/null", O_RDONLY, 0}},
	{"ring: buffers", EVERYBODY, SYS_io_uring_register, {-1, IORING_REGISTER_BUFFERS, 0, 0}},
	{"ring: files anew", EVERYBODY, SYS_io_uring_register, {-1, IORING_REGISTER_FILES, 0, 0}},
	{"ring: an eventfd", EVERYBODY, SYS_io_uring_register, {-1, IORING_REGISTER_EVENTFD, 0, 0}},
	{"ring: other restrictions", EVERYBODY, SYS_io_uring_register, {-1, IORING_REGISTER_RESTRICTIONS, 0, 0}},
	{"memory that can be run", EVERYBODY, SYS_memfd_create, {(long)"x", MFD_HUGETLB, 0}},
	{"packets", EVERYBODY, SYS_socket, {AF_PACKET, SOCK_RAW, 0}},
	{"audit", EVERYBODY, SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_AUDIT}},
	{"a TCP socket", ALL_BUT(EXPORTER), SYS_socket, {AF_INET, SOCK_STREAM, 0}},
	{"a unix socket", ALL_BUT(EXPORTER), SYS_socket, {AF_UNIX, SOCK_STREAM, 0}},
	{"ending the talk with a peer", ALL_BUT(EXPORTER) & ALL_BUT(VIEWER), SYS_shutdown, {3, SHUT_RDWR}},
	{"a process", EVERYBODY, SYS_clone, {SIGCHLD, 0, 0, 0, 0}},
	{"a user namespace", EVERYBODY, SYS_clone, {CLONE_NEWUSER | CLONE_THREAD, 0, 0, 0, 0}},
	{"a signal to everybody", EVERYBODY, SYS_kill, {-1, 0}},
	{"a signal to the supervisor", EVERYBODY, SYS_kill, {1, SIGKILL}},
};
/* clang-format on */

#define CALLS (sizeof(calls) / sizeof(calls[0]))

static void make(size_t at, long number, const long *a)
{
	long result = syscall((int)number, a[0], a[1], a[2], a[3], a[4], a[5]);

	notes[at].error = result < 0 ? errno : 0;
	notes[at].made = 1;
}

/* Enter the sandbox as a process started by the supervisor does, and run; the status of its end. */
static int confined(void (*run)(long), long argument)
{
	const unsigned long apart = CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
	long pid = syscall(SYS_clone, apart | SIGCHLD, NULL, NULL, NULL, NULL);
	int status = -1;

	if (pid < 0) /* a container forbids it; and has namespaces itself */
		pid = fork();
	if (pid == 0) {
		*layers = sandbox_enter(role, NULL);
		run(argument);
		syscall(SYS_exit_group, 0);
	}
	for (int i = 0; i < TIMEOUT_S * 1000; i++) {
		if (waitpid((pid_t)pid, &status, WNOHANG) == pid)
			return status;
		usleep(1000);
	}
	kill((pid_t)pid, SIGKILL);
	waitpid((pid_t)pid, &status, 0);
	return -1;
}

static const char *number_name(long number)
{
	static char name[64];
	char *found = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number);

	snprintf(name, sizeof(name), "%s", found ? found : "");
	free(found);
	return name;
}

static int is_attack(const char *name)
{
	for (const char *const *attack = profiles_attacks; *attack; attack++)
		if (strcmp(*attack, name) == 0)
			return 1;
	return 0;
}

/* Allowed, if only under a condition; or answered by the kernel before any filter. */
static int is_listed(const char *name)
{
	return profiles_has(parts, parts_n, name) || strcmp(name, "restart_syscall") == 0;
}

/*
 * uretprobe and uprobe (x86, Linux 6.11 and 6.18): since 6.13 no filter sees them, and whoever makes
 * them without the kernel's own trampoline is ended by SIGILL.
 */
static int is_past_filters(int number)
{
#ifdef __x86_64__
	return number == 335 || number == 336;
#else
	return number < 0;
#endif
}

static char ends[NUMBERS]; /* numbers that end the process, looked up before the sandbox */
static char listed[NUMBERS];

static void run_unlisted(long argument)
{
	static const long nothing[6] = {-1, -1, -1, -1, -1, -1};

	(void)argument;
	for (int n = 0; n < NUMBERS; n++)
		if (!listed[n] && !ends[n])
			make((size_t)n, n, nothing);
}

static void run_attack(long number)
{
	static const long nothing[6] = {-1, -1, -1, -1, -1, -1};

	make((size_t)number, number, nothing);
}

static void run_calls(long argument)
{
	(void)argument;
	for (size_t i = 0; i < CALLS; i++)
		if (calls[i].roles & 1u << role && !ends[calls[i].number])
			make(i, calls[i].number, calls[i].args);
}

static void test_unlisted(void)
{
	int status, n, made = 0;

	memset(notes, 0, NUMBERS * sizeof(*notes));
	status = confined(run_unlisted, 0);
	for (n = 0; n < NUMBERS; n++) {
		const char *name = number_name(n);
		int wanted = strcmp(name, "clone3") == 0 ? ENOSYS : EPERM;

		if (listed[n] || ends[n])
			continue;
		if (!notes[n].made)
			break;
		made++;
		if (notes[n].error != wanted)
			fail("%s (%d) got as far as: %s", name, n, strerror(notes[n].error));
	}
	if (status != 0)
		fail("ended at %s (%d), status %x", number_name(n), n, status);
	if (made < 200)
		fail("only %d calls were tried", made);
	printf("%s: %d calls that are not listed are refused\n", role_name(role), made);
}

static void test_attacks(void)
{
	int made = 0, status;

	for (int n = 0; n < NUMBERS; n++) {
		if (!ends[n])
			continue;
		made++;
		notes[n].made = 0;
		status = confined(run_attack, n);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS || notes[n].made)
			fail("%s does not end the process: status %x", number_name(n), status);
	}
	if (made < 50)
		fail("only %d attacks were tried", made);
	printf("%s: %d calls end the process\n", role_name(role), made);
}

static void test_conditions(void)
{
	int status, made = 0;

	memset(notes, 0, NUMBERS * sizeof(*notes));
	status = confined(run_calls, 0);
	for (size_t i = 0; i < CALLS; i++) {
		if (!(calls[i].roles & 1u << role) || ends[calls[i].number])
			continue;
		made++;
		if (!notes[i].made || notes[i].error != EPERM)
			fail("%s: %s", calls[i].what,
			     notes[i].made ? strerror(notes[i].error) : "not reached");
	}
	if (status != 0)
		fail("ended by one of the conditions, status %x", status);
	printf("%s: %d uses that a condition rules out are refused\n", role_name(role), made);
}

static void test_role(enum role tested)
{
	role = tested;
	parts_n = profiles_allowed(role, PROFILE_PROCESS, parts);
	for (int n = 0; n < NUMBERS; n++) {
		const char *name = number_name(n);

		listed[n] = is_listed(name) || is_past_filters(n);
		ends[n] = !listed[n] && is_attack(name);
	}
	test_unlisted();
	test_attacks();
	test_conditions();
	if (!(*layers & 1u << LAYER_SECCOMP))
		fail("there is no filter");
	if (*layers != profiles_layers(role))
		printf("%s: layers %x of %x\n", role_name(role), *layers, profiles_layers(role));
}

int main(int argc, char **argv)
{
	int tested = 0;

	notes = mmap(NULL, (NUMBERS + 1) * sizeof(*notes), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	layers = (uint32_t *)(notes + NUMBERS);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (enum role r = ROLE_LOADER; r < ROLE_COUNT; r++)
		for (int i = argc > 1 ? 1 : 0; i < argc; i++)
			if (argc == 1 || strcmp(argv[i], role_name(r)) == 0) {
				test_role(r);
				tested++;
			}
	if (!tested) {
		fprintf(stderr, "usage: %s [ROLE ...]\n", argv[0]);
		return 2;
	}
	return failures ? 1 : 0;
}
