/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/worker.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "shm/unread.h"
#include "symbolizer/ahead.h"
#include "symbolizer/books.h"
#include "symbolizer/crash.h"
#include "symbolizer/filenames.h"
#include "symbolizer/view.h"
#include "symbolizer/walk.h"

#define BATCH_SAMPLES	  256
#define BATCH_NS	  200000000ull /* each may need a new file: turns are our sign of life */
#define MESSAGES_PER_TURN 256
#define SLEEP_MS	  100
#define PEERS_SLEEP_MS	  20 /* one of them may wait for us */
#define WAIT_STEP_MS	  5
#define PROCESS_WAIT_NS	  100000000ull
#define DRAIN_NS	  4000000000ull /* a second less than the supervisor gives us (drain.c) */

/* --- Opening. --- */

static int worker_open_queues(struct worker *w)
{
	int err = queue_open_consumer(&w->samples, FD_SYMBOLIZER_SAMPLES_OWN,
				      FD_SYMBOLIZER_SAMPLES_OTHER);

	if (err == 0)
		err = queue_open_consumer(&w->introductions.queue, FD_SYMBOLIZER_PROCESS_OWN,
					  FD_SYMBOLIZER_PROCESS_OTHER);
	if (err == 0)
		err = queue_open_producer(&w->output, FD_SYMBOLIZER_OUTPUT_OWN,
					  FD_SYMBOLIZER_OUTPUT_OTHER);
	return err;
}

int worker_open(struct worker *w, struct child *child)
{
	const struct config *config = child->config;
	int err;

	memset(w, 0, sizeof(*w));
	w->child = child;
	w->introductions.processes = &w->processes;
	w->introductions.files = &w->files;
	err = worker_open_queues(w);
	if (err == 0)
		err = define_open(&w->define, FD_SYMBOLIZER_LOG, FD_SYMBOLIZER_LOG + 1);
	if (err)
		return err;
	channel_init(&w->sampler, FD_SYMBOLIZER_SAMPLER, ROLE_SYMBOLIZER, ROLE_SAMPLER, true);
	channel_init(&w->broker, FD_SYMBOLIZER_BROKER, ROLE_SYMBOLIZER, ROLE_BROKER, true);
	reader_open(&w->reader, true);
	kallsyms_open(&w->kallsyms, FD_SYMBOLIZER_KALLSYMS, FD_SYMBOLIZER_MODULES);
	err = files_open(&w->files, &w->reader, &w->sampler, config->symbol_bytes);
	w->files.blame = w->files.others.blame = &child->ledger.shared->blame;
	w->reader.waits = &w->files.blame->reading;
	blame_resume(w->files.blame, config->stuck_ms);
	crash_open(&w->files.blame->crashed);
	filetable_open(&w->tables, &w->files, &w->sampler, config->unwind_bytes);
	w->tables.runtimes = &w->runtimes;
	w->runtimes.ledger = child->ledger.shared;
	unread_clear(w->runtimes.ledger);
	peers_open(&w->peers, &w->tables, config->workers,
		   (uint32_t)(child->slot - ROLE_SYMBOLIZER));
	if (err == 0)
		err = processes_open(&w->processes, config->processes_max, config->ranges_max);
	if (err == 0)
		err = jit_open(&w->jit, &w->files, &w->sampler,
			       config->symbol_bytes / JIT_SHARE);
	if (err == 0)
		err = scripts_open(&w->scripts, &w->runtimes, &w->files, &w->sampler,
				   config->symbol_bytes / SCRIPTS_SHARE);
	if (err == 0)
		err = symbolize_open(&w->symbolize, &w->define, &w->files, &w->kallsyms,
				     config->runtime.kernel_build_id, &w->jit, &w->scripts);
	if (err)
		return err;
	patience_init(&w->patience, child_now_ns());
	books_resume(w);
	return 0;
}

void worker_close(struct worker *w)
{
	symbolize_close(&w->symbolize);
	scripts_close(&w->scripts);
	jit_close(&w->jit);
	processes_close(&w->processes);
	files_close(&w->files);
	kallsyms_close(&w->kallsyms);
	reader_close(&w->reader);
	define_close(&w->define);
	queue_close(&w->output);
	queue_close(&w->introductions.queue);
	queue_close(&w->samples);
}

/* There may be no room, because of all that was said here before: before it is heard nothing goes on. */
static void worker_introduce(struct worker *w)
{
	struct message_need_file all = {.file_id = 0};
	struct pollfd fd = {.fd = w->sampler.fd, .events = POLLOUT};

	w->introduced =
	    channel_send(&w->sampler, MESSAGE_NEED_FILE, &all, NULL, 0) != -EAGAIN;
	if (!w->introduced)
		poll(&fd, 1, SLEEP_MS);
}

/* --- Input other than samples. --- */

static void worker_broken(struct worker *w, int slot, int err)
{
	child_report(w->child, slot, -err);
	w->broken = true;
}

static void worker_on_broker(struct worker *w, const struct message *message, int *fds,
			     size_t fds_n)
{
	if (message->type == MESSAGE_PROCESS_INFO)
		processes_info(&w->processes, &message->process_info);
	if (message->type == MESSAGE_FILE) {
		files_message(&w->files, &message->file, fds_n ? fds[0] : -1);
		fds[0] = -1;
	}
	if (message->type == MESSAGE_OTHER) {
		int fd = fds_n ? fds[0] : -1;

		if (message->other.need.kind == OTHER_PERF_MAP)
			jit_message(&w->jit, &message->other, fd);
		else if (message->other.need.kind == OTHER_MEM)
			scripts_message(&w->scripts, &message->other, fd);
		else
			files_other(&w->files, &message->other, fd);
		fds[0] = -1;
	}
	for (size_t i = 0; i < fds_n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void worker_channels(struct worker *w)
{
	struct message message;
	int fds[MESSAGE_FDS_MAX];
	size_t fds_n;
	int err = 0;

	for (int i = 0; i < MESSAGES_PER_TURN; i++) {
		fds_n = 0;
		err = channel_recv(&w->broker, &message, fds, &fds_n);
		if (err)
			break;
		worker_on_broker(w, &message, fds, fds_n);
	}
	if (err == -EPROTO)
		worker_broken(w, ROLE_BROKER, err);
	/* The sampler has nothing to say on its channel. */
	if (channel_recv(&w->sampler, &message, NULL, NULL) == -EPROTO)
		worker_broken(w, ROLE_SAMPLER, -EPROTO);
}

static void worker_introductions(struct worker *w)
{
	int taken;

	w->processes.head = atomic_load_explicit(&w->samples.head->head, memory_order_acquire);
	taken = introductions_take(&w->introductions, w->samples_done);
	w->dirty |= taken > 0;
	if (taken < 0)
		worker_broken(w, ROLE_SAMPLER, taken);
}

/* --- One sample. --- */

static bool worker_may_wait(struct worker *w, uint64_t *until_ns, bool *over, uint64_t for_ns)
{
	/* Behind a queue that runs full nothing waits. */
	return queue_used(&w->samples) <= w->samples.capacity / 2 &&
	       patience_allows(&w->patience, child_now_ns(),
			       w->processes.arrivals + w->files.arrivals, until_ns, over, for_ns);
}

static bool worker_wait_for_process(struct worker *w, const struct view *view,
				    struct process *process)
{
	bool needs_ranges =
	    view->deferred && process_ranges_may_come(process, view->record->exec_id);
	bool needs_info = !process->info_known && !process->exited;

	if (view->record->stop == STOP_NO_USER || (process->flags & PROCESS_GONE) ||
	    (!needs_ranges && !needs_info))
		return false;
	/* A stack is worth more than to know whose it is. */
	if (!needs_ranges && !patience_ample(&w->patience))
		return false;
	if (!worker_may_wait(w, &process->wait_until_ns, &process->waited, PROCESS_WAIT_NS))
		return false;
	w->wants_ranges = needs_ranges;
	return true;
}

/* Ask for what the frames point into; true when one of the files is worth waiting for. */
static bool worker_wait_for_files(struct worker *w, const struct frame *frames, uint32_t n)
{
	uint32_t last = 0;
	bool wait = false;

	for (uint32_t i = 0; i < n; i++) {
		struct file *file;

		if (frames[i].kind != FRAME_NATIVE || frames[i].file_id == 0 ||
		    frames[i].file_id == last)
			continue;
		last = frames[i].file_id;
		file = files_get(&w->files, last);
		if (file_is_known(file)) {
			if (filenames_pending(&w->files, file) &&
			    worker_may_wait(w, &file->others->wait_until_ns, &file->others->waited,
					    FILES_WAIT_NS))
				wait = true;
			continue;
		}
		files_need(&w->files, file, child_now_ns());
		if (!file->received &&
		    worker_may_wait(w, &file->wait_until_ns, &file->waited, FILES_WAIT_NS))
			wait = true;
	}
	return wait;
}

/* The names of what a process made may be on their way: it is asked for them when it is first seen. */
static bool worker_wait_for_map(struct worker *w, const struct process *process,
				const struct frame *frames, uint32_t n)
{
	struct jit_process *p;
	uint32_t i = 0;

	while (i < n && !(frames[i].flags & FRAME_ANON))
		i++;
	p = i < n ? jit_begin(&w->jit, process) : NULL;
	return p && patience_ample(&w->patience) &&
	       worker_may_wait(w, &p->wait_until_ns, &p->waited, PROCESS_WAIT_NS);
}

/* Names of scripts are read out of the memory of the process, which is asked for likewise. */
static bool worker_wait_for_memory(struct worker *w, const struct process *process,
				   const struct frame *frames, uint32_t n)
{
	struct scripts_process *p;
	uint32_t i = 0;

	while (i < n && (frames[i].kind != FRAME_SCRIPT || !frames[i].addr))
		i++;
	p = i < n ? scripts_begin(&w->scripts, process, frames[i].file_id) : NULL;
	return p && patience_ample(&w->patience) &&
	       worker_may_wait(w, &p->wait_until_ns, &p->waited, PROCESS_WAIT_NS);
}

/* The walk came to a file that is not here: ask for it, and wait if that makes sense. */
static bool worker_wait_for_table(struct worker *w)
{
	struct file *file = w->tables.missing;

	w->borrowing = file && file->borrow_until_ns > w->tables.now_ns;
	if (w->borrowing && w->loan_until_ns == 0)
		w->loan_until_ns = w->tables.now_ns + PEERS_WAIT_NS;
	/* Several owners that never answer would make this worker look stuck. */
	if (w->borrowing && w->tables.now_ns >= w->loan_until_ns)
		peers_give_up(file);
	if (!file || w->borrowing)
		return w->borrowing;
	files_need(&w->files, file, child_now_ns());
	return !file->received &&
	       worker_may_wait(w, &file->wait_until_ns, &file->waited, FILES_WAIT_NS);
}

/* The user frames of a deferred sample. One that cannot be walked still shows where it stood. */
static uint32_t worker_walk(struct worker *w, struct view *view, const struct process *process,
			    struct frame *frames, enum record_stop *stop)
{
	uint32_t n;

	if (process_ranges_hold(process, view->record->exec_id)) {
		n = walk_stack(process->ranges, process->ranges_n, &view->regs, view->stack,
			       view->record->stack_bytes, &w->tables, frames, stop);
		if (*stop == STOP_STACK_END && !w->tables.missing)
			ahead_stack(&w->tables, process);
		return n;
	}
	w->tables.missing = NULL;
	frames[0] = (struct frame){.kind = FRAME_PC, .addr = view->regs.pc};
	return 1;
}

static int worker_stack(struct worker *w, const struct view *view, const struct process *process,
			const struct frame *user, uint32_t user_n, uint32_t *stack)
{
	int err = 0;

	symbolize_begin(&w->symbolize, view->record->time_ns);
	for (uint32_t i = 0; i < view->record->kernel_frames && !err; i++)
		err = symbolize_frame(&w->symbolize, process, &view->record->frames[i], NULL);
	for (uint32_t i = 0; i < user_n && !err; i++)
		err = symbolize_frame(&w->symbolize, process, &user[i],
				      i + 1 < user_n ? &user[i + 1] : NULL);
	*stack = err ? 0 : symbolize_end(&w->symbolize);
	return *stack ? 0 : -ENOSPC;
}

static int worker_output(struct worker *w, const struct record_sample *r, uint32_t process,
			 uint32_t stack, enum record_stop stop)
{
	struct symbol_sample out = {
	    .header = {.len_bytes = sizeof(out), .kind = SYMBOL_SAMPLE},
	    .epoch = w->define.epoch,
	    .cpu = r->cpu,
	    .seq = r->seq,
	    .time_ns = r->time_ns,
	    .period_ns = r->period_ns,
	    .process = process,
	    .stack = stack,
	    .pid = r->pid,
	    .tid = r->tid,
	    .stop = (uint8_t)stop,
	};

	memcpy(out.comm, r->comm, sizeof(out.comm));
	return queue_push(&w->output, &out, sizeof(out));
}

static int worker_define(struct worker *w, const struct view *view, struct process *process,
			 const struct frame *user, uint32_t user_n, uint32_t *process_id,
			 uint32_t *stack_id)
{
	for (int attempt = 0; attempt < 2; attempt++) {
		*process_id = symbolize_process(&w->symbolize, process);
		if (*process_id && worker_stack(w, view, process, user, user_n, stack_id) == 0)
			return 0;
		if (!books_next_epoch(w))
			break;
	}
	return -ENOSPC;
}

/* Do the sample at work. False: it has to wait. */
static bool worker_sample(struct worker *w)
{
	static struct frame walked[RECORD_USER_FRAMES_MAX];
	struct view view;
	struct process *process;
	const struct frame *user;
	enum record_stop stop;
	uint32_t user_n, process_id, stack_id;
	int err;

	if (!view_open(&view, w->sample_buf)) {
		books_count(w, C_lost_symbolizer_bad_record);
		return true;
	}
	process = processes_get(&w->processes, view.record->pid, view.record->start_ns);
	if (worker_wait_for_process(w, &view, process))
		return false;
	stop = (enum record_stop)view.record->stop;
	user = view.deferred ? walked : view.user;
	user_n =
	    view.deferred ? worker_walk(w, &view, process, walked, &stop) : view.record->user_slots;
	if ((view.deferred && worker_wait_for_table(w)) ||
	    worker_wait_for_files(w, user, user_n) ||
	    worker_wait_for_map(w, process, user, user_n) ||
	    worker_wait_for_memory(w, process, user, user_n))
		return false;
	if (process_ranges_hold(process, view.record->exec_id))
		ahead_frames(&w->tables, process, user, user_n, view.deferred);
	process_name(process, view.record->comm, view.record->pid == view.record->tid);
	if (worker_define(w, &view, process, user, user_n, &process_id, &stack_id)) {
		books_count(w, C_lost_symbolizer_log_full);
		return true;
	}
	err = worker_output(w, view.record, process_id, stack_id, stop);
	if (err == -EPROTO)
		worker_broken(w, ROLE_EXPORTER, err);
	if (err)
		books_count(w, C_lost_symbolizer_queue_full);
	else
		books_count_sample(w, stop, view.deferred && stop != STOP_DEFERRED);
	w->child->ledger.now.last_seq[view.record->cpu] = view.record->seq;
	return true;
}

/* --- The batch. --- */

/* Take the next sample to work. False when there is none. */
static bool worker_take(struct worker *w)
{
	long len;

	if (w->holding)
		return true;
	len = queue_next(&w->samples, w->sample_buf, sizeof(w->sample_buf));
	if (len < 0)
		worker_broken(w, ROLE_SAMPLER, (int)len);
	/* A record shorter than a sample leaves the rest of the buffer as it was: view checks. */
	w->holding = len > 0;
	return w->holding;
}

/* At the end, what there is no time for is lost by name, or it would be left in the queue. */
static bool worker_out_of_time(const struct worker *w)
{
	if (!w->drain_end_ns)
		return false;
	/* One that was at work when another worker was ended is not begun again. */
	return child_now_ns() >= w->drain_end_ns ||
	       (w->suspect_attempts > 0 && w->suspect == w->samples_done);
}

static uint32_t worker_batch(struct worker *w)
{
	uint64_t end_ns = child_now_ns() + BATCH_NS;
	uint32_t done = 0;

	w->waiting = w->borrowing = false;
	while (done < BATCH_SAMPLES && !w->broken && child_now_ns() < end_ns && worker_take(w)) {
		worker_introductions(w);
		if (worker_out_of_time(w)) {
			books_count(w, C_lost_symbolizer_no_time);
		} else if (!books_begin(w)) {
			books_count(w, C_lost_symbolizer_poison);
		} else if (!worker_sample(w)) {
			w->waiting = true;
			break;
		}
		books_done(w);
		done++;
	}
	return done;
}

static void worker_wait_step(struct worker *w)
{
	struct pollfd fd = {.fd = w->broker.fd, .events = POLLIN};
	uint64_t before = child_now_ns();

	poll(&fd, 1, WAIT_STEP_MS);
	/* What another worker makes would have taken this one as long. */
	if (!w->borrowing)
		patience_spend(&w->patience, child_now_ns() - before);
}

bool worker_turn(struct worker *w)
{
	uint32_t done;
	bool empty;

	if (!w->introduced)
		worker_introduce(w);
	if (!w->introduced)
		return true;
	w->tables.now_ns = child_now_ns();
	/* At the end there is only so much time for all that is there. */
	if (!w->child->draining)
		patience_earn(&w->patience, w->tables.now_ns);
	else if (w->drain_end_ns == 0)
		w->drain_end_ns = w->tables.now_ns + DRAIN_NS;
	jit_turn(&w->jit, &w->processes, w->tables.now_ns);
	scripts_turn(&w->scripts, &w->processes, w->tables.now_ns);
	worker_channels(w);
	others_turn(&w->files.others, w->tables.now_ns);
	peers_turn(&w->peers, w->tables.now_ns);
	worker_introductions(w);
	if (w->wants_ranges)
		introductions_look_ahead(&w->introductions, (const void *)w->sample_buf);
	w->wants_ranges = false;
	done = worker_batch(w);
	books_rest(w);
	processes_sweep(&w->processes, w->samples_done);
	if (kallsyms_refresh(&w->kallsyms, child_now_ns()))
		symbolize_forget_kernel(&w->symbolize);
	if (w->dirty)
		books_commit(w);
	if (w->broken)
		return false;
	empty = !w->holding && done < BATCH_SAMPLES;
	if (w->child->draining && empty && queue_used(&w->samples) == 0 &&
	    queue_used(&w->introductions.queue) == 0)
		child_drained(w->child);
	if (w->waiting)
		worker_wait_step(w);
	else if (empty)
		queue_wait(&w->samples, w->peers.n > 1 ? PEERS_SLEEP_MS : SLEEP_MS);
	return true;
}
