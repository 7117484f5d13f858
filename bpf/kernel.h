/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel as far as we read it: the few fields of its own types, found by CO-RE on the machine
 * where we load. This page is all that ties us to a kernel version.
 *
 * The floor is bpf_loop (5.17, or a backport). By then start_boottime had its present name (5.5)
 * and self_exec_id its 64 bits (5.7), so neither needs an alternative here.
 */
#ifndef SCONCE_BPF_KERNEL_H
#define SCONCE_BPF_KERNEL_H

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct mm_struct {
	unsigned long end_code; /* 0 until a program is loaded; a fork copies it */
	unsigned long start_stack; /* where sp points as it begins */
} __attribute__((preserve_access_index));

/* Where the thread's own data is; user space that sets it by WRFSBASE alone is seen a switch later. */
struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

struct task_struct {
	unsigned int flags;
	int pid, tgid; /* in the initial pid namespace */
	struct mm_struct *mm;
	struct task_struct *group_leader;
	__u64 start_boottime; /* CLOCK_BOOTTIME ns */
	__u64 self_exec_id;
	struct thread_struct thread;
} __attribute__((preserve_access_index));

/* task_struct.flags, include/linux/sched.h */
#define PF_KTHREAD 0x00200000

#ifdef __TARGET_ARCH_x86
/* The kernel's names; <asm/ptrace.h> has the same struct under user space's. */
struct pt_regs___kernel {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, sp;
} __attribute__((preserve_access_index));

/* The upper bits of the cs slot are not cs where the CPU enters the kernel by FRED. */
#define CS_MASK 0xffff
#define CS_USER_BITS 3
#define CS_USER32 0x23
#define NR_EXECVE 59
#define NR_EXECVEAT 322
#define PAGE_BYTES 4096
#else
#error "write down the registers of this architecture"
#endif

#endif
