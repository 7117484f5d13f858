// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Keeps the targets of the filter up to date: children of targets join, the dead leave. Attached
 * only where there is a filter; joining only where children are followed.
 */
#include "bpf/maps.h"

/* Runs in the parent before the child can run, so that not even its first sample is missed. */
SEC("raw_tracepoint/sched_process_fork")
int sconce_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	__u32 parent_pid = BPF_CORE_READ(parent, tgid), pid = BPF_CORE_READ(child, tgid), one = 1;

	/* A new thread is of a process that is a target, or is none, already. */
	if (BPF_CORE_READ(child, pid) == (int)pid && bpf_map_lookup_elem(&targets, &parent_pid))
		bpf_map_update_elem(&targets, &pid, &one, BPF_ANY);
	return 0;
}

/*
 * A leader's task is freed after all its threads', when none of them can be sampled any more. At
 * sched_process_exit it would be too early: tearing down its memory is the process's CPU time too.
 */
SEC("raw_tracepoint/sched_process_free")
int sconce_free(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	__u32 pid = BPF_CORE_READ(task, tgid);

	if (BPF_CORE_READ(task, pid) == (int)pid)
		bpf_map_delete_elem(&targets, &pid);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
