/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a worker is told: its process queue, samples, messages of the broker and of
 * other workers. Everything but names of files, which other targets have.
 *
 *   u16 bytes of process queue | u16 bytes of a sample | the two | packets; of odd number: of a
 * worker
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolizer/filetable.h"
#include "symbolizer/introductions.h"
#include "symbolizer/peers.h"
#include "symbolizer/view.h"
#include "symbolizer/walk.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/packets.h"

#define QUEUE_BYTES QUEUE_CAPACITY_MIN
#define PID	    10
#define START	    1000

const unsigned fuzz_mutations = 1500;

static struct {
	struct queue_segments segments;
	struct queue_head *head;
	struct queue_tail *tail;
	struct reader reader;
	struct introductions introductions;
	struct processes processes;
	struct files files;
	struct filetables tables;
	struct peers peers;
	struct channel sampler, broker;
	int sampler_fd, broker_fd, peer_fd; /* the other ends */
	int pairs[3][2];
} self;

static void open_once(void)
{
	if (queue_create(&self.segments, "fuzz", QUEUE_BYTES))
		abort();
	self.head = segment_map(self.segments.producer.rw, SEGMENT_PAGE + QUEUE_BYTES, 1);
	self.tail = segment_map(self.segments.consumer.rw, SEGMENT_PAGE, 1);
	reader_open(&self.reader, false);
}

static void begin(void)
{
	for (int i = 0; i < 3; i++)
		if (channel_pair(self.pairs[i]))
			abort();
	channel_init(&self.sampler, self.pairs[0][0], ROLE_SYMBOLIZER, ROLE_SAMPLER, true);
	channel_init(&self.broker, self.pairs[1][0], ROLE_SYMBOLIZER, ROLE_BROKER, true);
	if (processes_open(&self.processes, 64, 1024) ||
	    files_open(&self.files, &self.reader, &self.sampler, 1 << 20))
		abort();
	filetable_open(&self.tables, &self.files, &self.sampler, 1 << 20);
	peers_open(&self.peers, &self.tables, 2, 0);
	channel_init(&self.peers.peer[1].channel, self.pairs[2][0], ROLE_SYMBOLIZER,
		     ROLE_SYMBOLIZER, true);
	memset(&self.introductions, 0, sizeof(self.introductions));
	self.introductions.processes = &self.processes;
	self.introductions.files = &self.files;
}

static void end(void)
{
	processes_close(&self.processes);
	files_close(&self.files);
	for (int i = 0; i < 3; i++) {
		packets_discard(self.pairs[i][0]);
		packets_discard(self.pairs[i][1]);
		close(self.pairs[i][0]);
		close(self.pairs[i][1]);
	}
}

/* Ranges are sorted and do not overlap, whatever was told. */
static void check_ranges(void)
{
	struct process *p = lru_oldest(&self.processes.table);

	for (; p; p = lru_newer(&self.processes.table, &p->node))
		for (uint32_t i = 0; i < p->ranges_n; i++)
			if (p->ranges[i].start >= p->ranges[i].end ||
			    (i && p->ranges[i - 1].end > p->ranges[i].start))
				abort();
}

static void tell(const uint8_t *data, size_t n, const struct record_sample *sample)
{
	atomic_store(&self.tail->tail, 0);
	atomic_store(&self.head->head, n & ~7ul);
	memcpy((char *)self.head + SEGMENT_PAGE, data, n);
	if (queue_open_consumer(&self.introductions.queue, self.segments.consumer.rw,
				self.segments.producer.ro))
		abort();
	introductions_look_ahead(&self.introductions, sample);
	for (uint64_t at = 0; at < 4; at++)
		introductions_take(&self.introductions, at < 3 ? at : UINT64_MAX);
	check_ranges();
	queue_close(&self.introductions.queue);
}

static void take_sample(const void *record)
{
	static struct frame frames[RECORD_USER_FRAMES_MAX];
	struct process *process;
	enum record_stop stop;
	struct view view;

	if (!view_open(&view, record))
		return;
	process = processes_get(&self.processes, view.record->pid, view.record->start_ns);
	if (!process)
		return;
	for (uint32_t i = 0; !view.deferred && i < view.record->user_slots; i++)
		process_find_range(process, view.user[i].addr);
	self.tables.missing = NULL;
	if (view.deferred)
		walk_stack(process->ranges, process->ranges_n, &view.regs, view.stack,
			   view.record->stack_bytes, &self.tables, frames, &stop);
}

static void hear(struct packets *packets)
{
	static struct message message;
	int fds[MESSAGE_FDS_MAX];
	size_t n;

	for (int i = 0; packets_send(packets, self.pairs[i % 2 ? 2 : 1][1]); i++) {
		n = 0;
		if (i % 2)
			peers_turn(&self.peers, 1000000000000ull);
		else if (channel_recv(&self.broker, &message, fds, &n) == 0) {
			if (message.type == MESSAGE_PROCESS_INFO)
				processes_info(&self.processes, &message.process_info);
			if (message.type == MESSAGE_FILE) {
				files_message(&self.files, &message.file, n ? fds[0] : -1);
				fds[0] = -1;
			}
			for (size_t k = 0; k < n; k++)
				if (fds[k] >= 0)
					close(fds[k]);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t record[RECORD_BYTES_MAX / 8];
	struct packets packets = {.end = data + size};
	size_t queue_n, sample_n;

	if (size < 4)
		return 0;
	if (!self.head)
		open_once();
	begin();
	queue_n = data[0] | (size_t)data[1] << 8;
	sample_n = data[2] | (size_t)data[3] << 8;
	queue_n = queue_n < size - 4 ? queue_n : size - 4;
	sample_n = sample_n < size - 4 - queue_n ? sample_n : size - 4 - queue_n;
	sample_n = sample_n < sizeof(record) ? sample_n & ~7ul : sizeof(record);
	memset(record, 0, sizeof(struct record_sample));
	memcpy(record, data + 4 + queue_n, sample_n);
	/* What queue_next() makes sure of. */
	memcpy(record, &(uint32_t){(uint32_t)sample_n}, 4);
	tell(data + 4, queue_n, (const void *)record);
	packets.at = data + 4 + queue_n + sample_n;
	hear(&packets);
	if (sample_n >= 8)
		take_sample(record);
	end();
	return 0;
}

static size_t add(uint8_t *data, size_t at, const void *bytes, size_t n)
{
	memcpy(data + at, bytes, n);
	return at + n;
}

static size_t seed_queue(uint8_t *data, size_t at, bool pending)
{
	struct record_file file = {
	    .header = {sizeof(file), RECORD_FILE, 0}, .file_id = 1, .inode = 5, .path = "/bin/a"};
	struct record_process process = {.header = {sizeof(process), RECORD_PROCESS, 0},
					 .pid = PID,
					 .start_lo_ns = START,
					 .start_hi_ns = START,
					 .exec_id = 3,
					 .flags = pending ? PROCESS_PENDING : 0,
					 .mappings = 3};
	struct record_mapping mapping = {
	    .header = {sizeof(mapping), RECORD_MAPPING, 0}, .pid = PID, .after = 1};
	struct record_exit gone = {
	    .header = {sizeof(gone), RECORD_EXIT, 0}, .pid = PID, .time_ns = 2 * START};

	at = add(data, at, &file, sizeof(file));
	at = add(data, at, &process, sizeof(process));
	for (uint64_t i = 0; i < 3; i++) {
		mapping.range =
		    (struct record_range){0x1000 * (i + 1), 0x1000 * (i + 2), 0, (uint32_t)i, 0};
		at = add(data, at, &mapping, sizeof(mapping));
	}
	/* Into the middle of one, and over two. */
	mapping.range = (struct record_range){0x1400, 0x1800, 0, 2, 0};
	at = add(data, at, &mapping, sizeof(mapping));
	mapping.range = (struct record_range){0x1700, 0x2100, 0, 1, RANGE_ANON};
	at = add(data, at, &mapping, sizeof(mapping));
	return add(data, at, &gone, sizeof(gone));
}

static size_t seed_sample(uint8_t *data, size_t at, bool deferred)
{
	struct record_sample sample = {
	    .pid = PID, .tid = PID, .seq = 1, .start_ns = START, .exec_id = 3};
	struct frame frames[2] = {{.kind = FRAME_KERNEL, .addr = 0xffffffff81000000},
				  {.kind = FRAME_NATIVE, .file_id = 1, .addr = 0x100}};
	struct record_regs regs = {.pc = 0x1010, .sp = 0x7000, .fp = 0x7010};
	uint64_t stack[8] = {0x7020, 0x1020, 0x7030, 0x2020, 0x7040, 0x3020};

	sample.kernel_frames = 1;
	sample.user_slots = deferred ? 0 : 1;
	sample.stop = deferred ? STOP_DEFERRED : STOP_COMPLETE;
	sample.stack_bytes = deferred ? sizeof(stack) : 0;
	sample.header.kind = RECORD_SAMPLE;
	sample.header.flags = deferred ? RECORD_HAS_STACK : 0;
	at = add(data, at, &sample, sizeof(sample));
	at = add(data, at, frames, sizeof(frames[0]) * (deferred ? 1 : 2));
	if (!deferred)
		return at;
	at = add(data, at, &regs, sizeof(regs));
	return add(data, at, stack, sizeof(stack));
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	static struct message_process_info info = {.pid = PID,
						   .cgroup_bytes = 30,
						   .start_lo_ns = START,
						   .start_hi_ns = START,
						   .executable = "/bin/a",
						   .cgroup = "0::/system.slice/a.service\n"};
	static uint8_t lent[sizeof(struct message_table) + 200];
	struct message_file file = {.file_id = 1, .key = {1, 5, 100, 7}, .path = "/bin/a"};
	struct message_need_file want = {.file_id = 1};
	struct message_table table = {.file_id = 1, .bytes = 60};
	size_t at, queue_n;

	if (n >= 4)
		return 0;
	at = seed_queue(data, 4, n & 1);
	queue_n = at - 4;
	at = seed_sample(data, at, n & 2);
	data[0] = (uint8_t)queue_n;
	data[1] = (uint8_t)(queue_n >> 8);
	data[2] = (uint8_t)(at - 4 - queue_n);
	data[3] = (uint8_t)((at - 4 - queue_n) >> 8);
	memcpy(lent, &table, sizeof(table));
	at = packets_add(data, at, MESSAGE_PROCESS_INFO, &info, 700, 0);
	at = packets_add(data, at, MESSAGE_WANT_TABLE, &want, sizeof(want), 0);
	at = packets_add(data, at, MESSAGE_FILE, &file, sizeof(file), 1);
	at = packets_add(data, at, MESSAGE_LEND_TABLE, lent, sizeof(lent), 1);
	at = packets_add(data, at, MESSAGE_FILE, &file, sizeof(file), 0);
	return packets_add(data, at, MESSAGE_LEND_NONE, &table, sizeof(table), 0);
}
