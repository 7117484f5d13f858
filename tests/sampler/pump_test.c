/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole way from rings to queues: the kernel's rings are memfds that the test fills, queues,
 * ledger and channels are the real ones, broker and worker are played by the test.
 */
#define _GNU_SOURCE
#include "sampler/pump.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/fds.h"
#include "sampler/inbox.h"
#include "sampler/tables.h"

#define S	  1000000000ull
#define RING	  1048576u
#define PAGES	  4u
#define SIDEBANDS 2
#define BASE	  200 /* fds of the workers */
#define QUEUE	  QUEUE_CAPACITY_MIN

/* What lives longer than a sampler. */
static struct {
	int ring_fd, sideband_fd[SIDEBANDS], broker_fd[2], worker_fd[2];
	char *ring, *sideband[SIDEBANDS];
	struct segment ledger;
	struct queue_segments samples, process;
	struct queue samples_in, process_in; /* the worker's side */
	struct channel broker, worker;	     /* the other ends */
	struct bpf_cpu cpus[2];
	struct record_range ranges[4096];
	struct bpf_file files[TABLES_FILES_MAX + 1];
	uint64_t seq[2];
} world;

/* A sampler. */
static struct {
	struct pump pump;
	struct inbox inbox;
	struct processes processes;
	struct files files;
	struct workers workers;
	struct store store;
	struct ledger_writer ledger;
} self;

static uint64_t now = 1000 * S;

static int memory(size_t bytes, char **map)
{
	int fd = memfd_create("test", 0);

	assert_return_code(ftruncate(fd, (off_t)bytes), 0);
	*map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return fd;
}

/* What main does above the sandbox. */
static void sampler_start(void)
{
	struct introduce *in = &self.pump.introduce;

	memset(&self, 0, sizeof(self));
	assert_int_equal(ledger_open(&self.ledger, world.ledger.rw), 0);
	tables_clear();
	processes_init(&self.processes, 64, world.ranges, 4096, world.files);
	files_init(&self.files, (uint32_t)self.ledger.now.position[POSITION_FILE_ID]);
	assert_int_equal(workers_open(&self.workers, 1, BASE, &self.ledger), 0);
	assert_int_equal(ring_open(&self.pump.ring, world.ring_fd, RING), 0);
	ring_resume(&self.pump.ring, self.ledger.now.position[POSITION_RING]);
	for (int i = 0; i < SIDEBANDS; i++)
		assert_int_equal(sideband_open(&self.pump.sideband, world.sideband_fd[i], PAGES),
				 0);
	self.pump.sideband.handle = pump_event;
	self.pump.sideband.arg = &self.pump;
	self.pump.cpus = world.cpus;
	self.pump.cpus_n = 2;
	in->ledger = &self.ledger;
	in->processes = &self.processes;
	in->files = &self.files;
	in->workers = &self.workers;
	channel_init(&in->broker, world.broker_fd[0], ROLE_SAMPLER, ROLE_BROKER, true);
	self.inbox.introduce = in;
	self.inbox.store = &self.store;
	self.store.files = world.files;
	self.processes.on_forget = introduce_exit;
	self.processes.arg = in;
	processes_sweep(&self.processes, now);
}

/* Nothing is written that a kill would not leave as it is. */
static void sampler_kill(void)
{
	struct worker *w = &self.workers.worker[0];

	munmap(self.pump.ring.consumer, 4096);
	munmap((void *)(uintptr_t)self.pump.ring.producer, 4096 + 2 * RING);
	for (int i = 0; i < SIDEBANDS; i++)
		munmap(self.pump.sideband.ring[i].meta, (1 + PAGES) * 4096);
	queue_close(&w->samples);
	queue_close(&w->process);
	munmap(self.ledger.shared, LEDGER_BYTES);
}

static int setup(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	world.ring_fd = memory(2 * 4096 + 2 * RING, &world.ring);
	for (int i = 0; i < SIDEBANDS; i++)
		world.sideband_fd[i] = memory((1 + PAGES) * 4096, &world.sideband[i]);
	assert_int_equal(ledger_create(&world.ledger, "ledger"), 0);
	assert_int_equal(queue_create(&world.samples, "samples", QUEUE), 0);
	assert_int_equal(queue_create(&world.process, "process", QUEUE), 0);
	assert_int_equal(channel_pair(world.broker_fd), 0);
	assert_int_equal(channel_pair(world.worker_fd), 0);
	dup2(world.worker_fd[0], BASE + FD_SAMPLER_CHANNEL);
	dup2(world.samples.producer.rw, BASE + FD_SAMPLER_SAMPLES_OWN);
	dup2(world.samples.consumer.ro, BASE + FD_SAMPLER_SAMPLES_OTHER);
	dup2(world.process.producer.rw, BASE + FD_SAMPLER_PROCESS_OWN);
	dup2(world.process.consumer.ro, BASE + FD_SAMPLER_PROCESS_OTHER);
	queue_open_consumer(&world.samples_in, world.samples.consumer.rw,
			    world.samples.producer.ro);
	queue_open_consumer(&world.process_in, world.process.consumer.rw,
			    world.process.producer.ro);
	channel_init(&world.broker, world.broker_fd[1], ROLE_BROKER, ROLE_SAMPLER, true);
	channel_init(&world.worker, world.worker_fd[1], ROLE_SYMBOLIZER, ROLE_SAMPLER, true);
	now = 1000 * S;
	sampler_start();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sampler_kill();
	queue_close(&world.samples_in);
	queue_close(&world.process_in);
	queue_destroy(&world.samples);
	queue_destroy(&world.process);
	segment_close(&world.ledger);
	munmap(world.ring, 2 * 4096 + 2 * RING);
	for (int i = 0; i < SIDEBANDS; i++) {
		munmap(world.sideband[i], (1 + PAGES) * 4096);
		close(world.sideband_fd[i]);
	}
	close(world.ring_fd);
	for (int i = 0; i < 2; i++) {
		close(world.broker_fd[i]);
		close(world.worker_fd[i]);
	}
	for (int i = 0; i < FD_SAMPLER_PER_WORKER; i++)
		close(BASE + i);
	return 0;
}

/* --- the kernel's part --- */

static void ring_put(const void *record, uint32_t len)
{
	_Atomic uint64_t *producer = (_Atomic uint64_t *)(void *)(world.ring + 4096);
	uint64_t at = *producer;
	char *data = world.ring + 8192;

	assert_true((at & (RING - 1)) + len + 8 <= RING); /* tests do not wrap */
	memcpy(data + (at & (RING - 1)), &len, 4);
	memcpy(data + (at & (RING - 1)) + 8, record, len);
	*producer = at + ((8 + len + 7) & ~7u);
}

static struct record_sample sample_of(uint32_t pid, uint64_t exec_id, uint32_t cpu)
{
	world.cpus[cpu].taken++;
	return (struct record_sample){.header = {sizeof(struct record_sample), RECORD_SAMPLE, 0},
				      .cpu = cpu,
				      .pid = pid,
				      .tid = pid,
				      .seq = ++world.seq[cpu],
				      .time_ns = ++now,
				      .start_ns = 10 * S,
				      .exec_id = exec_id,
				      .stop = STOP_DEFERRED};
}

static void sample(uint32_t pid, uint64_t exec_id, uint32_t cpu)
{
	struct record_sample s = sample_of(pid, exec_id, cpu);

	ring_put(&s, sizeof(s));
}

/* bytes: the record without its time. */
static void sideband_put(int ring, void *bytes, uint32_t len, uint64_t time)
{
	struct perf_event_mmap_page *meta = (void *)world.sideband[ring];
	char *data = world.sideband[ring] + 4096;
	struct perf_event_header *header = bytes;
	uint64_t at = meta->data_head;

	header->size = (uint16_t)(len + 16);
	for (uint32_t i = 0; i < len + 16; i++) {
		uint64_t tail[2] = {0x1111111122222222, time}; /* pid and tid, time */
		char c = i < len ? ((char *)bytes)[i] : ((char *)tail)[i - len];

		data[(at + i) & (PAGES * 4096 - 1)] = c;
	}
	meta->data_head = at + len + 16;
}

static void task(int ring, uint32_t type, uint32_t pid, uint32_t tid, uint32_t parent,
		 uint64_t time)
{
	union sideband_record r = {.header = {.type = type}};

	r.task.pid = pid;
	r.task.tid = tid;
	r.task.parent_pid = parent;
	sideband_put(ring, &r, sizeof(r.task), time);
}

static void exec(int ring, uint32_t pid, uint64_t time)
{
	union sideband_record r = {
	    .header = {.type = PERF_RECORD_COMM, .misc = PERF_RECORD_MISC_COMM_EXEC}};

	r.comm.pid = pid;
	sideband_put(ring, &r, sizeof(r.comm) + 16, time);
}

static void mmap2(int ring, uint32_t pid, uint64_t start, uint64_t inode, const char *path,
		  uint64_t time)
{
	static union sideband_record r;
	uint32_t bytes = (uint32_t)(strlen(path) + 8) & ~7u;

	memset(&r, 0, sizeof(r));
	r.header.type = PERF_RECORD_MMAP2;
	r.mmap2.pid = pid;
	r.mmap2.start = start;
	r.mmap2.len = 0x1000;
	r.mmap2.dev_major = 8;
	r.mmap2.inode = inode;
	r.mmap2.prot = PROT_READ | PROT_EXEC;
	strcpy(r.mmap2.path, path);
	sideband_put(ring, &r, (uint32_t)offsetof(union sideband_record, mmap2.path) + bytes, time);
}

/* --- the sampler's turn, and what comes out --- */

static bool turn(void)
{
	bool empty;

	assert_int_equal(inbox_read(&self.inbox, &self.pump.introduce.broker, 0), 0);
	assert_int_equal(inbox_read(&self.inbox, &self.workers.worker[0].channel, 0), 0);
	now += S / 10;
	processes_sweep(&self.processes, now);
	ring_begin(&self.pump.ring);
	empty = pump_turn(&self.pump, now);
	pump_commit(&self.pump);
	return empty;
}

static union {
	struct record_header header;
	struct record_process process;
	struct record_mapping mapping;
	struct record_file file;
	struct record_exit exit;
	struct record_sample sample;
	char bytes[RECORD_BYTES_MAX];
} record;

/* The next record of a queue; its kind, 0 = none. */
static int next(struct queue *queue)
{
	long n = queue_next(queue, &record, sizeof(record));

	assert_true(n >= 0);
	queue_release(queue, queue->cursor);
	return n ? record.header.kind : 0;
}

static struct message message;

/* The next question to the broker; 0 = none. */
static uint32_t question(void)
{
	int err = channel_recv(&world.broker, &message, NULL, NULL);

	assert_true(err == 0 || err == -EAGAIN);
	return err ? 0 : message.type;
}

static uint64_t count(enum counter counter)
{
	return self.ledger.now.counter[counter];
}

static int samples_arrived(void)
{
	int n = 0;

	while (next(&world.samples_in))
		n++;
	return n;
}

/* Answer the ASK_PROCESS in `message` with one range of inode 7. */
static void answer(int32_t error)
{
	struct message_ask_process ask = message.ask_process;
	static struct message_ranges ranges;

	memset(&ranges, 0, sizeof(ranges));
	ranges.pid = ask.pid;
	ranges.error = error;
	ranges.start_lo_ns = ask.start_lo_ns;
	ranges.start_hi_ns = ask.start_hi_ns;
	ranges.exec_id = ask.exec_id;
	ranges.time_ns = now;
	ranges.first = ranges.last = 1;
	ranges.n = error ? 0 : 1;
	ranges.range[0] =
	    (struct message_range){.start = 0x1000, .end = 0x3000, .inode = 7, .dev_major = 8};
	assert_int_equal(channel_send(&world.broker, MESSAGE_RANGES, &ranges, NULL, 0), 0);
}

static void test_unknown_process_is_asked_for(void **state)
{
	(void)state;
	sample(10, 5, 0);
	turn();
	assert_int_equal(next(&world.process_in), RECORD_PROCESS);
	assert_int_equal(record.process.flags, PROCESS_PENDING);
	assert_int_equal(record.process.pid, 10);
	assert_int_equal(next(&world.samples_in), RECORD_SAMPLE);
	assert_int_equal(question(), MESSAGE_ASK_PROCESS);
	assert_int_equal(message.ask_process.ranges, 1);
	assert_int_equal(message.ask_process.start_lo_ns, 10 * S);
	assert_int_equal(message.ask_process.start_hi_ns, 10 * S);
	answer(0);
	turn();
	assert_int_equal(next(&world.process_in), RECORD_FILE);
	assert_int_equal(record.file.inode, 7);
	assert_int_equal(next(&world.process_in), RECORD_PROCESS);
	assert_int_equal(record.process.flags, 0);
	assert_int_equal(record.process.exec_id, 5);
	assert_int_equal(record.process.mappings, 1);
	assert_int_equal(next(&world.process_in), RECORD_MAPPING);
	assert_int_equal(record.mapping.range.start, 0x1000);
	assert_int_equal(record.mapping.range.file_id, 1);
	assert_int_equal(next(&world.process_in), 0);
	assert_int_equal(question(), MESSAGE_ASK_FILE);
	assert_int_equal(message.ask_file.file_id, 1);
	assert_int_equal(message.ask_file.inode, 7);
	sample(10, 5, 0);
	turn();
	assert_int_equal(question(), 0);
	assert_int_equal(next(&world.process_in), 0);
	assert_int_equal(count(C_introductions), 2);
}

static void test_gone_process(void **state)
{
	(void)state;
	sample(10, 5, 0);
	turn();
	assert_int_equal(next(&world.process_in), RECORD_PROCESS);
	assert_int_equal(question(), MESSAGE_ASK_PROCESS);
	answer(ESRCH);
	turn();
	assert_int_equal(next(&world.process_in), RECORD_PROCESS);
	assert_int_equal(record.process.flags, PROCESS_GONE);
	sample(10, 5, 0);
	turn();
	assert_int_equal(question(), 0); /* not again at once */
}

static void test_kernel_thread_is_not_asked_for(void **state)
{
	struct record_sample s = sample_of(2, 0, 0);

	(void)state;
	s.stop = STOP_NO_USER;
	ring_put(&s, sizeof(s));
	turn();
	assert_int_equal(next(&world.process_in), RECORD_PROCESS);
	assert_int_equal(record.process.flags, 0);
	assert_int_equal(question(), MESSAGE_ASK_PROCESS);
	assert_int_equal(message.ask_process.ranges, 0);
}

/* fork on one cpu, exec and mappings on the other, and the older ring is looked at last. */
static void test_sideband_in_the_order_of_time(void **state)
{
	uint64_t t = 10 * S;

	(void)state;
	exec(0, 10, t + 100);
	mmap2(0, 10, 0x1000, 7, "/bin/x", t + 200);
	mmap2(0, 10, 0x7000, 0, "//anon", t + 210);
	mmap2(0, 10, 0x9000, 0, "[vdso]", t + 220);
	mmap2(0, 10, 0xb000, 9, "/memfd:jit (deleted)", t + 230);
	mmap2(0, 10, 0xd000, 9, "/dev/zero (deleted)", t + 240);
	task(1, PERF_RECORD_FORK, 10, 10, 9, t);
	task(1, PERF_RECORD_FORK, 10, 11, 10, t + 300); /* a thread */
	sample(10, 5, 0);
	turn();
	assert_int_equal(count(C_sideband_records), 8);
	assert_int_equal(next(&world.process_in), RECORD_FILE);
	assert_string_equal(record.file.path, "/bin/x");
	assert_int_equal(next(&world.process_in), RECORD_PROCESS);
	assert_int_equal(record.process.flags, 0);
	assert_int_equal(record.process.parent_pid, 9);
	assert_int_equal(record.process.mappings, 5);
	static const uint32_t flags[] = {0, RANGE_ANON, 0, RANGE_ANON, RANGE_ANON};
	static const uint32_t ids[] = {1, 0, RECORD_VDSO_FILE_ID, 0, 0};

	for (int i = 0; i < 5; i++) {
		assert_int_equal(next(&world.process_in), RECORD_MAPPING);
		assert_int_equal(record.mapping.range.flags, flags[i]);
		assert_int_equal(record.mapping.range.file_id, ids[i]);
	}
	/* the broker opens the file and says who it is; ranges it is not asked for */
	assert_int_equal(question(), MESSAGE_ASK_FILE);
	assert_int_equal(question(), MESSAGE_ASK_PROCESS);
	assert_int_equal(message.ask_process.ranges, 0);
	/* later mappings follow one by one */
	mmap2(1, 10, 0x20000, 8, "/lib/y", now);
	turn();
	assert_int_equal(next(&world.process_in), RECORD_FILE);
	assert_int_equal(next(&world.process_in), RECORD_MAPPING);
	assert_int_equal(record.mapping.range.start, 0x20000);
	task(0, PERF_RECORD_EXIT, 10, 10, 9, now);
	turn();
	assert_int_equal(next(&world.process_in), 0);
	now += TABLES_GRACE_NS;
	for (int i = 0; i < 16; i++)
		turn();
	assert_int_equal(next(&world.process_in), RECORD_EXIT);
	assert_int_equal(count(C_processes), 0);
}

/* BPF looked at the ranges of before; something else has been mapped there since, before the
 * sample. */
static void test_sample_by_an_old_slice(void **state)
{
	static union {
		struct record_sample sample;
		char bytes[sizeof(struct record_sample) + 3 * sizeof(struct frame)];
	} s;
	struct process *p;

	(void)state;
	exec(0, 10, 10 * S + 100);
	mmap2(0, 10, 0x1000, 7, "/bin/x", 10 * S + 200);
	mmap2(0, 10, 0x5000, 8, "/lib/a", 10 * S + 300);
	sample(10, 5, 0);
	turn();
	p = processes_find(&self.processes, 10);
	s.sample = sample_of(10, 5, 0);
	s.sample.slice = p->first;
	/* replaced before the sample, and another one after it */
	mmap2(0, 10, 0x5000, 9, "/lib/b", now - 10);
	mmap2(0, 10, 0x1000, 10, "/bin/y", now + 10);
	s.sample.header.len_bytes = sizeof(s);
	s.sample.user_slots = 3;
	s.sample.frames[0] = (struct frame){FRAME_NATIVE, 0, 0, 1, 0x20};
	s.sample.frames[1] = (struct frame){FRAME_NATIVE, FRAME_RETURN, 0, 2, 0x1000};
	s.sample.frames[2] = (struct frame){FRAME_NATIVE, FRAME_RETURN, 0, 1, 0x30};
	ring_put(&s, sizeof(s));
	while (next(&world.samples_in))
		;
	turn();
	assert_int_equal(next(&world.samples_in), RECORD_SAMPLE);
	/* Behind the first frame of another file BPF went by the wrong table. */
	assert_int_equal(record.sample.user_slots, 2);
	assert_int_equal(record.sample.stop, STOP_REMAPPED);
	assert_int_equal(record.header.len_bytes, sizeof(s) - sizeof(struct frame));
	assert_int_equal(record.sample.frames[0].file_id, 1);
	assert_int_equal(record.sample.frames[0].addr, 0x20);
	assert_int_equal(record.sample.frames[1].file_id, 3);
	assert_int_equal(record.sample.frames[1].addr, 0x1000);
}

/* A sample is seen with the side-band up to its own time, not with what came later. */
static void test_sample_before_exec(void **state)
{
	(void)state;
	exec(0, 10, 10 * S);
	mmap2(0, 10, 0x1000, 7, "/bin/old", 10 * S + 1);
	sample(10, 5, 0);
	exec(0, 10, now + 1);
	now += 2;
	mmap2(0, 10, 0x1000, 8, "/bin/new", now);
	sample(10, 6, 0);
	turn();
	assert_int_equal(next(&world.process_in), RECORD_FILE);
	assert_string_equal(record.file.path, "/bin/old");
	assert_int_equal(next(&world.process_in), RECORD_PROCESS);
	assert_int_equal(record.process.exec_id, 5);
	assert_int_equal(next(&world.process_in), RECORD_MAPPING);
	assert_int_equal(next(&world.process_in), RECORD_FILE);
	assert_string_equal(record.file.path, "/bin/new");
	assert_int_equal(next(&world.process_in), RECORD_PROCESS);
	assert_int_equal(record.process.exec_id, 6);
}

static void test_lost_sideband_asks_again(void **state)
{
	union sideband_record r = {.header = {.type = PERF_RECORD_LOST}};

	(void)state;
	exec(0, 10, 10 * S);
	sample(10, 5, 0);
	turn();
	assert_int_equal(question(), MESSAGE_ASK_PROCESS);
	assert_int_equal(message.ask_process.ranges, 0);
	r.lost.records = 17;
	sideband_put(1, &r, sizeof(r.lost), now);
	turn();
	assert_int_equal(count(C_sideband_lost), 17);
	assert_int_equal(question(), 0); /* not before it is sampled */
	sample(10, 5, 0);
	turn();
	assert_int_equal(question(), MESSAGE_ASK_PROCESS);
	assert_int_equal(message.ask_process.ranges, 1);
	answer(0);
	turn();
	sample(10, 5, 0);
	turn();
	assert_int_equal(question(), MESSAGE_ASK_FILE);
	assert_int_equal(question(), 0);
}

static void test_broker_silent_asked_again(void **state)
{
	int asked = 0;

	(void)state;
	for (int i = 0; i < 25; i++) { /* 2.5 s */
		sample(10, 5, 0);
		turn();
		while (question())
			asked++;
	}
	assert_in_range(asked, 2, 3);
}

static void test_need_file(void **state)
{
	struct message_need_file need = {.file_id = 1};

	(void)state;
	exec(0, 10, 10 * S);
	mmap2(0, 10, 0x1000, 7, "/bin/x", 10 * S);
	sample(10, 5, 0);
	turn();
	while (question())
		;
	assert_int_equal(channel_send(&world.worker, MESSAGE_NEED_FILE, &need, NULL, 0), 0);
	turn();
	assert_int_equal(question(), MESSAGE_ASK_FILE);
	assert_int_equal(message.ask_file.file_id, 1);
	/* one that no process of this worker has mapped, and that is another's to compile */
	self.files.file[1].theirs = 0;
	channel_send(&world.worker, MESSAGE_NEED_FILE, &need, NULL, 0);
	turn();
	assert_int_equal(question(), 0);
	self.files.file[1].key.inode = 1; /* with one worker all are its own to compile */
	channel_send(&world.worker, MESSAGE_NEED_FILE, &need, NULL, 0);
	turn();
	assert_int_equal(question(), MESSAGE_ASK_FILE);
	need.file_id = 77; /* never given */
	channel_send(&world.worker, MESSAGE_NEED_FILE, &need, NULL, 0);
	turn();
	assert_int_equal(question(), 0);
	while (next(&world.process_in))
		;
	need.file_id = 0; /* a new worker */
	channel_send(&world.worker, MESSAGE_NEED_FILE, &need, NULL, 0);
	sample(10, 5, 0);
	turn();
	assert_int_equal(next(&world.process_in), RECORD_FILE);
	assert_int_equal(next(&world.process_in), RECORD_PROCESS);
	assert_int_equal(record.process.mappings, 1);
	assert_int_equal(question(), MESSAGE_ASK_FILE);
	assert_int_equal(question(), MESSAGE_ASK_PROCESS);
}

static int need_other(enum other_kind kind, uint32_t file_id, uint32_t pid)
{
	struct message_need_other need = {.file_id = file_id,
					  .pid = pid,
					  .kind = kind,
					  .place = 3,
					  .bytes = 7,
					  .name = "x.debug"};

	assert_int_equal(channel_send(&world.worker, MESSAGE_NEED_OTHER, &need, NULL, 0), 0);
	turn();
	return question();
}

/* What lies beside files that the worker was told of, and the perf maps of its own processes. */
static void test_need_other(void **state)
{
	uint32_t unanswered;

	(void)state;
	exec(0, 10, 10 * S);
	mmap2(0, 10, 0x1000, 7, "/bin/x", 10 * S);
	sample(10, 5, 0);
	turn();
	while (question())
		;
	unanswered = self.pump.introduce.unanswered;
	assert_int_equal(need_other(OTHER_LINK, 1, 0), MESSAGE_ASK_OTHER);
	assert_int_equal(message.ask_other.file.pid, 10);
	assert_int_equal(message.ask_other.file.worker, 0);
	assert_int_equal(message.ask_other.file.start, 0x1000);
	assert_int_equal(message.ask_other.file.inode, 7);
	assert_int_equal(message.ask_other.file.file_id, 1);
	assert_int_equal(message.ask_other.need.kind, OTHER_LINK);
	assert_int_equal(message.ask_other.need.place, 3);
	assert_memory_equal(message.ask_other.need.name, "x.debug", 7);
	/* without an answer to the sampler, nothing is waited for */
	assert_int_equal(self.pump.introduce.unanswered, unanswered);
	assert_int_equal(need_other(OTHER_LINK, 77, 10), 0); /* never given */
	assert_int_equal(need_other(OTHER_LINK, 0, 10), 0);
	assert_int_equal(need_other(OTHER_PERF_MAP, 0, 10), MESSAGE_ASK_OTHER);
	assert_int_equal(message.ask_other.file.pid, 10);
	assert_true(message.ask_other.file.start_hi_ns >= message.ask_other.file.start_lo_ns);
	assert_int_equal(need_other(OTHER_PERF_MAP, 0, 11), 0); /* not known */
	assert_int_equal(need_other(OTHER_MEM, 1, 10), MESSAGE_ASK_OTHER);
	assert_int_equal(message.ask_other.file.pid, 10);
	assert_int_equal(message.ask_other.file.start, 0x1000);
	assert_int_equal(message.ask_other.file.inode, 7);
	assert_int_equal(message.ask_other.need.pid, 10);
	assert_int_equal(need_other(OTHER_MEM, 1, 11), 0);
	assert_int_equal(need_other(OTHER_MEM, 77, 10), 0);
	assert_int_equal(need_other(OTHER_MEM, 0, 10), 0);
	/* One that has not mapped it, though somebody else has. */
	exec(0, 12, now);
	mmap2(0, 12, 0x1000, 8, "/bin/y", now);
	sample(12, 6, 0);
	turn();
	while (question())
		;
	assert_int_equal(need_other(OTHER_MEM, 1, 12), 0);
	assert_int_equal(need_other(OTHER_MEM, 2, 12), MESSAGE_ASK_OTHER);
	assert_int_equal(need_other(OTHER_MEM, 2, 10), 0);
	self.files.file[1].theirs = 0; /* of another worker's processes */
	assert_int_equal(need_other(OTHER_LINK, 1, 10), 0);
	self.files.file[1].theirs = 1;
	task(0, PERF_RECORD_EXIT, 10, 10, 9, now);
	turn();
	assert_int_equal(need_other(OTHER_PERF_MAP, 0, 10), 0);
	assert_int_equal(need_other(OTHER_MEM, 1, 10), 0);
	assert_int_equal(need_other(OTHER_LINK, 1, 10), 0); /* nobody has it mapped */
}

static void test_file_that_could_not_be_opened(void **state)
{
	struct message_file_key key = {.file_id = 1, .error = EOPNOTSUPP};

	(void)state;
	for (uint32_t pid = 10; pid < 13; pid++) {
		exec(0, pid, 10 * S);
		mmap2(0, pid, 0x1000, 7, "/bin/x", 10 * S);
		sample(pid, 5, 0);
		turn();
		/* asked once; again only after an error that another process may not meet */
		assert_int_equal(question(), pid == 11 ? MESSAGE_ASK_PROCESS : MESSAGE_ASK_FILE);
		while (question())
			;
		key.error = pid == 10 ? EOPNOTSUPP : ESRCH;
		channel_send(&world.broker, MESSAGE_FILE_KEY, &key, NULL, 0);
		turn();
	}
}

static void test_hostile_messages(void **state)
{
	struct message_ask_process wrong = {.pid = 1};
	static struct message_ranges ranges;
	int err = 0;

	(void)state;
	ranges.pid = 10;
	ranges.n = 1u << 30; /* more than a message holds */
	ranges.first = ranges.last = 1;
	assert_int_equal(channel_send(&world.broker, MESSAGE_RANGES, &ranges, NULL, 0), 0);
	turn();
	channel_send(&world.worker, MESSAGE_ASK_PROCESS, &wrong, NULL, 0);
	assert_int_equal(inbox_read(&self.inbox, &self.workers.worker[0].channel, 0), -EPROTO);
	/* far more than a worker may say */
	for (int i = 0; i < 5000 && !err; i++) {
		struct message_need_file need = {.file_id = 3};

		if (channel_send(&world.worker, MESSAGE_NEED_FILE, &need, NULL, 0))
			err = inbox_read(&self.inbox, &self.workers.worker[0].channel, 0);
	}
	assert_int_equal(err, -EPROTO);
}

static void test_bad_records_and_books(void **state)
{
	struct record_sample s;

	(void)state;
	sample(10, 5, 0);
	s = sample_of(10, 5, 0);
	s.header.kind = RECORD_EXIT;
	ring_put(&s, sizeof(s));
	s = sample_of(10, 5, 0);
	s.header.len_bytes = 4096; /* longer than what the ring says */
	ring_put(&s, sizeof(s));
	s = sample_of(10, 5, 1);
	s.cpu = LEDGER_CPUS;
	ring_put(&s, sizeof(s));
	s = sample_of(10, 5, 1);
	ring_put(&s, 40); /* shorter than its header */
	world.cpus[0].ring_full = 3;
	world.cpus[0].taken += 3;
	world.seq[0] += 3;
	sample(10, 5, 0);
	sample(10, 5, 1);
	turn();
	assert_int_equal(samples_arrived(), 3);
	assert_int_equal(count(C_sampler_samples), 3);
	assert_int_equal(count(C_lost_sampler_bad_record), 4);
	assert_int_equal(count(C_taken), 10);
	assert_int_equal(count(C_taken), count(C_sampler_samples) + count(C_lost_bpf_ring_full) +
					     count(C_lost_sampler_bad_record));
	assert_int_equal(count(C_sampler_gaps), 3 + 4); /* a bad record's seq is not trusted */
}

static void test_queue_full(void **state)
{
	static struct record_sample s[100]; /* of many frames */
	uint32_t len = sizeof(s);
	int arrived;

	(void)state;
	for (int i = 0; i < 20; i++) {
		s[0] = sample_of(10, 5, 0);
		s[0].header.len_bytes = len;
		ring_put(s, len);
	}
	turn();
	arrived = samples_arrived();
	assert_int_equal(arrived, QUEUE / len);
	assert_int_equal(count(C_lost_sampler_queue_full), 20 - arrived);
	assert_int_equal(count(C_taken), 20);
}

static void test_hostile_tail(void **state)
{
	(void)state;
	atomic_store(&world.samples_in.tail->tail, 1u << 20);
	atomic_store(&world.process_in.tail->tail, 7);
	for (int i = 0; i < 2000; i++)
		sample(10, 5, 0);
	turn();
	assert_true(count(C_lost_sampler_queue_full) > 0);
	assert_int_equal(count(C_lost_sampler_queue_full) + count(C_sampler_samples), 2000);
	/* main reports it, and looks again */
	assert_true(self.workers.worker[0].samples.dead);
	self.workers.worker[0].samples.dead = self.workers.worker[0].process.dead = false;
	/* replaced by an honest one */
	atomic_store(&world.samples_in.tail->tail, 0);
	atomic_store(&world.process_in.tail->tail, 0);
	while (samples_arrived())
		;
	sample(10, 5, 0);
	turn();
	assert_int_equal(samples_arrived(), 1);
}

/* A kill at any of these places: no sample twice, none forgotten. */
static void test_kills(void **state)
{
	enum { BEFORE_COMMIT, BEFORE_PUBLISH, BEFORE_RELEASE, AFTER, PLACES };
	int arrived = 0;

	(void)state;
	for (int i = 0; i < 10 * PLACES; i++) {
		for (int k = 0; k < 3; k++)
			sample(10 + (uint32_t)k, 5, 0);
		now += S / 10;
		pump_turn(&self.pump, now);
		if (i % PLACES != BEFORE_COMMIT) {
			workers_store(&self.workers, &self.ledger);
			self.ledger.now.position[POSITION_RING] = self.pump.ring.cursor;
			self.ledger.now.position[POSITION_FILE_ID] = self.files.last_id;
			ledger_commit(&self.ledger);
		}
		if (i % PLACES >= BEFORE_RELEASE)
			workers_publish(&self.workers);
		if (i % PLACES >= AFTER)
			ring_release(&self.pump.ring);
		sampler_kill();
		sampler_start();
		arrived += samples_arrived();
		while (question() || next(&world.process_in))
			;
	}
	turn();
	arrived += samples_arrived();
	assert_int_equal(arrived, 30 * PLACES);
	assert_int_equal(count(C_sampler_samples), 30 * PLACES);
	assert_int_equal(count(C_sampler_gaps), 0);
	assert_true(turn()); /* empty */
	/* its table is gone: everybody is asked for and told again */
	sample(10, 5, 0);
	turn();
	while (next(&world.process_in))
		;
	assert_int_equal(question(), MESSAGE_ASK_PROCESS);
}

/* The same records again, as after a ring whose consumer position was not moved. */
static void test_duplicates(void **state)
{
	(void)state;
	sample(10, 5, 0);
	turn();
	world.seq[0]--;
	world.cpus[0].taken--;
	sample(10, 5, 0);
	sample(10, 5, 0);
	turn();
	assert_int_equal(samples_arrived(), 2);
	assert_int_equal(count(C_sampler_duplicates), 1);
	assert_int_equal(count(C_taken), 2);
}

static void test_queue_replaced(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		sample(10, 5, 0);
	turn();
	sampler_kill();
	queue_close(&world.samples_in);
	queue_destroy(&world.samples);
	queue_create(&world.samples, "samples", QUEUE);
	dup2(world.samples.producer.rw, BASE + FD_SAMPLER_SAMPLES_OWN);
	dup2(world.samples.consumer.ro, BASE + FD_SAMPLER_SAMPLES_OTHER);
	queue_open_consumer(&world.samples_in, world.samples.consumer.rw,
			    world.samples.producer.ro);
	sampler_start();
	sample(10, 5, 0);
	turn();
	assert_int_equal(samples_arrived(), 1);
}

static void test_sideband_noise(void **state)
{
	(void)state;
	srandom(7);
	for (int round = 0; round < 300; round++) {
		for (int i = 0; i < SIDEBANDS; i++) {
			struct perf_event_mmap_page *meta = (void *)world.sideband[i];
			uint16_t *words = (void *)(world.sideband[i] + 4096);

			for (uint32_t w = 0; w < PAGES * 4096 / 2; w++)
				words[w] = (uint16_t)(random() & (round & 1 ? 0x7f : 0xffff));
			meta->data_head += PAGES * 4096;
		}
		turn();
		while (question() || next(&world.process_in))
			;
	}
	/* and it still works */
	exec(0, 4000000, now);
	sample(4000000, 5, 0);
	turn();
	assert_int_equal(samples_arrived(), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_unknown_process_is_asked_for),
	    TEST(test_gone_process),
	    TEST(test_kernel_thread_is_not_asked_for),
	    TEST(test_sideband_in_the_order_of_time),
	    TEST(test_sample_by_an_old_slice),
	    TEST(test_sample_before_exec),
	    TEST(test_lost_sideband_asks_again),
	    TEST(test_broker_silent_asked_again),
	    TEST(test_need_file),
	    TEST(test_need_other),
	    TEST(test_file_that_could_not_be_opened),
	    TEST(test_hostile_messages),
	    TEST(test_bad_records_and_books),
	    TEST(test_queue_full),
	    TEST(test_hostile_tail),
	    TEST(test_kills),
	    TEST(test_duplicates),
	    TEST(test_queue_replaced),
	    TEST(test_sideband_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
