/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/lang/stopped.h"

#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/sysmacros.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "tests/lang/livefile.h"

bool stopped_begin(struct stopped *stopped, pid_t tid)
{
	int status;

	stopped->tid = tid;
	if (ptrace(PTRACE_SEIZE, tid, 0, 0))
		return false;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) || waitpid(tid, &status, __WALL) != tid ||
	    !WIFSTOPPED(status))
		return false;
	/* A stop for a signal must hand the signal on. */
	stopped->signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
	return true;
}

void stopped_end(const struct stopped *stopped)
{
	ptrace(PTRACE_DETACH, stopped->tid, 0, stopped->signal);
}

/* In the order of enum rule_register from rax on. */
static bool stopped_registers(const struct stopped *stopped, struct snapshot_head *head)
{
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, stopped->tid, 0, &r))
		return false;
	head->regs =
	    (struct record_regs){.pc = r.rip,
				 .sp = r.rsp,
				 .fp = r.rbp,
				 .extra = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.r8, r.r9,
					   r.r10, r.r11, r.r12, r.r13, r.r14, r.r15}};
	if (r.orig_rax != (unsigned long long)-1)
		head->regs.flags = RECORD_REGS_SYSCALL;
	head->thread_pointer = r.fs_base;
	return true;
}

/* Which mappings have a file: as broker/main.c says. */
static bool stopped_is_anonymous(const char *path, unsigned long inode)
{
	return inode == 0 || !strncmp(path, "/memfd:", 7) || !strncmp(path, "/dev/zero", 9);
}

static void stopped_range(pid_t pid, const char *line, struct snapshot_head *head)
{
	struct record_range *range = &head->ranges[head->ranges_n];
	unsigned long start, end, offset, inode;
	unsigned int major, minor;
	char perms[8], path[SNAPSHOT_PATH_BYTES] = "", by[96];

	if (sscanf(line, "%lx-%lx %7s %lx %x:%x %lu %255[^\n]", &start, &end, perms, &offset,
		   &major, &minor, &inode, path) < 7 ||
	    perms[2] != 'x' || !strcmp(path, "[vsyscall]") || head->ranges_n == SNAPSHOT_RANGES_MAX)
		return;
	*range = (struct record_range){start, end, offset, 0, RANGE_ANON};
	if (!strcmp(path, "[vdso]")) {
		*range = (struct record_range){start, end, 0, RECORD_VDSO_FILE_ID, 0};
	} else if (!stopped_is_anonymous(path, inode)) {
		snprintf(by, sizeof(by), "/proc/%d/map_files/%lx-%lx", pid, start, end);
		range->flags = 0;
		range->file_id = livefile_id(path, by, makedev(major, minor), inode);
	}
	if (range->file_id && range->file_id <= SNAPSHOT_FILES_MAX) {
		snprintf(head->paths[range->file_id - 1], SNAPSHOT_PATH_BYTES, "%s", path);
		if (range->file_id > head->files_n)
			head->files_n = range->file_id;
	}
	head->ranges_n++;
}

static bool stopped_ranges(pid_t pid, struct snapshot_head *head)
{
	char name[32], line[512];
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	f = fopen(name, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		stopped_range(pid, line, head);
	fclose(f);
	return head->ranges_n > 0;
}

void stopped_made_by(struct snapshot_head *head)
{
	head->made_by = 0;
	for (uint32_t i = 0; i < head->ranges_n && !head->made_by; i++) {
		const struct livefile *file = livefile_get(head->ranges[i].file_id);

		if (file && file->table && file->table->runtimes)
			head->made_by = i + 1;
	}
}

bool stopped_look(const struct stopped *stopped, pid_t pid, struct snapshot_head *head)
{
	memset(head, 0, sizeof(*head));
	if (!stopped_registers(stopped, head) || !stopped_ranges(pid, head))
		return false;
	stopped_made_by(head);
	return true;
}
