/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as packets to the sampler: even ones from a worker, odd ones from the broker. It knows
 * a process of which it has asked, so that answers are taken.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/fds.h"
#include "sampler/inbox.h"
#include "shm/table.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/packets.h"

#define CHUNK_FD 200
#define BASE	 220 /* fds of the workers */
#define RANGES	 4096
#define PID	 10
#define NOW	 1000000000000ull

const unsigned fuzz_mutations = 1500;

static struct {
	struct inbox inbox;
	struct introduce introduce;
	struct processes processes;
	struct files files;
	struct workers workers;
	struct store store;
	struct ledger_writer ledger;
	struct record_range ranges[RANGES];
	struct queue_segments samples, process;
	int broker[2], worker[2];
	bool open;
} self;

static int sized(int at, size_t bytes)
{
	int fd = memfd_create("map", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) || dup2(fd, at) != at)
		abort();
	close(fd);
	return at;
}

static void open_once(void)
{
	static struct ledger shared;

	self.open = true;
	self.ledger.shared = &shared;
	if (queue_create(&self.samples, "samples", QUEUE_CAPACITY_MIN) ||
	    queue_create(&self.process, "process", QUEUE_CAPACITY_MIN) ||
	    channel_pair(self.broker) || channel_pair(self.worker))
		abort();
	dup2(self.worker[0], BASE + FD_SAMPLER_CHANNEL);
	dup2(self.samples.producer.rw, BASE + FD_SAMPLER_SAMPLES_OWN);
	dup2(self.samples.consumer.ro, BASE + FD_SAMPLER_SAMPLES_OTHER);
	dup2(self.process.producer.rw, BASE + FD_SAMPLER_PROCESS_OWN);
	dup2(self.process.consumer.ro, BASE + FD_SAMPLER_PROCESS_OTHER);
	if (workers_open(&self.workers, 1, BASE, &self.ledger) ||
	    store_open(&self.store,
		       sized(CHUNK_FD - 1, (TABLES_FILES_MAX + 1) * sizeof(struct bpf_file)),
		       sized(CHUNK_FD, TABLES_CHUNK_BYTES), TABLES_CHUNK_BYTES) < 0)
		abort();
	self.introduce = (struct introduce){.ledger = &self.ledger,
					    .processes = &self.processes,
					    .files = &self.files,
					    .workers = &self.workers};
	self.inbox.introduce = &self.introduce;
	self.inbox.store = &self.store;
}

/* A sampler that was just started, and one process. */
static void begin(void)
{
	struct process *p;
	struct file *file;

	memset(&self.files, 0, sizeof(self.files));
	files_init(&self.files, 0);
	processes_init(&self.processes, 64, self.ranges, RANGES, self.store.files);
	processes_sweep(&self.processes, NOW);
	channel_init(&self.introduce.broker, self.broker[0], ROLE_SAMPLER, ROLE_BROKER, true);
	channel_init(&self.workers.worker[0].channel, BASE, ROLE_SAMPLER, ROLE_SYMBOLIZER, true);
	self.introduce.now_ns = NOW;
	self.introduce.unanswered = 0;
	p = processes_meet(&self.processes, PID, NOW);
	p->start_lo_ns = p->start_hi_ns = p->exec_id = 3;
	introduce_ask_ranges(&self.introduce, p);
	file = files_of(&self.files, 1, 2, 3, 4, "/bin/a");
	file->asked = file->theirs = 1;
}

/* What is published lies within the table memory. */
static void check_store(void)
{
	for (uint32_t i = 0; i < 16; i++) {
		const struct bpf_file *f = &self.store.files[i];

		if (f->file_id && (f->flags & BPF_FILE_TABLE) &&
		    f->first + TABLE_WORDS(f->pages, f->rows, f->rules) +
				    (f->flags & BPF_FILE_RUNTIME ? TABLE_RUNTIME_WORDS : 0) >
			    TABLES_CHUNK_WORDS)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct packets packets = {data, data + size};

	if (!self.open)
		open_once();
	begin();
	for (int i = 0; packets_send(&packets, i % 2 ? self.broker[1] : self.worker[1]); i++) {
		if (i % 2)
			inbox_read(&self.inbox, &self.introduce.broker, 0);
		else
			inbox_read(&self.inbox, &self.workers.worker[0].channel, 0);
		self.introduce.now_ns += 1000000;
	}
	check_store();
	/* What it has asked, and told, is not read by anybody. */
	for (int i = 0; i < 2; i++)
		packets_discard(self.broker[i]);
	store_withdraw(&self.store, 0, self.introduce.now_ns);
	slices_init(&self.store.room, NULL, self.store.chunks * (TABLES_CHUNK_WORDS / 64));
	return 0;
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	static struct message_ranges ranges = {
	    .pid = PID,
	    .start_lo_ns = 3,
	    .start_hi_ns = 3,
	    .exec_id = 3,
	    .time_ns = NOW + 1,
	    .first = 1,
	    .last = 1,
	    .n = 3,
	    .range = {{0x1000, 0x2000, 0, 3, 1, 2, 0, 0},
		      {0x2000, 0x3000, 0, 7, 1, 2, 0, 0},
		      {0x5000, 0x6000, 0, 0, 0, 0, RANGE_VDSO, 0}}};
	static struct {
		struct message_table message;
		struct table_header header;
		struct table_page page;
		__u32 rows[2];
		struct table_rule rules[2];
	} table = {.message = {1, sizeof(table) - sizeof(table.message)},
		   .header = {TABLE_MAGIC, TABLE_VERSION, 1, 0, 1, 2, 2, 0},
		   .page = {0, 2},
		   .rows = {0, 1 << 16 | 8}};
	struct message_file_key key = {.file_id = 1, .key = {1, 3, 100, 7}};
	struct message_need_file need = {.file_id = n == 1};
	struct message_need_other other = {
	    .file_id = 1, .pid = PID, .kind = n ? OTHER_PERF_MAP : OTHER_LINK, .bytes = 1};
	struct message_table none = {1, n == 1};
	size_t at = 0;

	if (n >= 2)
		return 0;
	at = packets_add(data, at, MESSAGE_NEED_FILE, &need, sizeof(need), 0);
	at = packets_add(data, at, MESSAGE_RANGES, &ranges, 200, 0);
	at = packets_add(data, at, MESSAGE_TABLE, &table, sizeof(table), 1);
	at = packets_add(data, at, MESSAGE_FILE_KEY, &key, sizeof(key), 0);
	at = packets_add(data, at, MESSAGE_NO_TABLE, &none, sizeof(none), 0);
	at = packets_add(data, at, MESSAGE_FILE_KEY, &key, sizeof(key), 0);
	at = packets_add(data, at, MESSAGE_NEED_OTHER, &other, sizeof(other), 0);
	key.error = 2;
	at = packets_add(data, at, MESSAGE_FILE_KEY, &key, sizeof(key), 0);
	return packets_add(data, at, MESSAGE_TABLE, &table, sizeof(table), 1);
}
