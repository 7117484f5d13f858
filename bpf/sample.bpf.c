// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The sampler in the kernel: runs in the timer interrupt of a cpu-clock event and writes one
 * struct record_sample (shm/record.h) into the ring.
 *
 * A sample is taken, and has its seq, from the moment it passed the filter; whatever happens to it
 * then is counted. The record is built in a per-cpu scratch, of which the kernel lets only one run
 * of us be the user: a sample that interrupts a program of ours does not run it again.
 */
#include "bpf/langs.h"
#include "bpf/maps.h"
#include "bpf/scratch.bpf.h"
#include "bpf/unwind.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratch SEC(".maps");

/* What BPF knows of a process; a copy, because the sampler may change the entry at any moment. */
struct slice {
	__u32 first, count;
	__u32 flags;
	__u32 made_by;
};

/* --- The seam of bpf/unwind.bpf.h; struct unwind is the first member of struct scratch. --- */

UNWIND_INLINE int unwind_read_user(const struct unwind *w, __u64 from, __u64 *words, __u64 n)
{
	struct scratch *s = (struct scratch *)w;
	__u64 at = from - s->window_at;

	if (at > WINDOW_BYTES - 8 * n || (at & 7)) {
		at = 0;
		s->window_at = from;
		if (bpf_probe_read_user(s->window, WINDOW_BYTES, (const void *)from)) {
			/* Where the stack ends, or a page that is not there: not so much. */
			s->window_at = 0;
			return bpf_probe_read_user(words, 8 * n, (const void *)from)
				   ? STOP_READ_FAULT
				   : UNWIND_GO;
		}
	}
	for (__u64 i = 0; i < n; i++)
		words[i] = s->window[at / 8 + i];
	return UNWIND_GO;
}

UNWIND_INLINE const struct record_range *unwind_range(const struct unwind *w, __u64 index)
{
	/* Beyond the end of the array the lookup gives NULL; here only wrapping is refused. */
	__u32 key = index;

	(void)w;
	return index >> 32 ? NULL : bpf_map_lookup_elem(&ranges, &key);
}

/* The sampler may give the entry to another file meanwhile, so whose it is is asked twice. */
UNWIND_INLINE void unwind_file(struct unwind *w, __u32 file_id)
{
	__u32 key = file_id % TABLES_FILES_MAX, other = TABLES_FILES_MAX;
	volatile struct bpf_file *file = bpf_map_lookup_elem(&files, &key);
	__u64 now_ns = ((struct scratch *)w)->sample.time_ns;

	w->file.file_id = file_id;
	if (file && file->file_id == file_id) {
		w->file.flags = file->flags;
		w->file.first = file->first;
		w->file.first_page = file->first_page;
		w->file.pages = file->pages;
		w->file.rows = file->rows;
		w->file.rules = file->rules;
		if (file->file_id == file_id) {
			if (now_ns - file->used_ns > TABLES_USED_NS)
				file->used_ns = now_ns;
			return;
		}
	}
	file = bpf_map_lookup_elem(&files, &other);
	w->file.flags = file ? file->flags & BPF_FILE_DEFER : 0;
}

UNWIND_INLINE const __u32 *unwind_chunk(const struct unwind *w, __u64 index)
{
	__u32 key = index / TABLES_CHUNK_WORDS, zero = 0;
	void *map = bpf_map_lookup_elem(&chunks, &key);

	(void)w;
	return map ? bpf_map_lookup_elem(map, &zero) : NULL;
}

UNWIND_INLINE const __u32 *unwind_word(const struct unwind *w, const __u32 *chunk, __u64 index)
{
	(void)w;
	return &chunk[index % TABLES_CHUNK_WORDS];
}

/* --- Languages: bpf/lang.bpf.h. --- */

#define LANGUAGE(NAME, name) int name##_step(struct unwind *w);
LANGUAGES(LANGUAGE)
#undef LANGUAGE

UNWIND_INLINE int unwind_script(struct unwind *w)
{
	switch (w->runtime.language) {
#define LANGUAGE(NAME, name)                                                                       \
	case LANG_##NAME:                                                                          \
		return name##_step(w);
		LANGUAGES(LANGUAGE)
#undef LANGUAGE
	}
	w->script.ended = 1;
	w->unwinder = UNWIND_NATIVE;
	return UNWIND_GO;
}

/* --- What goes into a record. --- */

UNWIND_INLINE int sample_wanted(struct task_struct *task)
{
	__u32 pid = task->tgid;

	return setting_all || bpf_map_lookup_elem(&targets, &pid);
}

UNWIND_INLINE void sample_header(struct record_sample *r, struct task_struct *task, __u64 period_ns)
{
	r->header.kind = RECORD_SAMPLE;
	r->header.flags = 0;
	r->time_ns = bpf_ktime_get_boot_ns();
	r->period_ns = period_ns;
	r->pid = task->tgid;
	r->tid = task->pid;
	r->start_ns = task->group_leader->start_boottime;
	r->exec_id = task->self_exec_id;
	r->cgroup_id = bpf_get_current_cgroup_id();
	r->kernel_frames = 0;
	r->user_slots = 0;
	r->stop = STOP_NO_USER;
	r->unused = 0;
	r->stack_bytes = 0;
	r->slice = 0;
	bpf_get_current_comm(r->comm, sizeof(r->comm));
}

UNWIND_INLINE void sample_kernel_stack(struct scratch *s, struct bpf_perf_event_data *ctx)
{
	long bytes = bpf_get_stack(ctx, s->kernel_ips, sizeof(s->kernel_ips), 0);
	__u64 n = bytes > 0 ? (__u64)bytes / sizeof(s->kernel_ips[0]) : 0;

	for (__u64 i = 0; i < RECORD_KERNEL_FRAMES_MAX && i < n; i++) {
		struct frame *frame = &s->sample.frames[i];

		frame->kind = FRAME_KERNEL;
		/* Behind the interrupted function, every address is where a call comes back to. */
		frame->flags = i ? FRAME_RETURN : 0;
		frame->language = 0;
		frame->file_id = 0;
		frame->addr = s->kernel_ips[i];
	}
	s->sample.kernel_frames = n;
}

/*
 * Functions of their own, because clang merges the tails of both into loads through one pointer,
 * and the verifier refuses a pointer that may be the context.
 */
static __attribute__((noinline)) int sample_user_regs(struct record_regs *to,
						      const bpf_user_pt_regs_t *from)
{
	to->pc = from->rip;
	to->sp = from->rsp;
	to->fp = from->rbp;
	to->flags = 0;
	to->extra[RULE_RAX - RULE_RAX] = from->rax;
	to->extra[RULE_RDX - RULE_RAX] = from->rdx;
	to->extra[RULE_RCX - RULE_RAX] = from->rcx;
	to->extra[RULE_RBX - RULE_RAX] = from->rbx;
	to->extra[RULE_RSI - RULE_RAX] = from->rsi;
	to->extra[RULE_RDI - RULE_RAX] = from->rdi;
	to->extra[RULE_R8 - RULE_RAX] = from->r8;
	to->extra[RULE_R9 - RULE_RAX] = from->r9;
	to->extra[RULE_R10 - RULE_RAX] = from->r10;
	to->extra[RULE_R11 - RULE_RAX] = from->r11;
	to->extra[RULE_R12 - RULE_RAX] = from->r12;
	to->extra[RULE_R13 - RULE_RAX] = from->r13;
	to->extra[RULE_R14 - RULE_RAX] = from->r14;
	to->extra[RULE_R15 - RULE_RAX] = from->r15;
	return from->cs & CS_MASK;
}

/* Interrupted in the kernel: what it saved of user space on the way in. */
static __attribute__((noinline)) int sample_saved_regs(struct record_regs *to,
						       struct task_struct *task)
{
	const struct pt_regs___kernel *from = (void *)bpf_task_pt_regs(task);

	to->pc = from->ip;
	to->sp = from->sp;
	to->fp = from->bp;
	/*
	 * A number there is a syscall; interrupts and faults leave -1. At the end of execve pc is
	 * where the new program begins.
	 */
	to->flags = from->orig_ax != -1ul && from->sp != task->mm->start_stack ? RECORD_REGS_SYSCALL
									       : 0;
	to->extra[RULE_RAX - RULE_RAX] = from->ax;
	to->extra[RULE_RDX - RULE_RAX] = from->dx;
	to->extra[RULE_RCX - RULE_RAX] = from->cx;
	to->extra[RULE_RBX - RULE_RAX] = from->bx;
	to->extra[RULE_RSI - RULE_RAX] = from->si;
	to->extra[RULE_RDI - RULE_RAX] = from->di;
	to->extra[RULE_R8 - RULE_RAX] = from->r8;
	to->extra[RULE_R9 - RULE_RAX] = from->r9;
	to->extra[RULE_R10 - RULE_RAX] = from->r10;
	to->extra[RULE_R11 - RULE_RAX] = from->r11;
	to->extra[RULE_R12 - RULE_RAX] = from->r12;
	to->extra[RULE_R13 - RULE_RAX] = from->r13;
	to->extra[RULE_R14 - RULE_RAX] = from->r14;
	to->extra[RULE_R15 - RULE_RAX] = from->r15;
	return from->cs & CS_MASK;
}

/*
 * Execve gives the task its new memory in the middle of begin_new_exec() and sets its registers last,
 * so that for a while they are of a program whose memory is gone. load_elf_binary() sets end_code
 * shortly before them; from there on the old sp tells, which points to nothing in the new memory.
 */
UNWIND_INLINE int sample_between_programs(struct task_struct *task)
{
	const struct pt_regs___kernel *saved = (void *)bpf_task_pt_regs(task);
	__u64 word;

	if (!task->mm->end_code)
		return 1;
	return (saved->orig_ax == NR_EXECVE || saved->orig_ax == NR_EXECVEAT) &&
	       bpf_probe_read_user(&word, sizeof(word), (const void *)saved->sp);
}

/*
 * The slice of this process, if the entry is of this very process and program. The sampler may
 * delete the entry meanwhile and the kernel give its memory to another process at once, so who it
 * is of is asked before and after.
 */
UNWIND_INLINE int sample_known(const struct record_sample *r, struct slice *slice)
{
	__u32 pid = r->pid;
	const volatile struct bpf_process *p = bpf_map_lookup_elem(&procs, &pid);
	__u64 lo, exec_id;

	slice->first = slice->count = slice->flags = slice->made_by = 0;
	if (!p)
		return 0;
	lo = p->start_lo_ns;
	exec_id = p->exec_id;
	if (r->start_ns < lo || r->start_ns > p->start_hi_ns)
		return 0;
	slice->first = p->first;
	slice->count = p->count;
	slice->flags = p->flags;
	slice->made_by = p->made_by;
	/* What holds for another program, its want of a stack too, does not hold for this one. */
	if (exec_id != r->exec_id || p->exec_id != exec_id || p->start_lo_ns != lo)
		slice->flags = 0;
	return slice->flags & BPF_PROCESS_EXEC_KNOWN;
}

/*
 * The walk came to code that is in no range: perhaps it was mapped a moment ago, and the sampler has
 * not looked since. The worker will know; but it sees only so much of the stack, and where the walk
 * came further than that it keeps what it has.
 */
UNWIND_INLINE int sample_outdated(const struct scratch *s, const struct slice *slice)
{
	return (s->walk.strays || s->walk.stop == STOP_NO_MAPPING) &&
	       !(slice->flags & BPF_PROCESS_NO_STACK) &&
	       s->walk.sp - s->regs.sp < RECORD_STACK_BYTES_MAX;
}

/*
 * Registers and the stack from a little below sp upwards, page by page: what cannot be read (beyond
 * the end, not present) ends it. Returns the bytes that were written behind the frames.
 */
UNWIND_INLINE __u64 sample_copy_stack(struct scratch *s, int want_bytes)
{
	__u64 at = HEAD_BYTES + s->sample.kernel_frames * sizeof(struct frame);
	__u64 done = 0, from = s->regs.sp;

	if (at > HEAD_BYTES + RECORD_KERNEL_FRAMES_MAX * sizeof(struct frame))
		return 0;
	/* A stack page that nothing was ever pushed to is not there: then there is no need of it. */
	if (want_bytes &&
	    !bpf_probe_read_user(s->record + at + sizeof(s->regs), RECORD_STACK_BELOW,
				 (const void *)(from - RECORD_STACK_BELOW))) {
		s->regs.flags |= RECORD_REGS_BELOW;
		from -= RECORD_STACK_BELOW;
		done = RECORD_STACK_BELOW;
	}
	__builtin_memcpy(s->record + at, &s->regs, sizeof(s->regs));
	at += sizeof(s->regs);
	/* Five pages hold 16 KiB wherever it begins. */
	for (int i = 0; want_bytes && i < RECORD_STACK_BYTES_MAX / PAGE_BYTES + 1; i++) {
		__u64 chunk = PAGE_BYTES - ((from + done) & (PAGE_BYTES - 1));

		if (chunk > RECORD_STACK_BYTES_MAX - done)
			chunk = RECORD_STACK_BYTES_MAX - done;
		/* Linux 6.1 learns nothing from the comparison of two variables, so it is told once
		 * more. */
		asm volatile("" : "+r"(chunk));
		if (chunk > PAGE_BYTES)
			break;
		if (bpf_probe_read_user(s->record + at + done, chunk, (const void *)(from + done)))
			break;
		done += chunk;
		if (done >= RECORD_STACK_BYTES_MAX)
			break;
	}
	s->sample.header.flags |= RECORD_HAS_STACK;
	s->sample.stack_bytes = done & ~7ull;
	return sizeof(s->regs) + s->sample.stack_bytes;
}

/* The user half. Returns the bytes written behind the frames. */
UNWIND_INLINE __u64 sample_user_stack(struct scratch *s, struct task_struct *task,
				      struct bpf_perf_event_data *ctx, int in_kernel)
{
	struct slice slice;
	int cs;

	if (!task->mm || (task->flags & PF_KTHREAD))
		return 0;
	if (in_kernel && sample_between_programs(task)) {
		s->sample.stop = STOP_EXECVE;
		return 0;
	}
	cs = in_kernel ? sample_saved_regs(&s->regs, task) : sample_user_regs(&s->regs, &ctx->regs);
	if (cs == CS_USER32) {
		s->sample.stop = STOP_COMPAT32;
		return 0;
	}
	/* Workers of io_uring and vhost look like threads but never were in user space. */
	if (s->regs.sp == 0)
		return 0;
	s->sample.stop = STOP_DEFERRED;
	if (sample_known(&s->sample, &slice)) {
		s->window_at = 0;
		unwind_start(&s->walk, &s->regs, slice.first, slice.count);
		s->walk.made_by = slice.made_by;
		s->walk.thread_pointer = task->thread.fsbase;
		unwind_walk(&s->walk);
		s->sample.stop = sample_outdated(s, &slice) ? STOP_DEFERRED : s->walk.stop;
	}
	/* The worker walks all of a stack; what was found of it here is not needed. */
	if (s->sample.stop == STOP_DEFERRED)
		return sample_copy_stack(s, !(slice.flags & BPF_PROCESS_NO_STACK));
	s->sample.slice = slice.first;
	s->sample.user_slots = s->walk.slots;
	return 0;
}

UNWIND_INLINE void sample_output(struct scratch *s, struct bpf_cpu *cpu, __u64 extra_bytes)
{
	__u64 bytes = HEAD_BYTES + extra_bytes +
		      (s->sample.kernel_frames + s->sample.user_slots) * sizeof(struct frame);
	/*
	 * Its reader looks by itself several times a second; it is woken when it falls behind, and
	 * for a process that is not known yet: it may not live long enough to be asked later.
	 */
	__u64 wake = s->sample.stack_bytes ||
			     bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > setting_wakeup_bytes
			 ? BPF_RB_FORCE_WAKEUP
			 : BPF_RB_NO_WAKEUP;

	s->sample.header.len_bytes = bytes;
	if (bytes > sizeof(s->record) || bpf_ringbuf_output(&events, &s->sample, bytes, wake))
		cpu->ring_full++;
}

SEC("perf_event")
int sconce_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u32 key = bpf_get_smp_processor_id(), zero = 0;
	struct bpf_cpu *cpu = bpf_map_lookup_elem(&cpus, &key);
	struct scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	int in_kernel = !(ctx->regs.cs & CS_USER_BITS);

	if (!cpu || !s)
		return 0;
	if (!sample_wanted(task)) {
		cpu->filtered++;
		return 0;
	}
	s->sample.cpu = key;
	s->sample.seq = ++cpu->taken;
	sample_header(&s->sample, task, ctx->sample_period);
	if (in_kernel) {
		s->sample.header.flags |= RECORD_IN_KERNEL;
		sample_kernel_stack(s, ctx);
	}
	sample_output(s, cpu, sample_user_stack(s, task, ctx, in_kernel));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
