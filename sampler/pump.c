/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One turn: note where the ring buffer ends, then where the side-band ends, then take the samples
 * with all side-band records that are older merged in. In that order every sample finds the forks,
 * execs and mappings that came before it. Of a sample only the fixed header is looked at.
 */
#include "sampler/pump.h"

#include <string.h>
#include <sys/mman.h>

#include "sampler/ranges.h"

#define BATCH_SAMPLES 512

typedef void pump_handler(struct pump *, const union sideband_record *, uint64_t time_ns);

/* False: no file id to be had. */
static bool pump_range(struct files *files, const union sideband_record *r,
		       struct record_range *range)
{
	struct file *file;

	*range = (struct record_range){.start = r->mmap2.start,
				       .end = r->mmap2.start + r->mmap2.len,
				       .offset = r->mmap2.offset};
	if (strcmp(r->mmap2.path, "[vdso]") == 0)
		range->file_id = RECORD_VDSO_FILE_ID;
	else if (r->mmap2.inode == 0 || strncmp(r->mmap2.path, "/memfd:", 7) == 0 ||
		 strncmp(r->mmap2.path, "/dev/zero", 9) == 0)
		range->flags = RANGE_ANON;
	if (range->flags || range->file_id)
		return true;
	file = files_of(files, r->mmap2.dev_major, r->mmap2.dev_minor, r->mmap2.inode,
			r->mmap2.generation, r->mmap2.path);
	range->file_id = file ? file->id : 0;
	return file;
}

static void pump_fork(struct pump *pump, const union sideband_record *r, uint64_t time_ns)
{
	struct process *parent;

	processes_fork(pump->introduce.processes, r->task.pid, r->task.parent_pid, time_ns);
	/* Children that do not live long enough to be asked about have what their parent has. */
	parent = pump->everyone && r->task.pid != r->task.parent_pid
		     ? processes_meet(pump->introduce.processes, r->task.parent_pid, time_ns)
		     : NULL;
	if (parent)
		introduce_ask_ranges(&pump->introduce, parent);
}

static void pump_exit(struct pump *pump, const union sideband_record *r, uint64_t time_ns)
{
	processes_exit(pump->introduce.processes, r->task.pid, r->task.tid, time_ns);
}

static void pump_comm(struct pump *pump, const union sideband_record *r, uint64_t time_ns)
{
	if (r->header.misc & PERF_RECORD_MISC_COMM_EXEC)
		processes_exec(pump->introduce.processes, r->comm.pid, time_ns);
}

static void pump_mmap2(struct pump *pump, const union sideband_record *r, uint64_t time_ns)
{
	struct introduce *in = &pump->introduce;
	struct record_range range;
	struct process *p;

	if (!(r->mmap2.prot & PROT_EXEC) || r->mmap2.start + r->mmap2.len <= r->mmap2.start)
		return;
	if (!pump_range(in->files, r, &range)) {
		ledger_add(in->ledger, C_files_refused, 1);
		return;
	}
	p = processes_map(in->processes, r->mmap2.pid, &range, time_ns);
	if (p && p->introduced)
		introduce_mapping(in, p, &range);
}

static void pump_lost(struct pump *pump, const union sideband_record *r, uint64_t time_ns)
{
	(void)time_ns;
	ledger_add(pump->introduce.ledger, C_sideband_lost, r->lost.records);
	pump->introduce.processes->lost_epoch++;
}

void pump_event(void *arg, const union sideband_record *record, uint64_t time_ns)
{
	static pump_handler *const handlers[PERF_RECORD_MAX] = {
	    [PERF_RECORD_FORK] = pump_fork,   [PERF_RECORD_EXIT] = pump_exit,
	    [PERF_RECORD_COMM] = pump_comm,   [PERF_RECORD_LOST] = pump_lost,
	    [PERF_RECORD_MMAP2] = pump_mmap2,
	};
	struct pump *pump = arg;

	ledger_add(pump->introduce.ledger, C_sideband_records, 1);
	handlers[record->header.type](pump, record, time_ns);
}

static bool pump_sample_valid(const struct record_sample *sample, uint32_t len_bytes)
{
	return len_bytes >= sizeof(*sample) && len_bytes <= RECORD_BYTES_MAX &&
	       (len_bytes & 7) == 0 && sample->header.len_bytes == len_bytes &&
	       sample->header.kind == RECORD_SAMPLE && sample->cpu < LEDGER_CPUS &&
	       sizeof(*sample) +
		       (sample->kernel_frames + sample->user_slots) * sizeof(struct frame) <=
		   len_bytes;
}

/*
 * BPF looked at a slice that is no longer the process's: something was mapped since, perhaps over
 * the very code that ran. The old slice still stands there (TABLES_GRACE_NS): it gives back the pc,
 * and the process, which is as old here as the sample, says what that is. False: BPF went on from
 * there by another file's table.
 */
static bool pump_resolve_frame(const struct processes *t, const struct process *p, uint32_t slice,
			       struct frame *frame)
{
	const struct record_range *old = t->slices.ranges + slice, *now;
	const struct record_range *end = old + slices_room(&t->slices, slice);
	uint64_t back = frame->flags & FRAME_RETURN ? 1 : 0, pc;

	while (old < end && (old->file_id != frame->file_id || frame->addr - back < old->offset ||
			     frame->addr - back - old->offset >= old->end - old->start))
		old++;
	if (frame->kind != FRAME_NATIVE || old == end)
		return true;
	pc = frame->addr - old->offset + old->start;
	now = ranges_at(processes_ranges(t, p), p->n, pc - back);
	frame->kind = now && now->file_id ? FRAME_NATIVE : FRAME_PC;
	frame->file_id = now ? now->file_id : 0;
	frame->addr = frame->file_id ? pc - now->start + now->offset : pc;
	return frame->file_id == old->file_id;
}

static void pump_resolve(const struct processes *processes, const struct process *p,
			 struct record_sample *sample)
{
	struct frame *frame = sample->frames + sample->kernel_frames;
	uint32_t done = 0, n = sample->user_slots;

	if (!p || !p->ranges_known || sample->slice == p->first)
		return;
	while (done < n && pump_resolve_frame(processes, p, sample->slice, &frame[done]))
		done++;
	if (done == n)
		return;
	sample->user_slots = (uint16_t)++done;
	sample->header.len_bytes -= (n - done) * (uint32_t)sizeof(*frame);
	sample->stop = STOP_REMAPPED;
}

static bool pump_pass_on(struct pump *pump, struct queue *queue, const struct process *p,
			 const struct record_sample *sample, uint32_t len_bytes)
{
	struct record_sample *room = queue_reserve(queue, len_bytes);

	if (!room)
		return false;
	memcpy(room, sample, len_bytes);
	pump_resolve(pump->introduce.processes, p, room);
	queue_commit(queue, room->header.len_bytes);
	return true;
}

static void pump_sample(struct pump *pump, const struct record_sample *sample, uint32_t len_bytes)
{
	struct introduce *in = &pump->introduce;
	struct process *p;
	uint64_t *last;

	if (!pump_sample_valid(sample, len_bytes)) {
		ledger_add(in->ledger, C_lost_sampler_bad_record, 1);
		return;
	}
	last = &in->ledger->now.last_seq[sample->cpu];
	if (sample->seq <= *last) {
		ledger_add(in->ledger, C_sampler_duplicates, 1);
		return;
	}
	ledger_add(in->ledger, C_sampler_gaps, sample->seq - *last - 1);
	*last = sample->seq;
	sideband_apply(&pump->sideband, sample->time_ns);
	p = processes_sample(in->processes, sample);
	if (p)
		introduce_for_sample(in, p, sample);
	if (pump_pass_on(pump, &in->workers->worker[worker_of(sample->pid, in->workers->n)].samples,
			 p, sample, len_bytes))
		ledger_add(in->ledger, C_sampler_samples, 1);
	else
		ledger_add(in->ledger, C_lost_sampler_queue_full, 1);
}

static void pump_count(struct pump *pump)
{
	struct introduce *in = &pump->introduce;
	struct bpf_cpu sum = {0};

	for (uint32_t i = 0; i < pump->cpus_n; i++) {
		const volatile struct bpf_cpu *cpu = &pump->cpus[i];

		sum.taken += cpu->taken;
		sum.ring_full += cpu->ring_full;
		sum.filtered += cpu->filtered;
	}
	ledger_set(in->ledger, C_taken, sum.taken);
	ledger_set(in->ledger, C_lost_bpf_ring_full, sum.ring_full);
	ledger_set(in->ledger, C_filtered, sum.filtered);
	ledger_set(in->ledger, C_processes, in->processes->n);
	ledger_set(in->ledger, C_ranges, in->processes->slices.used * SLICES_BLOCK);
	ledger_set(in->ledger, C_files, in->files->n);
	ledger_add(in->ledger, C_processes_refused, in->processes->refused);
	ledger_add(in->ledger, C_ranges_refused, in->processes->ranges_refused);
	in->processes->refused = in->processes->ranges_refused = 0;
}

void pump_commit(struct pump *pump)
{
	struct introduce *in = &pump->introduce;

	pump_count(pump);
	workers_store(in->workers, in->ledger);
	in->ledger->now.position[POSITION_RING] = pump->ring.cursor;
	in->ledger->now.position[POSITION_FILE_ID] = in->files->last_id;
	ledger_commit(in->ledger);
	/* From here on the batch has happened; a restart repeats these from the ledger. */
	workers_publish(in->workers);
	ring_release(&pump->ring);
	files_committed(in->files);
}

bool pump_turn(struct pump *pump, uint64_t now_ns)
{
	uint32_t len_bytes, batch = 0;
	const void *record;
	bool empty;

	pump->introduce.now_ns = now_ns;
	empty = !sideband_begin(&pump->sideband, now_ns) && pump->ring.cursor == pump->ring.end;
	while ((record = ring_next(&pump->ring, &len_bytes))) {
		pump_sample(pump, record, len_bytes);
		if (++batch % BATCH_SAMPLES == 0)
			pump_commit(pump);
	}
	sideband_apply(&pump->sideband, UINT64_MAX);
	return empty;
}
