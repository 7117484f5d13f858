/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sconce-sampler: takes samples and side-band records from the kernel, keeps what every process has
 * mapped, and routes samples to the workers. Holds BPF, perf and queue fds and never a capability;
 * parses nothing but fixed fields of kernel records. Allocates at start and never after.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "sampler/inbox.h"
#include "sampler/pump.h"
#include "sampler/store.h"
#include "sampler/tables.h"
#include "supervisor/child.h"
#include "supervisor/sandbox.h"

#define TURN_MS	      100
#define HURRY_TURN_MS 5
#define REPORT_NS     1000000000ull
#define CHUNK_WAIT_NS 1000000000ull
#define CHUNK_TRIES   5u
#define DRAIN_WAIT_NS 500000000ull /* for answers of the broker */

static struct {
	struct child child;
	struct pump pump;
	struct inbox inbox;
	struct processes processes;
	struct files files;
	struct workers workers;
	struct store store;
	uint64_t chunk_after_ns;
	uint32_t chunks_asked; /* since there was one */
	int epoll;
	uint64_t drain_end_ns, report_after_ns[SLOT_COUNT];
} self;

static void *map_table(int fd, size_t bytes, int prot, const char *what)
{
	void *p = mmap(NULL, bytes, prot, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		fatal("cannot map the table of %s: %m", what);
	return p;
}

static void check(int err, const char *what)
{
	if (err)
		fatal("cannot open %s: %s", what, strerror(-err));
}

static void open_tables(const struct config *config)
{
	struct record_range *ranges =
	    map_table(FD_SAMPLER_RANGES, config->ranges_max * sizeof(*ranges),
		      PROT_READ | PROT_WRITE, "address ranges");
	int cleared;

	self.pump.cpus_n = config->runtime.cpus;
	self.pump.everyone = config->all;
	self.pump.cpus = map_table(FD_SAMPLER_CPUS, self.pump.cpus_n * sizeof(struct bpf_cpu),
				   PROT_READ, "cpus");
	cleared = store_open(&self.store, FD_SAMPLER_FILES, FD_SAMPLER_CHUNKS, config->unwind_bytes);
	if (cleared < 0)
		fatal("cannot map the unwind tables: %s", strerror(-cleared));
	if (tables_clear() + (uint32_t)cleared > 0) {
		/* Runs of the BPF program that still look at what was there last microseconds. */
		struct timespec pause = {.tv_nsec = 20000000};

		nanosleep(&pause, NULL);
	}
	processes_init(&self.processes, config->processes_max, ranges, config->ranges_max,
		       self.store.files);
}

static void watch(int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.fd = fd};

	if (epoll_ctl(self.epoll, EPOLL_CTL_ADD, fd, &event))
		fatal("cannot watch fd %d: %m", fd);
}

static void open_rings(const struct config *config)
{
	check(ring_open(&self.pump.ring, FD_SAMPLER_EVENTS, config->ring_bytes), "the ring buffer");
	ring_resume(&self.pump.ring, self.child.ledger.now.position[POSITION_RING]);
	/*
	 * Edge-triggered: BPF wakes us only when the ring is filling up. Level-triggered, every
	 * sample that lies there when we go to sleep would wake us at once.
	 */
	watch(FD_SAMPLER_EVENTS, EPOLLIN | EPOLLET);
	for (uint32_t i = 0; i < config->runtime.sideband; i++) {
		check(sideband_open(&self.pump.sideband, FD_SIDEBAND + (int)i,
				    config->sideband_pages),
		      "a side-band ring");
		watch(FD_SIDEBAND + (int)i, EPOLLIN | EPOLLET);
	}
}

static void open_all(void)
{
	const struct config *config = self.child.config;
	struct ledger_writer *ledger = &self.child.ledger;

	self.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (self.epoll < 0)
		fatal("epoll_create1: %m");
	open_tables(config);
	files_init(&self.files, (uint32_t)ledger->now.position[POSITION_FILE_ID]);
	check(workers_open(&self.workers, config->workers, FD_SAMPLER_WORKERS, ledger),
	      "the workers' queues");
	open_rings(config);
	channel_init(&self.pump.introduce.broker, FD_SAMPLER_BROKER, ROLE_SAMPLER, ROLE_BROKER,
		     true);
	watch(FD_SUPERVISOR, EPOLLIN);
	watch(FD_SAMPLER_BROKER, EPOLLIN);
	for (uint32_t k = 0; k < self.workers.n; k++)
		watch(self.workers.worker[k].channel.fd, EPOLLIN);
	self.pump.introduce.ledger = ledger;
	self.pump.introduce.processes = &self.processes;
	self.pump.introduce.files = &self.files;
	self.pump.introduce.workers = &self.workers;
	self.inbox.introduce = &self.pump.introduce;
	self.inbox.store = &self.store;
	self.pump.sideband.handle = pump_event;
	self.pump.sideband.arg = &self.pump;
	self.processes.on_forget = introduce_exit;
	self.processes.arg = &self.pump.introduce;
}

/* Once a second at most: it takes a moment to be replaced, and for the next one to be in order. */
static void report(int slot, int error)
{
	uint64_t now_ns = child_now_ns();

	if (now_ns < self.report_after_ns[slot])
		return;
	self.report_after_ns[slot] = now_ns + REPORT_NS;
	child_report(&self.child, slot, error);
}

static void read_messages(void)
{
	int err = inbox_read(&self.inbox, &self.pump.introduce.broker, 0);

	if (err)
		report(ROLE_BROKER, -err);
	for (uint32_t k = 0; k < self.workers.n; k++) {
		struct worker *worker = &self.workers.worker[k];

		err = inbox_read(&self.inbox, &worker->channel, k);
		if (err || worker->samples.dead || worker->process.dead)
			report(SLOT_WORKER((int)k), err ? -err : EPROTO);
		/* It is replaced on the same queues: look again. */
		worker->samples.dead = worker->process.dead = false;
	}
}

/* From the supervisor, whom we asked for it. */
static void on_chunk(uint32_t number, int fd)
{
	if (number == self.store.chunks && store_add_chunk(&self.store, fd))
		log_warn("cannot map a chunk of memory for unwind tables: %m");
	self.chunks_asked = 0;
	close(fd);
}

/* Who is not answered does without: then cold tables make room. */
static void ask_for_chunk(uint64_t now_ns)
{
	struct message_empty none = {0};

	if (!self.store.wants_chunk || now_ns < self.chunk_after_ns)
		return;
	self.chunk_after_ns = now_ns + CHUNK_WAIT_NS;
	if (self.chunks_asked++ == CHUNK_TRIES)
		self.store.chunks_max = self.store.chunks;
	else
		channel_send(&self.child.supervisor, MESSAGE_WANT_CHUNK, &none, NULL, 0);
}

/* The rings are empty, and the broker has answered what the last samples need, or has had its time.
 */
static bool drained(bool empty, uint64_t now_ns)
{
	if (!self.child.draining || self.child.drained || !empty)
		return false;
	if (self.drain_end_ns == 0)
		self.drain_end_ns = now_ns + DRAIN_WAIT_NS;
	return self.pump.introduce.unanswered == 0 || now_ns >= self.drain_end_ns;
}

static void turn(void)
{
	uint64_t now_ns = self.pump.introduce.now_ns = child_now_ns();
	bool empty;

	read_messages();
	ask_for_chunk(now_ns);
	store_count(&self.store, &self.child.ledger);
	ring_begin(&self.pump.ring);
	now_ns = child_now_ns();
	processes_sweep(&self.processes, now_ns);
	empty = pump_turn(&self.pump, now_ns);
	pump_commit(&self.pump);
	if (drained(empty, now_ns))
		child_drained(&self.child);
}

int main(int argc, char **argv)
{
	struct epoll_event events[16];

	child_start(&self.child, ROLE_SAMPLER, argc, argv);
	open_all();
	self.child.on_chunk = on_chunk;
	child_ready(&self.child, sandbox_enter(ROLE_SAMPLER, NULL));
	while (child_continue(&self.child)) {
		bool hurry = (self.child.draining && !self.child.drained) ||
			     self.pump.introduce.now_ns < self.pump.introduce.hurry_ns;

		epoll_wait(self.epoll, events, 16, hurry ? HURRY_TURN_MS : TURN_MS);
		turn();
	}
	return 0;
}
