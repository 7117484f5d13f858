/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/symbolizer/image.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

void image_start(struct image *image, char *const argv[])
{
	static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
						 .find_debuginfo = dwfl_standard_find_debuginfo};

	memset(image, 0, sizeof(*image));
	image->stack = malloc(IMAGE_STACK_BYTES);
	assert_non_null(image->stack);
	image->pid = fork();
	if (image->pid == 0) {
		int in = open("/dev/zero", O_RDONLY), out = open("/dev/null", O_WRONLY);

		dup2(in, 0);
		dup2(out, 1);
		dup2(out, 2);
		alarm(60); /* kept over exec: it ends, whatever becomes of us */
		execvp(argv[0], argv);
		_exit(127);
	}
	assert_true(image->pid > 0);
	image->dwfl = dwfl_begin(&callbacks);
	assert_non_null(image->dwfl);
}

/* The file behind a mapping, as the broker would hand it over. */
static uint32_t image_file(struct image *image, struct files *files, const char *path)
{
	struct message_file message = {0};
	struct stat st;
	int fd;

	for (uint32_t i = 0; i < image->files_n; i++)
		if (!strcmp(image->paths[i], path))
			return i + 1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		fail_msg("%s: %s", path, strerror(errno));
	snprintf(image->paths[image->files_n++], sizeof(image->paths[0]), "%s", path);
	message.file_id = image->files_n;
	message.key = (struct file_key){st.st_dev, st.st_ino, (uint64_t)st.st_size, 1};
	files_message(files, &message, fd);
	return message.file_id;
}

static void image_maps(struct image *image, struct files *files)
{
	char name[32], line[512], perms[8], path[256];
	unsigned long start, end, offset;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", image->pid);
	f = fopen(name, "re");
	assert_non_null(f);
	image->ranges_n = 0;
	while (fgets(line, sizeof(line), f)) {
		struct record_range *range = &image->ranges[image->ranges_n];

		path[0] = 0;
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &start, &end, perms, &offset,
			   path) < 4 ||
		    perms[2] != 'x' || !strcmp(path, "[vsyscall]"))
			continue;
		assert_true(image->ranges_n < IMAGE_RANGES_MAX);
		*range = (struct record_range){start, end, offset, 0, RANGE_ANON};
		if (!strcmp(path, "[vdso]"))
			*range = (struct record_range){start, end, 0, RECORD_VDSO_FILE_ID, 0};
		if (path[0] == '/') {
			range->flags = 0;
			range->file_id = image_file(image, files, path);
		}
		image->ranges_n++;
	}
	fclose(f);
}

/* In the order of enum rule_register from rax on. */
static void image_regs(struct image *image)
{
	struct user_regs_struct r;

	assert_return_code(ptrace(PTRACE_GETREGS, image->pid, 0, &r), errno);
	image->regs =
	    (struct record_regs){.pc = r.rip,
				 .sp = r.rsp,
				 .fp = r.rbp,
				 .extra = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.r8, r.r9,
					   r.r10, r.r11, r.r12, r.r13, r.r14, r.r15}};
	image->regs.flags = RECORD_REGS_BELOW;
	if (r.orig_rax != (unsigned long long)-1)
		image->regs.flags |= RECORD_REGS_SYSCALL;
}

/* As many pages as there are. */
static void image_stack(struct image *image)
{
	uint64_t start = image->regs.sp - RECORD_STACK_BELOW;

	image->stack_bytes = 0;
	while (image->stack_bytes < IMAGE_STACK_BYTES) {
		uint64_t at = start + image->stack_bytes;
		size_t n = 4096 - at % 4096;
		struct iovec to, from = {(void *)at, n};

		if (n > IMAGE_STACK_BYTES - image->stack_bytes)
			return;
		to = (struct iovec){image->stack + image->stack_bytes, n};
		if (process_vm_readv(image->pid, &to, 1, &from, 1, 0) != (ssize_t)n)
			return;
		image->stack_bytes += n;
	}
}

static int image_dwfl_frame(Dwfl_Frame *frame, void *arg)
{
	struct image *image = arg;
	Dwarf_Addr pc;

	if (image->pcs_n == IMAGE_FRAMES_MAX || !dwfl_frame_pc(frame, &pc, NULL))
		return DWARF_CB_ABORT;
	image->pcs[image->pcs_n++] = pc;
	return DWARF_CB_OK;
}

static void image_unwind(struct image *image)
{
	/* Libraries may have come since the last time; attaching twice is refused, and harmless. */
	assert_int_equal(dwfl_linux_proc_report(image->dwfl, image->pid), 0);
	dwfl_report_end(image->dwfl, NULL, NULL);
	dwfl_linux_proc_attach(image->dwfl, image->pid, true);
	image->pcs_n = 0;
	image->pcs_whole =
	    dwfl_getthread_frames(image->dwfl, image->pid, image_dwfl_frame, image) == 0;
}

bool image_take(struct image *image, struct files *files)
{
	int status;

	if (ptrace(PTRACE_SEIZE, image->pid, 0, 0) || ptrace(PTRACE_INTERRUPT, image->pid, 0, 0))
		return false;
	if (waitpid(image->pid, &status, __WALL) != image->pid || !WIFSTOPPED(status))
		return false;
	image_regs(image);
	image_maps(image, files);
	image_stack(image);
	image_unwind(image);
	/* A stop for a signal must hand the signal on. */
	ptrace(PTRACE_DETACH, image->pid, 0,
	       status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status));
	return true;
}

void image_end(struct image *image)
{
	kill(image->pid, SIGKILL);
	waitpid(image->pid, NULL, __WALL);
	dwfl_end(image->dwfl);
	free(image->stack);
}

uint64_t image_pc(const struct image *image, const struct frame *frame)
{
	uint64_t back = frame->flags & FRAME_RETURN ? 1 : 0;

	if (frame->kind == FRAME_PC)
		return frame->addr;
	for (uint32_t i = 0; i < image->ranges_n; i++) {
		const struct record_range *r = &image->ranges[i];

		if (r->file_id == frame->file_id && frame->addr - back >= r->offset &&
		    frame->addr - back - r->offset < r->end - r->start)
			return frame->addr - r->offset + r->start;
	}
	return 0;
}
