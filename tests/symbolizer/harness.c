/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/symbolizer/harness.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/fds.h"

static uint64_t harness_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int harness_text(const char *text)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

static void harness_open_segments(struct harness *h, const struct config *config)
{
	assert_int_equal(segment_create(&h->config, "config", sizeof(*config)), 0);
	assert_int_equal(pwrite(h->config.rw, config, sizeof(*config), 0), sizeof(*config));
	assert_int_equal(ledger_create(&h->ledger, "ledger"), 0);
	for (int i = 0; i < 2; i++) {
		size_t bytes = SYMBOL_LOG_HEADER_BYTES + config->log_bytes;

		assert_int_equal(segment_create(&h->logs[i], "log", bytes), 0);
		h->log[i] = segment_map(h->logs[i].ro, bytes, 0);
		assert_non_null(h->log[i]);
	}
	h->books = ledger_map(h->ledger.ro);
	h->books_rw = segment_map(h->ledger.rw, LEDGER_BYTES, 1);
	assert_non_null(h->books);
	assert_non_null(h->books_rw);
}

void harness_open(struct harness *h, const struct config *config, const char *kallsyms)
{
	memset(h, 0, sizeof(*h));
	harness_open_segments(h, config);
	assert_int_equal(queue_create(&h->samples_fds, "samples", config->sample_queue_bytes), 0);
	assert_int_equal(queue_create(&h->process_fds, "process", config->process_queue_bytes), 0);
	assert_int_equal(queue_create(&h->output_fds, "output", config->output_queue_bytes), 0);
	assert_int_equal(queue_open_producer(&h->samples, h->samples_fds.producer.rw,
					     h->samples_fds.consumer.ro),
			 0);
	assert_int_equal(queue_open_producer(&h->process_queue, h->process_fds.producer.rw,
					     h->process_fds.consumer.ro),
			 0);
	assert_int_equal(
	    queue_open_consumer(&h->output, h->output_fds.consumer.rw, h->output_fds.producer.ro),
	    0);
	assert_int_equal(channel_pair(h->supervisor_fds), 0);
	assert_int_equal(channel_pair(h->sampler_fds), 0);
	assert_int_equal(channel_pair(h->broker_fds), 0);
	channel_init(&h->supervisor, h->supervisor_fds[0], ROLE_SUPERVISOR, ROLE_SYMBOLIZER, false);
	channel_init(&h->sampler, h->sampler_fds[0], ROLE_SAMPLER, ROLE_SYMBOLIZER, true);
	channel_init(&h->broker, h->broker_fds[0], ROLE_BROKER, ROLE_SYMBOLIZER, true);
	h->kallsyms = harness_text(kallsyms);
	h->modules = harness_text("");
}

void harness_close(struct harness *h)
{
	harness_kill(h);
	queue_close(&h->samples);
	queue_close(&h->process_queue);
	queue_close(&h->output);
	queue_destroy(&h->samples_fds);
	queue_destroy(&h->process_fds);
	queue_destroy(&h->output_fds);
	for (int i = 0; i < 2; i++) {
		munmap((void *)(uintptr_t)h->log[i], SYMBOL_LOG_HEADER_BYTES +
							 (size_t)segment_size(h->logs[i].ro) -
							 SEGMENT_PAGE);
		segment_close(&h->logs[i]);
		close(h->supervisor_fds[i]);
		close(h->sampler_fds[i]);
		close(h->broker_fds[i]);
	}
	munmap((void *)(uintptr_t)h->books, LEDGER_BYTES);
	munmap(h->books_rw, LEDGER_BYTES);
	segment_close(&h->config);
	segment_close(&h->ledger);
	close(h->kallsyms);
	close(h->modules);
}

/* build/tests/symbolizer/x -> build/sconce-symbolizer */
static void harness_program(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);

	assert_true(n > 0);
	path[n] = 0;
	for (int i = 0; i < 3; i++)
		*strrchr(path, '/') = 0;
	strcat(path, "/sconce-symbolizer");
}

static void harness_exec(struct harness *h, const char *path)
{
	const int wanted[][2] = {
	    {h->supervisor_fds[1], FD_SUPERVISOR},
	    {h->config.ro, FD_CONFIG},
	    {h->ledger.rw, FD_LEDGER},
	    {h->sampler_fds[1], FD_SYMBOLIZER_SAMPLER},
	    {h->broker_fds[1], FD_SYMBOLIZER_BROKER},
	    {h->samples_fds.producer.ro, FD_SYMBOLIZER_SAMPLES_OTHER},
	    {h->samples_fds.consumer.rw, FD_SYMBOLIZER_SAMPLES_OWN},
	    {h->process_fds.producer.ro, FD_SYMBOLIZER_PROCESS_OTHER},
	    {h->process_fds.consumer.rw, FD_SYMBOLIZER_PROCESS_OWN},
	    {h->output_fds.producer.rw, FD_SYMBOLIZER_OUTPUT_OWN},
	    {h->output_fds.consumer.ro, FD_SYMBOLIZER_OUTPUT_OTHER},
	    {h->logs[0].rw, FD_SYMBOLIZER_LOG},
	    {h->logs[1].rw, FD_SYMBOLIZER_LOG + 1},
	    {h->kallsyms, FD_SYMBOLIZER_KALLSYMS},
	    {h->modules, FD_SYMBOLIZER_MODULES},
	};
	size_t n = sizeof(wanted) / sizeof(*wanted);
	int high[sizeof(wanted) / sizeof(*wanted)];
	char slot[16];

	for (size_t i = 0; i < n; i++)
		high[i] = fcntl(wanted[i][0], F_DUPFD_CLOEXEC, 200);
	for (size_t i = 0; i < n; i++)
		if (dup2(high[i], wanted[i][1]) < 0)
			_exit(126);
	snprintf(slot, sizeof(slot), "%d", SLOT_WORKER(0));
	if (h->confine)
		h->confine();
	execl(path, path, slot, (char *)NULL);
	_exit(127);
}

void harness_start(struct harness *h)
{
	struct pollfd fd = {.fd = h->supervisor_fds[0], .events = POLLIN};
	struct message message;
	char path[512];

	harness_program(path, sizeof(path));
	h->supervisor.peer_running = false;
	h->pid = fork();
	assert_true(h->pid >= 0);
	if (h->pid == 0)
		harness_exec(h, path);
	assert_int_equal(poll(&fd, 1, 10000), 1);
	assert_int_equal(channel_recv(&h->supervisor, &message, NULL, NULL), 0);
	assert_int_equal(message.type, MESSAGE_READY);
	h->supervisor.peer_running = true;
}

void harness_kill(struct harness *h)
{
	if (h->pid > 0) {
		kill(h->pid, SIGKILL);
		waitpid(h->pid, NULL, 0);
	}
	h->pid = 0;
}

static void harness_push(struct harness *h, const void *record, size_t n)
{
	assert_int_equal(queue_push(&h->process_queue, record, n), 0);
	queue_publish(&h->process_queue, h->process_queue.cursor);
}

void harness_push_process(struct harness *h, uint32_t pid, uint64_t start_ns, uint32_t flags)
{
	struct record_process r = {.header = {sizeof(r), RECORD_PROCESS, 0},
				   .pid = pid,
				   .start_lo_ns = start_ns,
				   .start_hi_ns = start_ns,
				   .flags = flags};

	harness_push(h, &r, sizeof(r));
}

void harness_push_range(struct harness *h, uint32_t pid, uint64_t start, uint64_t end,
			uint64_t offset, uint32_t file_id, uint32_t flags)
{
	struct record_mapping r = {.header = {sizeof(r), RECORD_MAPPING, 0},
				   .pid = pid,
				   .range = {start, end, offset, file_id, flags}};

	harness_push(h, &r, sizeof(r));
}

void harness_push_file(struct harness *h, uint32_t file_id, const char *path)
{
	struct record_file r = {
	    .header = {sizeof(r), RECORD_FILE, 0}, .file_id = file_id, .inode = file_id};

	snprintf(r.path, sizeof(r.path), "%s", path);
	harness_push(h, &r, sizeof(r));
}

void harness_send_info(struct harness *h, uint32_t pid, uint64_t start_ns, const char *executable,
		       const char *cgroup)
{
	struct message_process_info info = {.pid = pid,
					    .cgroup_bytes = (uint32_t)strlen(cgroup),
					    .start_lo_ns = start_ns,
					    .start_hi_ns = start_ns};

	snprintf(info.executable, sizeof(info.executable), "%s", executable);
	memcpy(info.cgroup, cgroup, strlen(cgroup));
	assert_int_equal(channel_send(&h->broker, MESSAGE_PROCESS_INFO, &info, NULL, 0), 0);
}

void harness_send_file(struct harness *h, uint32_t file_id, const char *path)
{
	struct message_file file = {.file_id = file_id, .error = path ? 0 : 13};
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	struct stat st = {0};

	if (path) {
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &st), 0);
		file.key = (struct file_key){st.st_dev, st.st_ino, (uint64_t)st.st_size,
					     (uint64_t)st.st_mtim.tv_sec * 1000000000ull +
						 (uint64_t)st.st_mtim.tv_nsec};
		snprintf(file.path, sizeof(file.path), "%s", path);
	}
	assert_int_equal(channel_send(&h->broker, MESSAGE_FILE, &file, &fd, path ? 1 : 0), 0);
	if (path)
		close(fd);
}

int harness_push_sample(struct harness *h, struct record_sample head, const struct frame *frames,
			const struct record_regs *regs, const void *stack)
{
	uint64_t room[RECORD_BYTES_MAX / 8];
	size_t n = sizeof(head), frame_bytes = (head.kernel_frames + head.user_slots) * 16ul;
	int err;

	if (frame_bytes)
		memcpy((char *)room + n, frames, frame_bytes);
	n += frame_bytes;
	if (regs) {
		memcpy((char *)room + n, regs, sizeof(*regs));
		n += sizeof(*regs);
		memcpy((char *)room + n, stack, head.stack_bytes);
		n += head.stack_bytes;
		head.header.flags |= RECORD_HAS_STACK;
	}
	head.header.kind = RECORD_SAMPLE;
	head.header.len_bytes = (uint32_t)n;
	memcpy(room, &head, sizeof(head));
	err = queue_push(&h->samples, room, n);
	if (err == 0)
		queue_publish(&h->samples, h->samples.cursor);
	return err;
}

bool harness_next(struct harness *h, struct symbol_sample *sample, int timeout_ms)
{
	uint64_t end = harness_now_ms() + (uint64_t)timeout_ms;
	long n;

	while ((n = queue_next(&h->output, sample, sizeof(*sample))) == 0 && harness_now_ms() < end)
		queue_wait(&h->output, 20);
	assert_true(n == 0 || n == sizeof(*sample));
	return n > 0;
}

void harness_release(struct harness *h)
{
	queue_release(&h->output, h->output.cursor);
}

const void *harness_definition(const struct harness *h, uint32_t epoch, enum symbol_kind kind,
			       uint32_t id)
{
	const struct symbol_log *log = h->log[epoch % 2];
	uint64_t end, at = 0;

	assert_int_equal(log->magic, SYMBOL_MAGIC);
	assert_int_equal(log->epoch, epoch);
	end = atomic_load_explicit(&log->len_bytes, memory_order_acquire);
	assert_true(end <= log->capacity);
	while (at < end) {
		const struct symbol_header *r =
		    (const void *)((const char *)log + SYMBOL_LOG_HEADER_BYTES + at);

		assert_true(r->len_bytes >= sizeof(*r) && r->len_bytes % 8 == 0 &&
			    r->len_bytes <= end - at);
		if (r->kind == kind && r->id == id)
			return r;
		at += r->len_bytes;
	}
	return NULL;
}

const char *harness_string(const struct harness *h, uint32_t epoch, uint32_t id)
{
	const struct symbol_string *s = id ? harness_definition(h, epoch, SYMBOL_STRING, id) : NULL;

	return s ? s->text : "";
}

void harness_stack(const struct harness *h, const struct symbol_sample *sample, char *text,
		   size_t size)
{
	const struct symbol_stack *stack =
	    harness_definition(h, sample->epoch, SYMBOL_STACK, sample->stack);

	assert_non_null(stack);
	text[0] = 0;
	for (uint32_t i = 0; i < stack->locations_n; i++) {
		const struct symbol_location *location =
		    harness_definition(h, sample->epoch, SYMBOL_LOCATION, stack->locations[i]);
		const struct symbol_function *function;

		assert_non_null(location);
		assert_int_equal(location->lines_n, 1);
		function = harness_definition(h, sample->epoch, SYMBOL_FUNCTION,
					      location->lines[0].function);
		assert_non_null(function);
		snprintf(text + strlen(text), size - strlen(text), "%s%s", i ? ";" : "",
			 harness_string(h, sample->epoch, function->name));
	}
}

uint64_t harness_counter(const struct harness *h, enum counter counter)
{
	static struct ledger_entry entry;

	while (ledger_read(h->books, &entry))
		usleep(1000);
	return entry.counter[counter];
}

bool harness_wait_counter(const struct harness *h, enum counter counter, uint64_t value,
			  int timeout_ms)
{
	uint64_t end = harness_now_ms() + (uint64_t)timeout_ms;

	while (harness_counter(h, counter) < value) {
		if (harness_now_ms() > end)
			return false;
		usleep(2000);
	}
	return true;
}
