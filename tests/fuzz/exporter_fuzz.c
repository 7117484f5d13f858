/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a worker leaves to the exporter: a definition log, and samples behind it.
 * Whatever comes of that can be encoded.
 *
 *   u16 bytes of the log | the log's records | the output queue
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/intake.h"
#include "profile/otlp.h"
#include "tests/fuzz/fuzz.h"

#define LOG_BYTES 65536
#define PASSES	  4

const unsigned fuzz_mutations = 2000;

static struct {
	struct queue_segments output;
	struct segment logs[2];
	struct queue_head *head;
	struct queue_tail *tail;
	struct symbol_log *log;
	struct config config;
	struct ledger ledger;
	struct child child;
	int supervisor[2];
} self;

static void open_once(void)
{
	if (queue_create(&self.output, "output", QUEUE_CAPACITY_MIN) ||
	    channel_pair(self.supervisor))
		abort();
	for (int i = 0; i < 2; i++)
		if (segment_create(&self.logs[i], "log", SYMBOL_LOG_HEADER_BYTES + LOG_BYTES))
			abort();
	self.head = segment_map(self.output.producer.rw, SEGMENT_PAGE + QUEUE_CAPACITY_MIN, 1);
	self.tail = segment_map(self.output.consumer.rw, SEGMENT_PAGE, 1);
	self.log = segment_map(self.logs[0].rw, SYMBOL_LOG_HEADER_BYTES + LOG_BYTES, 1);
	dup2(self.output.producer.ro, FD_EXPORTER_WORKERS + FD_EXPORTER_OUTPUT_OTHER);
	dup2(self.output.consumer.rw, FD_EXPORTER_WORKERS + FD_EXPORTER_OUTPUT_OWN);
	dup2(self.logs[0].ro, FD_EXPORTER_WORKERS + FD_EXPORTER_LOG_A);
	dup2(self.logs[1].ro, FD_EXPORTER_WORKERS + FD_EXPORTER_LOG_B);
	config_defaults(&self.config, MODE_RUN);
	self.config.workers = 1;
	self.child.config = &self.config;
	self.child.ledger.shared = &self.ledger;
	channel_init(&self.child.supervisor, self.supervisor[0], ROLE_EXPORTER, ROLE_SUPERVISOR,
		     true);
}

static void check_encoded(struct batch *batch)
{
	struct otlp_encode_options options = {.with_process_ids = true, .batch = 1};
	uint8_t *bytes = NULL;
	size_t n;

	profile_cover(batch->profile, 1000, 2000);
	if (otlp_encode(batch->profile, &options, &bytes, &n))
		abort();
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct intake intake;
	struct batch batch;
	size_t log_n;
	char junk[64];

	if (size < 2)
		return 0;
	if (!self.head)
		open_once();
	log_n = data[0] | (size_t)data[1] << 8;
	log_n = log_n < size - 2 ? log_n : size - 2;
	*self.log = (struct symbol_log){
	    .magic = SYMBOL_MAGIC, .version = SYMBOL_VERSION, .len_bytes = log_n};
	memcpy((char *)self.log + SYMBOL_LOG_HEADER_BYTES, data + 2, log_n);
	data += 2 + log_n;
	size -= 2 + log_n;
	memcpy((char *)self.head + SEGMENT_PAGE, data, size);
	atomic_store(&self.tail->tail, 0);
	atomic_store(&self.head->head, size & ~7ul);
	memset(&self.child.ledger.now, 0, sizeof(self.child.ledger.now));
	if (intake_open(&intake, &self.child) || batch_open(&batch, &self.config))
		abort();
	for (int i = 0; i < PASSES && intake_read(&intake, &batch); i++)
		;
	if (batch.samples)
		check_encoded(&batch);
	batch_close(&batch);
	intake_close(&intake);
	while (read(self.supervisor[1], junk, sizeof(junk)) > 0)
		;
	return 0;
}

static size_t define(uint8_t *data, size_t at, enum symbol_kind kind, uint32_t id,
		     const void *record, size_t n)
{
	struct symbol_header header = {
	    .len_bytes = (uint32_t)((n + 7) & ~7ul), .kind = (uint16_t)kind, .id = id};

	memset(data + at, 0, header.len_bytes);
	memcpy(data + at, record, n);
	memcpy(data + at, &header, sizeof(header));
	return at + header.len_bytes;
}

/* A record, and behind it what there are several of. */
static size_t define_more(uint8_t *data, size_t at, enum symbol_kind kind, const void *record,
			  size_t n, const void *more, size_t more_n)
{
	_Alignas(8) char bytes[256];

	memcpy(bytes, record, n);
	memcpy(bytes + n, more, more_n);
	return define(data, at, kind, 1, bytes, n + more_n);
}

static size_t define_text(uint8_t *data, size_t at, uint32_t id, const char *text)
{
	struct symbol_string string = {.bytes = (uint32_t)strlen(text)};
	_Alignas(8) char bytes[sizeof(string) + 64];

	memcpy(bytes, &string, sizeof(string));
	strcpy(bytes + sizeof(string), text);
	return define(data, at, SYMBOL_STRING, id, bytes, sizeof(string) + strlen(text) + 1);
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	struct symbol_function function = {.name = 1, .system_name = 2, .file = 1};
	struct symbol_mapping mapping = {
	    .file = 2, .gnu_build_id = 3, .start = 0x1000, .limit = 0x9000};
	struct symbol_location location = {.mapping = 1, .address = 0x1234, .lines_n = n ? 2 : 0};
	struct symbol_line lines[2] = {{1, 7}, {1, 9}};
	struct symbol_stack stack = {.locations_n = 3};
	uint32_t locations[3] = {1, 1, 1};
	struct symbol_process process = {.pid = 5, .executable = 2, .cgroup = 3, .comm = 1};
	struct symbol_sample sample = {
	    .header = {.len_bytes = sizeof(sample), .kind = SYMBOL_SAMPLE},
	    .time_ns = 10,
	    .period_ns = 1000,
	    .process = 1,
	    .stack = 1,
	    .pid = 5,
	    .comm = "a;b\xff"};
	size_t at = 2;

	if (n >= 2)
		return 0;
	at = define_text(data, at, 1, "main\n;");
	at = define_text(data, at, 2, "/usr/bin/x (deleted)");
	at = define_text(data, at, 3, "/a/\xc3\x28/0123");
	at = define(data, at, SYMBOL_FUNCTION, 1, &function, sizeof(function));
	at = define(data, at, SYMBOL_MAPPING, 1, &mapping, sizeof(mapping));
	at = define_more(data, at, SYMBOL_LOCATION, &location, sizeof(location), lines,
			 n ? sizeof(lines) : 0);
	at = define_more(data, at, SYMBOL_STACK, &stack, sizeof(stack), locations, sizeof(locations));
	at = define(data, at, SYMBOL_PROCESS, 1, &process, sizeof(process));
	data[0] = (uint8_t)(at - 2);
	data[1] = (uint8_t)((at - 2) >> 8);
	for (int i = 0; i < 3; i++, at += sizeof(sample)) {
		sample.seq++;
		sample.stop = (uint8_t)(i * 3);
		memcpy(data + at, &sample, sizeof(sample));
	}
	return at;
}
