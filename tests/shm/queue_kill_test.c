/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Producer and consumer are killed with -9, by turns, at random moments, and started again on the
 * same memfds. Both work as shm/ledger.h says: batch, ledger_commit(), then publish or release.
 *
 * Every record carries its number among the pushed and how many were dropped before it, so that the
 * consumer sees a gap, a duplicate or a torn record at once; in the end the two ledgers must agree:
 * produced = pushed + dropped, and consumed = pushed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shm/ledger.h"
#include "shm/queue.h"

#ifdef __SANITIZE_THREAD__
#define KILLS 20 /* one thread in each process: nothing for ThreadSanitizer to see */
#else
#define KILLS 200
#endif
#define SECONDS_MAX 60
#define CAPACITY QUEUE_CAPACITY_MIN
#define POSITION 0

/* Where the children find things. */
enum { FD_CONTROL = 20, FD_OWN, FD_OTHER, FD_LEDGER };

struct control {
	atomic_int finish; /* producer: stop; consumer: leave when the queue is empty */
};

struct kill_record {
	uint32_t len_bytes, check;
	uint64_t pushed, dropped; /* this one included; before this one */
	uint8_t bytes[512];
};

static uint32_t checksum(uint64_t pushed, uint64_t dropped)
{
	uint64_t x = pushed * 0x9e3779b97f4a7c15ull ^ dropped;

	return (uint32_t)(x >> 32) ^ (uint32_t)x;
}

static uint32_t fill(struct kill_record *r, uint64_t pushed, uint64_t dropped)
{
	r->check = checksum(pushed, dropped);
	r->len_bytes = 24 + 8 * (r->check % 60);
	r->pushed = pushed;
	r->dropped = dropped;
	memset(r->bytes, (int)(r->check & 0xff), r->len_bytes - 24);
	return r->len_bytes;
}

static struct ledger_writer ledger; /* 10 KiB: not on the stack */

static int producer_main(struct control *control)
{
	struct kill_record r;
	struct queue q;

	if (queue_open_producer(&q, FD_OWN, FD_OTHER) || ledger_open(&ledger, FD_LEDGER))
		return 10;
	q.cursor = ledger.now.position[POSITION];
	queue_publish(&q, q.cursor);
	while (!atomic_load(&control->finish)) {
		unsigned batch = 1 + checksum(ledger.now.counter[C_taken], 1) % 40;

		for (unsigned i = 0; i < batch; i++) {
			uint64_t pushed = ledger.now.counter[C_sampler_samples] + 1;
			uint64_t dropped = ledger.now.counter[C_lost_sampler_queue_full];
			int err = queue_push(&q, &r, fill(&r, pushed, dropped));

			if (err && err != -ENOBUFS)
				return 11;
			ledger_add(&ledger, C_taken, 1);
			ledger_add(&ledger, err ? C_lost_sampler_queue_full : C_sampler_samples, 1);
		}
		ledger.now.position[POSITION] = q.cursor;
		ledger_commit(&ledger);
		queue_publish(&q, q.cursor);
	}
	return 0;
}

static int consumer_main(struct control *control)
{
	struct kill_record r, want;
	struct queue q;

	if (queue_open_consumer(&q, FD_OWN, FD_OTHER) || ledger_open(&ledger, FD_LEDGER))
		return 10;
	q.cursor = ledger.now.position[POSITION];
	queue_release(&q, q.cursor);
	for (;;) {
		int finish = atomic_load(&control->finish);
		unsigned batch = 1 + checksum(ledger.now.counter[C_symbolizer_samples], 2) % 40;
		long got = 0;

		while (batch-- && (got = queue_next(&q, &r, sizeof(r))) > 0) {
			ledger_add(&ledger, C_symbolizer_samples, 1);
			fill(&want, ledger.now.counter[C_symbolizer_samples], r.dropped);
			if (got != (long)want.len_bytes || memcmp(&r, &want, (size_t)got))
				return 12;
		}
		if (got < 0)
			return 11;
		ledger.now.position[POSITION] = q.cursor;
		ledger_commit(&ledger);
		queue_release(&q, q.cursor);
		if (got == 0 && finish > 1)
			return 0;
		if (got == 0)
			queue_wait(&q, 10);
	}
}

struct side {
	const char *name;
	int own, other, ledger;
	pid_t pid;
};

static pid_t start(const struct side *side, int control)
{
	const int fds[] = {control, side->own, side->other, side->ledger};
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 4; i++)
		if (dup2(fds[i], FD_CONTROL + i) < 0)
			_exit(20);
	execl("/proc/self/exe", "queue_kill_test", side->name, (char *)NULL);
	_exit(21);
}

static int fail(const char *what, const char *who, int status)
{
	printf("%s: %s (wait status 0x%x)\n", who, what, status);
	return 1;
}

/* Kill `side` after a random moment, and start it again. 0, or 1 when it had ended by itself. */
static int kill_and_restart(struct side *side, int control)
{
	int status;

	usleep(1000 + (useconds_t)(rand() % 40000));
	if (waitpid(side->pid, &status, WNOHANG) != 0)
		return fail("ended by itself", side->name, status);
	kill(side->pid, SIGKILL);
	waitpid(side->pid, &status, 0);
	if (!WIFSIGNALED(status))
		return fail("ended by itself", side->name, status);
	side->pid = start(side, control);
	return 0;
}

static int finish(struct side *side)
{
	int status;

	for (int i = 0; i < 1000; i++) {
		if (waitpid(side->pid, &status, WNOHANG) == side->pid) {
			side->pid = 0;
			return status ? fail("failed", side->name, status) : 0;
		}
		usleep(10000);
	}
	return fail("does not end", side->name, 0);
}

static int books(const struct segment ledgers[2], int kills)
{
	static struct ledger_entry p, c;
	uint64_t produced, pushed, dropped, consumed;

	if (ledger_read(ledger_map(ledgers[0].ro), &p) || ledger_read(ledger_map(ledgers[1].ro), &c))
		return fail("ledger cannot be read", "books", 0);
	produced = p.counter[C_taken];
	pushed = p.counter[C_sampler_samples];
	dropped = p.counter[C_lost_sampler_queue_full];
	consumed = c.counter[C_symbolizer_samples];
	printf("%d kills: produced %llu = pushed %llu + dropped %llu; consumed %llu\n", kills,
	       (unsigned long long)produced, (unsigned long long)pushed,
	       (unsigned long long)dropped, (unsigned long long)consumed);
	if (produced != pushed + dropped || consumed != pushed || pushed == 0 || dropped == 0 ||
	    p.position[POSITION] != c.position[POSITION])
		return fail("do not balance", "books", 0);
	return 0;
}

static int run(void)
{
	struct queue_segments q;
	struct segment ledgers[2], control_segment;
	struct control *control;
	time_t end = time(NULL) + SECONDS_MAX;
	int faults = 0, kills = 0;

	if (queue_create(&q, "kill", CAPACITY) || ledger_create(&ledgers[0], "producer") ||
	    ledger_create(&ledgers[1], "consumer") ||
	    segment_create(&control_segment, "control", sizeof(*control)))
		return fail("cannot be made", "segments", 0);
	control = segment_map(control_segment.rw, SEGMENT_PAGE, 1);

	struct side sides[2] = {
		{"producer", q.producer.rw, q.consumer.ro, ledgers[0].rw, 0},
		{"consumer", q.consumer.rw, q.producer.ro, ledgers[1].rw, 0},
	};

	for (int i = 0; i < 2; i++)
		sides[i].pid = start(&sides[i], control_segment.rw);
	for (; kills < KILLS && !faults && time(NULL) < end; kills++)
		faults += kill_and_restart(&sides[kills % 2], control_segment.rw);
	if (kills < KILLS / 4)
		faults += fail("too few in the time there is", "kills", kills);
	/* The producer ends first; then whatever it published has to arrive. */
	atomic_store(&control->finish, 1);
	faults += finish(&sides[0]);
	atomic_store(&control->finish, 2);
	faults += finish(&sides[1]);
	for (int i = 0; i < 2; i++)
		if (sides[i].pid > 0)
			kill(sides[i].pid, SIGKILL);
	return faults ? faults : books(ledgers, kills);
}

int main(int argc, char **argv)
{
	struct control *control;

	if (argc < 2) {
		unsigned seed = (unsigned)time(NULL);

		printf("seed %u\n", seed);
		srand(seed);
		return run() ? 1 : 0;
	}
	control = segment_map(FD_CONTROL, SEGMENT_PAGE, 1);
	if (!control)
		return 9;
	return strcmp(argv[1], "producer") == 0 ? producer_main(control) : consumer_main(control);
}
