/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/channel.h"
#include "shm/ledger.h"
#include "shm/queue.h"
#include "shm/record.h"
#include "supervisor/wiring.h"

static struct config config;

static int setup(void **state)
{
	(void)state;
	config_defaults(&config, MODE_RUN);
	config.workers = 3;
	config.runtime.sideband = 4;
	strcpy(config.remote.url, "http://x/");
	return wiring_create(&config);
}

static void numbers_are_unique_in_every_role(void **state)
{
	static struct wire wires[WIRES_MAX];

	(void)state;
	for (int slot = ROLE_LOADER; slot < SLOT_WORKER(3); slot++) {
		size_t n = wiring_list(slot, wires);

		assert_in_range(n, 3, WIRES_MAX);
		for (size_t i = 0; i < n; i++) {
			assert_in_range(wires[i].number, FD_SUPERVISOR, FD_SIDEBAND + 3);
			for (size_t k = 0; k < i; k++)
				assert_int_not_equal(wires[i].number, wires[k].number);
		}
	}
}

static int wired(int slot, int number)
{
	static struct wire wires[WIRES_MAX];
	size_t n = wiring_list(slot, wires);

	for (size_t i = 0; i < n; i++)
		if (wires[i].number == number)
			return wires[i].fd;
	fail_msg("slot %d has no number %d", slot, number);
	return -1;
}

static ino_t inode(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

/* Each end finds the same object, and only its owner may write to it. */
static void queues_meet(void **state)
{
	(void)state;
	for (int k = 0; k < 3; k++) {
		int base = FD_SAMPLER_WORKERS + k * FD_SAMPLER_PER_WORKER;
		int ebase = FD_EXPORTER_WORKERS + k * FD_EXPORTER_PER_WORKER;
		int worker = SLOT_WORKER(k);
		struct queue in, out;

		assert_int_equal(queue_open_producer(&in,
						     wired(ROLE_SAMPLER, base + FD_SAMPLER_SAMPLES_OWN),
						     wired(ROLE_SAMPLER, base + FD_SAMPLER_SAMPLES_OTHER)),
				 0);
		assert_int_equal(queue_open_consumer(&out, wired(worker, FD_SYMBOLIZER_SAMPLES_OWN),
						     wired(worker, FD_SYMBOLIZER_SAMPLES_OTHER)),
				 0);
		atomic_store(&in.head->head, 64 + 8 * (uint64_t)k);
		assert_int_equal(queue_used(&out), 64 + 8 * k);
		atomic_store(&in.head->head, 0);
		queue_close(&in);
		queue_close(&out);
		assert_int_equal(queue_open_producer(
					 &in, wired(ROLE_SAMPLER, base + FD_SAMPLER_PROCESS_OWN),
					 wired(ROLE_SAMPLER, base + FD_SAMPLER_PROCESS_OTHER)),
				 0);
		queue_close(&in);
		assert_int_equal(queue_open_consumer(&out, wired(worker, FD_SYMBOLIZER_PROCESS_OWN),
						     wired(worker, FD_SYMBOLIZER_PROCESS_OTHER)),
				 0);
		queue_close(&out);
		assert_int_equal(queue_open_producer(&in, wired(worker, FD_SYMBOLIZER_OUTPUT_OWN),
						     wired(worker, FD_SYMBOLIZER_OUTPUT_OTHER)),
				 0);
		queue_close(&in);
		assert_int_equal(
			queue_open_consumer(&out,
					    wired(ROLE_EXPORTER, ebase + FD_EXPORTER_OUTPUT_OWN),
					    wired(ROLE_EXPORTER, ebase + FD_EXPORTER_OUTPUT_OTHER)),
			0);
		queue_close(&out);
		assert_int_equal(inode(wired(worker, FD_SYMBOLIZER_LOG)),
				 inode(wired(ROLE_EXPORTER, ebase + FD_EXPORTER_LOG_A)));
		assert_int_equal(inode(wired(worker, FD_SYMBOLIZER_LOG + 1)),
				 inode(wired(ROLE_EXPORTER, ebase + FD_EXPORTER_LOG_B)));
		assert_null(segment_map(wired(ROLE_EXPORTER, ebase + FD_EXPORTER_LOG_A), 4096, 1));
	}
}

static void talks(int a, enum role role_a, int b, enum role role_b, enum message_type type)
{
	static struct message payload;
	struct channel from, to;
	struct message got;

	channel_init(&from, a, role_a, role_b, true);
	channel_init(&to, b, role_b, role_a, true);
	assert_int_equal(channel_send(&from, type, &payload.empty, NULL, 0), 0);
	assert_int_equal(channel_recv(&to, &got, NULL, NULL), 0);
	assert_int_equal(got.type, type);
}

static void channels_meet(void **state)
{
	(void)state;
	talks(wired(ROLE_SAMPLER, FD_SAMPLER_BROKER), ROLE_SAMPLER,
	      wired(ROLE_BROKER, FD_BROKER_SAMPLER), ROLE_BROKER, MESSAGE_ASK_PROCESS);
	for (int k = 0; k < 3; k++) {
		talks(wired(SLOT_WORKER(k), FD_SYMBOLIZER_SAMPLER), ROLE_SYMBOLIZER,
		      wired(ROLE_SAMPLER, FD_SAMPLER_WORKERS + k * FD_SAMPLER_PER_WORKER +
						  FD_SAMPLER_CHANNEL),
		      ROLE_SAMPLER, MESSAGE_NEED_FILE);
		talks(wired(ROLE_BROKER, FD_BROKER_WORKERS + k), ROLE_BROKER,
		      wired(SLOT_WORKER(k), FD_SYMBOLIZER_BROKER), ROLE_SYMBOLIZER,
		      MESSAGE_PROCESS_INFO);
	}
	for (int slot = ROLE_LOADER; slot < SLOT_WORKER(3); slot++)
		talks(wired(slot, FD_SUPERVISOR), slot_role(slot),
		      wiring_fd(OBJECT_CONTROL, (uint32_t)slot, SIDE_A), ROLE_SUPERVISOR,
		      MESSAGE_DRAINED);
}

static void what_nobody_uses_is_not_there(void **state)
{
	(void)state;
	assert_int_equal(wired(ROLE_EXPORTER, FD_EXPORTER_OUTPUT), 0);
	assert_int_equal(wired(ROLE_EXPORTER, FD_EXPORTER_SPOOL + DESTINATION_FILE), 0);
	assert_true(wired(ROLE_EXPORTER, FD_EXPORTER_SPOOL + DESTINATION_REMOTE) > 0);
	assert_int_equal(wired(ROLE_VIEWER, FD_VIEWER_LEDGERS + SLOT_WORKER(3)), 0);
	assert_true(wired(ROLE_VIEWER, FD_VIEWER_LEDGERS + SLOT_WORKER(2)) > 0);
}

/* A replaced queue and ledger hold what the old ones held, in other memory. */
static void replaced_memory_is_a_copy(void **state)
{
	struct record_header record = {.len_bytes = sizeof(record)};
	struct ledger_writer ledger;
	struct queue in, out;
	ino_t before = inode(wired(ROLE_SAMPLER, FD_LEDGER));
	char got[256];

	(void)state;
	assert_int_equal(ledger_open(&ledger, wired(ROLE_SAMPLER, FD_LEDGER)), 0);
	ledger_add(&ledger, C_taken, 42);
	ledger_commit(&ledger);
	assert_int_equal(queue_open_producer(&in, wiring_fd(OBJECT_SAMPLES, 1, SIDE_RW),
					     wiring_fd(OBJECT_SAMPLES, 1, SIDE_TAIL_RO)),
			 0);
	assert_int_equal(queue_push(&in, &record, sizeof(record)), 0);
	queue_publish(&in, in.cursor);

	assert_int_equal(wiring_replace(), 0);

	assert_int_not_equal(inode(wired(ROLE_SAMPLER, FD_LEDGER)), before);
	assert_int_equal(ledger_open(&ledger, wired(ROLE_SAMPLER, FD_LEDGER)), 0);
	assert_int_equal(ledger.now.counter[C_taken], 42);
	/* The old producer reaches nobody any more. */
	queue_push(&in, &record, sizeof(record));
	queue_publish(&in, in.cursor);
	assert_int_equal(queue_open_consumer(&out, wiring_fd(OBJECT_SAMPLES, 1, SIDE_TAIL_RW),
					     wiring_fd(OBJECT_SAMPLES, 1, SIDE_RO)),
			 0);
	assert_int_equal(queue_used(&out), sizeof(record));
	assert_int_equal(queue_next(&out, got, sizeof(got)), sizeof(record));
	queue_close(&in);
	queue_close(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_unique_in_every_role),
		cmocka_unit_test(queues_meet),
		cmocka_unit_test(channels_meet),
		cmocka_unit_test(what_nobody_uses_is_not_there),
		cmocka_unit_test(replaced_memory_is_a_copy),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
