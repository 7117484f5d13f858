/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "supervisor/wiring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "proto/channel.h"
#include "shm/ledger.h"
#include "shm/queue.h"

enum kind { KIND_GIVEN, KIND_PAIR, KIND_LEDGER, KIND_SEGMENT, KIND_QUEUE };
enum count { ONE, SLOTS, WORKERS, DESTINATIONS, SIDEBAND, CHUNKS, PAIRS };

static const struct {
	const char *name;
	enum kind kind;
	enum count count;
	size_t bytes; /* offset of the size in struct config */
} objects[OBJECT_COUNT] = {
#define OBJECT(NAME, kind, count, bytes) {#NAME, KIND_##kind, count, offsetof(struct config, bytes)},
	OBJECTS(OBJECT)
#undef OBJECT
};

/*
 * stride 0: the process gets the one instance that is its own (of its slot or worker, or the only
 * one). Otherwise it gets all of them, stride numbers apart.
 */
static const struct {
	enum role role; /* ROLE_ANY = everybody */
	int number, stride;
	enum object object;
	enum side side;
} rows[] = {
	/* clang-format off */
#define ROW(role, number, stride, object, side) \
	{ROLE_##role, FD_##number, stride, OBJECT_##object, SIDE_##side}
	ROW(ANY, SUPERVISOR, 0, CONTROL, B),
	ROW(LOADER, CONFIG, 0, CONFIG, RO),
	ROW(SAMPLER, CONFIG, 0, CONFIG, RO),
	ROW(BROKER, CONFIG, 0, CONFIG, RO),
	ROW(SYMBOLIZER, CONFIG, 0, CONFIG, RO),
	ROW(EXPORTER, CONFIG, 0, SECRETS, RO),
	ROW(VIEWER, CONFIG, 0, SECRETS, RO),
	ROW(ANY, LEDGER, 0, LEDGER, RW),
	ROW(LOADER, LOADER_CHUNKS, 0, CHUNKS, A),
	ROW(SAMPLER, SAMPLER_BROKER, 0, SAMPLER_BROKER, A),
	ROW(SAMPLER, SAMPLER_EVENTS, 0, EVENTS, A),
	ROW(SAMPLER, SAMPLER_PROCS, 0, PROCS, A),
	ROW(SAMPLER, SAMPLER_RANGES, 0, RANGES, A),
	ROW(SAMPLER, SAMPLER_CPUS, 0, CPUS, A),
	ROW(SAMPLER, SAMPLER_FILES, 0, FILES, A),
	ROW(SAMPLER, SAMPLER_CHUNKS, 1, CHUNK, A),
	ROW(SAMPLER, SIDEBAND, 1, SIDEBAND, A),
#define EACH FD_SAMPLER_PER_WORKER
	ROW(SAMPLER, SAMPLER_WORKERS + FD_SAMPLER_CHANNEL, EACH, SAMPLER_WORKER, A),
	ROW(SAMPLER, SAMPLER_WORKERS + FD_SAMPLER_SAMPLES_OWN, EACH, SAMPLES, RW),
	ROW(SAMPLER, SAMPLER_WORKERS + FD_SAMPLER_SAMPLES_OTHER, EACH, SAMPLES, TAIL_RO),
	ROW(SAMPLER, SAMPLER_WORKERS + FD_SAMPLER_PROCESS_OWN, EACH, PROCESSES, RW),
	ROW(SAMPLER, SAMPLER_WORKERS + FD_SAMPLER_PROCESS_OTHER, EACH, PROCESSES, TAIL_RO),
#undef EACH
	ROW(BROKER, BROKER_SAMPLER, 0, SAMPLER_BROKER, B),
	ROW(BROKER, BROKER_WORKERS, 1, BROKER_WORKER, A),
	ROW(BROKER, BROKER_LEDGERS, 1, LEDGER, RO),
	ROW(SYMBOLIZER, SYMBOLIZER_SAMPLER, 0, SAMPLER_WORKER, B),
	ROW(SYMBOLIZER, SYMBOLIZER_BROKER, 0, BROKER_WORKER, B),
	ROW(SYMBOLIZER, SYMBOLIZER_PEERS, 1, PEERS, A),
	ROW(SYMBOLIZER, SYMBOLIZER_SAMPLES_OTHER, 0, SAMPLES, RO),
	ROW(SYMBOLIZER, SYMBOLIZER_SAMPLES_OWN, 0, SAMPLES, TAIL_RW),
	ROW(SYMBOLIZER, SYMBOLIZER_PROCESS_OTHER, 0, PROCESSES, RO),
	ROW(SYMBOLIZER, SYMBOLIZER_PROCESS_OWN, 0, PROCESSES, TAIL_RW),
	ROW(SYMBOLIZER, SYMBOLIZER_OUTPUT_OWN, 0, OUTPUT, RW),
	ROW(SYMBOLIZER, SYMBOLIZER_OUTPUT_OTHER, 0, OUTPUT, TAIL_RO),
	ROW(SYMBOLIZER, SYMBOLIZER_LOG, 0, LOG_A, RW),
	ROW(SYMBOLIZER, SYMBOLIZER_LOG + 1, 0, LOG_B, RW),
	ROW(SYMBOLIZER, SYMBOLIZER_KALLSYMS, 0, KALLSYMS, A),
	ROW(SYMBOLIZER, SYMBOLIZER_MODULES, 0, MODULES, A),
	ROW(EXPORTER, EXPORTER_SPOOL, 1, SPOOL, RW),
	ROW(EXPORTER, EXPORTER_OUTPUT, 0, FILE, A),
#define EACH FD_EXPORTER_PER_WORKER
	ROW(EXPORTER, EXPORTER_WORKERS + FD_EXPORTER_OUTPUT_OTHER, EACH, OUTPUT, RO),
	ROW(EXPORTER, EXPORTER_WORKERS + FD_EXPORTER_OUTPUT_OWN, EACH, OUTPUT, TAIL_RW),
	ROW(EXPORTER, EXPORTER_WORKERS + FD_EXPORTER_LOG_A, EACH, LOG_A, RO),
	ROW(EXPORTER, EXPORTER_WORKERS + FD_EXPORTER_LOG_B, EACH, LOG_B, RO),
#undef EACH
	ROW(VIEWER, VIEWER_HTTP, 0, HTTP, A),
	ROW(VIEWER, VIEWER_INTAKE, 0, INTAKE, A),
	ROW(VIEWER, VIEWER_LEDGERS, 1, LEDGER, RO),
#undef ROW
	/* clang-format on */
};

union handle {
	int fd[4]; /* by enum side; 0 = none, which is /dev/null in the supervisor as well */
	struct segment segment;
	struct queue_segments queue;
};

static const struct config *config;
static union handle handles[OBJECT_COUNT][CONFIG_CPUS_MAX];

static uint32_t wiring_count(enum object object)
{
	const uint32_t counts[] = {1, SLOT_COUNT, config->workers, DESTINATION_COUNT,
				   config->runtime.sideband, config->runtime.chunks,
				   WORKERS_MAX * config->workers};

	return counts[objects[object].count];
}

/* Bytes of one instance; 0 for those that nobody uses. */
static size_t wiring_size(enum object object, uint32_t instance)
{
	const bool used[] = {[DESTINATION_VIEWER] = config->viewer.enabled,
			     [DESTINATION_REMOTE] = config->remote.url[0] != 0,
			     [DESTINATION_FILE] = config->format != FORMAT_NONE};

	if (objects[object].kind == KIND_LEDGER)
		return instance < SLOT_WORKER(config->workers) ? LEDGER_BYTES : 0;
	if (objects[object].kind < KIND_SEGMENT || (object == OBJECT_SPOOL && !used[instance]))
		return 0;
	return *(const uint64_t *)((const char *)config + objects[object].bytes);
}

static int wiring_make(enum object object, uint32_t instance)
{
	union handle *handle = &handles[object][instance];
	size_t size = wiring_size(object, instance);

	if (objects[object].count == PAIRS && instance / WORKERS_MAX >= instance % WORKERS_MAX)
		return 0;
	if (objects[object].kind == KIND_PAIR)
		return channel_pair(handle->fd);
	if (size == 0)
		return 0;
	if (objects[object].kind == KIND_LEDGER)
		return ledger_create(&handle->segment, objects[object].name);
	if (objects[object].kind == KIND_SEGMENT)
		return segment_create(&handle->segment, objects[object].name, size);
	return queue_create(&handle->queue, objects[object].name, size);
}

static void wiring_close(union handle *handle)
{
	for (int i = 0; i < 4; i++)
		if (handle->fd[i] > 0)
			close(handle->fd[i]);
	memset(handle, 0, sizeof(*handle));
}

static int wiring_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? 0 : fd;
}

int wiring_create(const struct config *from)
{
	int err = 0;

	config = from;
	for (enum object o = 0; o < OBJECT_COUNT; o++)
		for (uint32_t i = 0; i < wiring_count(o) && !err; i++)
			err = wiring_make(o, i);
	for (uint32_t k = 0; k < config->workers; k++) {
		wiring_give(OBJECT_KALLSYMS, k, SIDE_A, wiring_open("/proc/kallsyms"));
		wiring_give(OBJECT_MODULES, k, SIDE_A, wiring_open("/proc/modules"));
	}
	return err;
}

void wiring_give(enum object object, uint32_t instance, enum side side, int fd)
{
	int *place = &handles[object][instance].fd[side];

	if (*place > 0)
		close(*place);
	*place = fd;
}

int wiring_fd(enum object object, uint32_t instance, enum side side)
{
	return handles[object][instance].fd[side];
}

/* The end of the pair between this worker and another; none to itself. */
static int wiring_peer(enum object object, uint32_t worker, uint32_t peer)
{
	return worker < peer ? wiring_fd(object, worker * WORKERS_MAX + peer, SIDE_A)
			     : wiring_fd(object, peer * WORKERS_MAX + worker, SIDE_B);
}

size_t wiring_list(int slot, struct wire *wires)
{
	const uint32_t worker = (uint32_t)(slot - ROLE_SYMBOLIZER);
	const uint32_t own[] = {[ONE] = 0, [SLOTS] = (uint32_t)slot, [WORKERS] = worker};
	size_t n = 0;

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		enum object o = rows[r].object;
		uint32_t first = rows[r].stride ? 0 : own[objects[o].count];
		bool peers = objects[o].count == PAIRS;
		uint32_t last = peers		 ? config->workers
				: rows[r].stride ? wiring_count(o)
						 : first + 1;

		if (rows[r].role != ROLE_ANY && rows[r].role != slot_role(slot))
			continue;
		for (uint32_t i = first; i < last; i++)
			wires[n++] = (struct wire){rows[r].number + rows[r].stride * (int)i,
						   peers ? wiring_peer(o, worker, i)
							 : wiring_fd(o, i, rows[r].side)};
	}
	return n;
}

int wiring_renew_control(int slot)
{
	wiring_close(&handles[OBJECT_CONTROL][slot]);
	return wiring_make(OBJECT_CONTROL, (uint32_t)slot);
}

/* Holes stay holes: a spool that is hardly used costs hardly anything. */
static int wiring_copy(int to, int from)
{
	off_t at = 0, end;

	while ((at = lseek(from, at, SEEK_DATA)) >= 0) {
		end = lseek(from, at, SEEK_HOLE);
		if (end < 0 || lseek(to, at, SEEK_SET) < 0)
			return -errno;
		while (at < end)
			if (sendfile(to, from, &at, (size_t)(end - at)) <= 0)
				return -EIO;
	}
	return errno == ENXIO ? 0 : -errno;
}

static int wiring_replace_object(enum object object, uint32_t instance)
{
	union handle *handle = &handles[object][instance], old = *handle;
	int err;

	if (objects[object].kind == KIND_GIVEN || old.fd[SIDE_A] == 0)
		return 0;
	err = wiring_make(object, instance);
	if (err) {
		*handle = old;
		return err;
	}
	if (objects[object].kind != KIND_PAIR)
		err = wiring_copy(handle->fd[SIDE_RW], old.fd[SIDE_RW]);
	if (objects[object].kind == KIND_QUEUE && !err)
		err = wiring_copy(handle->fd[SIDE_TAIL_RW], old.fd[SIDE_TAIL_RW]);
	wiring_close(&old);
	return err;
}

int wiring_replace(void)
{
	int err = 0;

	for (enum object o = OBJECT_CONFIG; o < OBJECT_COUNT; o++)
		for (uint32_t i = 0; i < wiring_count(o) && !err; i++)
			err = wiring_replace_object(o, i);
	return err;
}
