/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/books.h"

#include <stdatomic.h>
#include <string.h>

static const enum counter stop_counters[STOP_COUNT] = {
    [STOP_COMPLETE] = C_stop_complete,	   [STOP_NO_USER] = C_stop_no_user,
    [STOP_COMPAT32] = C_stop_compat32,	   [STOP_DEFERRED] = C_stop_deferred,
    [STOP_NO_MAPPING] = C_stop_no_mapping, [STOP_NO_ROW] = C_stop_no_row,
    [STOP_BAD_ROW] = C_stop_bad_row,	   [STOP_FRAME_POINTER] = C_stop_frame_pointer,
    [STOP_READ_FAULT] = C_stop_read_fault, [STOP_DEPTH] = C_stop_depth,
    [STOP_STACK_END] = C_stop_stack_end,   [STOP_EXECVE] = C_stop_execve,
    [STOP_REMAPPED] = C_stop_remapped,
};

static struct ledger_writer *books_ledger(struct worker *w)
{
	return &w->child->ledger;
}

/*
 * Where to go on in an input. The instance before may have written anything: it is believed if from
 * there on one record follows another up to the head, which is the sampler's. Otherwise what is there
 * is given up.
 */
static uint64_t books_input(const struct queue *queue, uint64_t committed)
{
	uint64_t head = atomic_load_explicit(&queue->head->head, memory_order_acquire);
	uint64_t at = committed;

	if (head - committed > queue->capacity || (committed & 7))
		return head;
	while (at != head) {
		uint32_t len;

		memcpy(&len, queue->data + (at & (queue->capacity - 1)), sizeof(len));
		if (len < 8 || (len & 7) || len > head - at)
			return head;
		at += len;
	}
	return committed;
}

/* And in the output, of which the tail is the exporter's. */
static uint64_t books_output(const struct queue *queue, uint64_t committed)
{
	uint64_t tail = atomic_load_explicit(&queue->tail->tail, memory_order_acquire);
	uint64_t head = atomic_load_explicit(&queue->head->head, memory_order_relaxed);

	if (committed - tail <= queue->capacity && !(committed & 7))
		return committed;
	return head - tail <= queue->capacity && !(head & 7) ? head : tail;
}

void books_resume(struct worker *w)
{
	struct ledger_entry *now = &books_ledger(w)->now;
	struct ledger *shared = books_ledger(w)->shared;

	w->samples.cursor = w->samples_done =
	    books_input(&w->samples, now->position[WORKER_SAMPLES_TAIL]);
	w->introductions.queue.cursor =
	    books_input(&w->introductions.queue, now->position[WORKER_PROCESS_TAIL]);
	w->output.cursor = books_output(&w->output, now->position[WORKER_OUTPUT_HEAD]);
	queue_publish(&w->output, w->output.cursor);
	queue_release(&w->samples, w->samples.cursor);
	queue_release(&w->introductions.queue, w->introductions.queue.cursor);
	w->suspect = atomic_load_explicit(&shared->attempt_position, memory_order_relaxed);
	w->suspect_attempts = atomic_load_explicit(&shared->attempts, memory_order_relaxed);
	if (w->suspect - w->samples_done > w->samples.capacity)
		w->suspect_attempts = 0;
	/* Begun but not committed: no sample of that epoch has left. */
	if (now->position[WORKER_EPOCH] != w->define.epoch ||
	    now->position[WORKER_EPOCH_BEGAN] > w->output.cursor) {
		now->position[WORKER_EPOCH] = w->define.epoch;
		now->position[WORKER_EPOCH_BEGAN] = w->output.cursor;
		ledger_add(books_ledger(w), C_epochs, 1);
	}
}

void books_count(struct worker *w, enum counter counter)
{
	ledger_add(books_ledger(w), counter, 1);
}

/* Move what a module has counted into the ledger. */
static void books_collect(struct worker *w, enum counter counter, uint64_t *counted)
{
	ledger_add(books_ledger(w), counter, *counted);
	*counted = 0;
}

static uint64_t books_quarantined(const struct ledger *ledger)
{
	uint64_t n = 0;

	for (int i = 0; i < BLAME_FILES; i++)
		n += blame_is_final(&ledger->blame.files[i]);
	return n;
}

void books_commit(struct worker *w)
{
	struct ledger_writer *ledger = books_ledger(w);

	ledger->now.position[WORKER_SAMPLES_TAIL] = w->samples_done;
	ledger->now.position[WORKER_PROCESS_TAIL] = introductions_done(&w->introductions);
	ledger->now.position[WORKER_OUTPUT_HEAD] = w->output.cursor;
	books_collect(w, C_files_indexed, &w->files.indexed);
	books_collect(w, C_files_bad, &w->files.bad);
	books_collect(w, C_symbol_evictions, &w->files.evictions);
	books_collect(w, C_jit_names, &w->jit.names);
	books_collect(w, C_jit_refused, &w->jit.refused);
	books_collect(w, C_jit_evictions, &w->jit.evictions);
	books_collect(w, C_runtimes, &w->runtimes.found);
	books_collect(w, C_runtimes_unknown, &w->runtimes.unknown);
	books_collect(w, C_scripts_named, &w->scripts.named);
	books_collect(w, C_scripts_unnamed, &w->scripts.unnamed);
	books_collect(w, C_scripts_read, &w->scripts.read);
	books_collect(w, C_scripts_reads, &w->scripts.reads);
	books_collect(w, C_scripts_read_ns, &w->scripts.read_ns);
	books_collect(w, C_debug_files, &w->files.others.found);
	books_collect(w, C_debug_files_wrong, &w->files.others.wrong);
	books_collect(w, C_lines_too_large, &w->files.large);
	books_collect(w, C_tables_compiled, &w->tables.compiled);
	books_collect(w, C_tables_none, &w->tables.none);
	books_collect(w, C_tables_dropped, &w->tables.evictions);
	books_collect(w, C_tables_borrowed, &w->peers.borrowed);
	books_collect(w, C_peers_refused, &w->peers.refused);
	books_collect(w, C_reads_uring, &w->reader.reads_uring);
	books_collect(w, C_reads_pread, &w->reader.reads_pread);
	ledger_set(ledger, C_files_open, w->reader.files);
	ledger_set(ledger, C_files_quarantined, books_quarantined(ledger->shared));
	ledger_set(ledger, C_symbol_bytes, files_symbol_bytes(&w->files));
	ledger_set(ledger, C_scripts_memories, w->scripts.memories);
	ledger_set(ledger, C_jit_maps, w->jit.maps + w->jit.dumps.count);
	ledger_set(ledger, C_processes_known, w->processes.table.count);
	ledger_set(ledger, C_rings, w->reader.uring);
	define_publish(&w->define);
	ledger_commit(ledger);
	queue_publish(&w->output, w->output.cursor);
	queue_release(&w->samples, w->samples_done);
	queue_release(&w->introductions.queue, introductions_done(&w->introductions));
	w->dirty = false;
}

bool books_next_epoch(struct worker *w)
{
	struct ledger_entry *now = &books_ledger(w)->now;
	uint64_t tail = atomic_load_explicit(&w->output.tail->tail, memory_order_acquire);

	if (tail < now->position[WORKER_EPOCH_BEGAN])
		return false;
	books_commit(w);
	define_next_epoch(&w->define);
	now->position[WORKER_EPOCH] = w->define.epoch;
	now->position[WORKER_EPOCH_BEGAN] = w->output.cursor;
	books_count(w, C_epochs);
	ledger_commit(books_ledger(w));
	return true;
}

void books_count_sample(struct worker *w, enum record_stop stop, bool walked)
{
	static const enum counter outcomes[FRAME_OUTCOMES] = {
	    [FRAME_NAMED] = C_frames_named,
	    [FRAME_UNNAMED] = C_frames_unnamed,
	    [FRAME_UNKNOWN] = C_frames_unknown,
	};

	books_count(w, C_symbolizer_symbolized);
	books_count(w, stop_counters[stop]);
	if (walked)
		books_count(w, C_walked_outside);
	for (int i = 0; i < FRAME_OUTCOMES; i++)
		ledger_add(books_ledger(w), outcomes[i], w->symbolize.outcomes[i]);
}

bool books_begin(struct worker *w)
{
	struct ledger *shared = books_ledger(w)->shared;
	uint64_t attempts = 1;

	if (w->begun)
		return true;
	if (w->suspect_attempts > 0 && w->suspect == w->samples_done)
		attempts += w->suspect_attempts;
	if (attempts > WORKER_ATTEMPTS_MAX)
		return false;
	atomic_store_explicit(&shared->attempts, 0, memory_order_relaxed);
	atomic_store_explicit(&shared->attempt_position, w->samples_done, memory_order_release);
	atomic_store_explicit(&shared->attempts, attempts, memory_order_release);
	w->begun = true;
	return true;
}

void books_rest(struct worker *w)
{
	atomic_store_explicit(&books_ledger(w)->shared->attempts, 0, memory_order_relaxed);
	w->begun = false;
}

void books_done(struct worker *w)
{
	books_count(w, C_symbolizer_samples);
	w->samples_done = w->samples.cursor;
	w->holding = w->begun = false;
	w->loan_until_ns = 0;
	w->dirty = true;
	/* Up to the suspect every sample is committed alone, so that the next instance starts at
	 * it. */
	if (w->suspect_attempts > 0) {
		if (w->samples_done > w->suspect)
			w->suspect_attempts = 0;
		books_commit(w);
	}
}
