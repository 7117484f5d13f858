/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "supervisor/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/init.h"
#include "supervisor/log.h"
#include "supervisor/spawn.h"
#include "supervisor/wiring.h"

#define NS_PER_MS 1000000ull
#define TICK_MS 250
#define TICK_PENDING_MS 20 /* while something is about to be started or to die */
#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 1000
#define SETTLED_MS 10000 /* a process that lived so long starts again at once */
#define DEATH_MS 2000	 /* time to die in, after SIGKILL */
#define LOADER_MS 60000	 /* it has no turns; a slow machine verifies slowly */
#define MESSAGES_PER_EVENT 64

static int epoll_fd;
static const struct config *config;
static watch_message_fn *on_message;
static struct slot slots[SLOT_COUNT];
static bool stopping, replacing;

uint64_t watch_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

void watch_init(int epoll, const struct config *from, watch_message_fn *handler)
{
	epoll_fd = epoll;
	config = from;
	on_message = handler;
	memset(slots, 0, sizeof(slots));
	stopping = replacing = false;
}

void watch_add(int fd, enum event_kind kind, uint32_t index, uint32_t generation)
{
	struct epoll_event event = {.events = EPOLLIN};

	/* A pidfd stays readable; one that waitid() does not confirm is looked at by the tick. */
	if (kind == EVENT_PROCESS)
		event.events |= EPOLLET;
	event.data.u64 = (uint64_t)generation << 32 | (uint64_t)kind << 16 | index;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event))
		log_error("cannot watch a descriptor: %m");
}

struct slot *watch_slot(int slot)
{
	return &slots[slot];
}

static void watch_map_progress(struct slot *s, int slot)
{
	struct queue *q = &s->samples;

	if (s->ledger)
		munmap((void *)(uintptr_t)s->ledger, LEDGER_BYTES);
	s->ledger = ledger_map(wiring_fd(OBJECT_LEDGER, (uint32_t)slot, SIDE_RO));
	if (slot_role(slot) == ROLE_SYMBOLIZER) {
		uint32_t k = (uint32_t)(slot - ROLE_SYMBOLIZER);

		if (q->head)
			munmap(q->head, SEGMENT_PAGE);
		if (q->tail)
			munmap(q->tail, SEGMENT_PAGE);
		q->head = segment_map(wiring_fd(OBJECT_SAMPLES, k, SIDE_RO), SEGMENT_PAGE, 0);
		q->tail = segment_map(wiring_fd(OBJECT_SAMPLES, k, SIDE_TAIL_RO), SEGMENT_PAGE, 0);
	}
	s->turns_ns = s->mark_ns = watch_now_ns();
}

/*
 * The time of this process, by which it stands still: what it spends waiting for a CPU, the second
 * number of its schedstat (proc(5)), is not its own. The kernel adds a wait when it is over, so
 * that this may go back.
 */
static uint64_t watch_own_ns(const struct slot *s)
{
	unsigned long long waited = 0;
	char path[64], text[64] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", s->pid);
	fd = config->containers ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		sscanf(text, "%*u %llu", &waited);
	if (fd >= 0)
		close(fd);
	return watch_now_ns() - waited;
}

static bool watch_since(uint64_t own_ns, uint64_t since_ns, uint64_t limit_ms)
{
	return (int64_t)(own_ns - since_ns) > (int64_t)(limit_ms * NS_PER_MS);
}

static void watch_signal(struct slot *s)
{
	syscall(SYS_pidfd_send_signal, s->pidfd, SIGKILL, NULL, 0);
	/* No signal goes into another pid namespace: there it is the init that sees this and kills. */
	shutdown(s->channel.fd, SHUT_WR);
	s->state = SLOT_KILLED;
	s->killed_ns = watch_own_ns(s);
}

static void watch_retry(struct slot *s)
{
	s->state = SLOT_WAITING;
	s->retry_ns = watch_now_ns() + s->backoff_ms * NS_PER_MS;
	s->backoff_ms = s->backoff_ms ? 2 * s->backoff_ms : BACKOFF_FIRST_MS;
	if (s->backoff_ms > BACKOFF_MAX_MS)
		s->backoff_ms = BACKOFF_MAX_MS;
}

/* Its pid, or -errno. */
static pid_t watch_begin(int slot)
{
	static struct wire wires[WIRES_MAX];
	struct slot *s = &slots[slot];
	pid_t pid = s->offered;
	int err = pid ? 0 : wiring_renew_control(slot);

	channel_init(&s->channel, wiring_fd(OBJECT_CONTROL, (uint32_t)slot, SIDE_A),
		     ROLE_SUPERVISOR, slot_role(slot), false);
	if (err)
		return err;
	if (!pid) {
		pid = spawn_process(slot, config, wires, wiring_list(slot, wires));
		s->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		return pid;
	}
	s->offered = 0;
	err = init_send(&s->channel, wires, wiring_list(slot, wires));
	if (err)
		close(s->pidfd);
	return err ? err : pid;
}

/* In containers one can be started when it is offered. */
static bool watch_startable(const struct slot *s)
{
	return s->state == SLOT_WAITING && (s->offered || !config->containers);
}

static void watch_spawn(int slot)
{
	struct slot *s = &slots[slot];
	pid_t pid;

	s->state = SLOT_WAITING;
	if (!watch_startable(s))
		return;
	pid = watch_begin(slot);
	if (pid < 0) {
		log_error("cannot start sconce-%s: %s", role_name(slot_role(slot)), strerror(-pid));
		watch_retry(s);
		return;
	}
	s->pid = pid;
	s->restarts = s->generation++;
	s->state = SLOT_RUNNING;
	s->started_ns = watch_now_ns();
	s->drain_sent = s->drained = false;
	watch_add(s->pidfd, EVENT_PROCESS, (uint32_t)slot, s->generation);
	watch_add(s->channel.fd, EVENT_CHANNEL, (uint32_t)slot, s->generation);
	watch_map_progress(s, slot);
}

void watch_start(int slot)
{
	slots[slot].backoff_ms = 0;
	watch_spawn(slot);
}

void watch_kill(int slot, const char *why)
{
	struct slot *s = &slots[slot];

	if (s->state != SLOT_RUNNING)
		return;
	log_warn("ending %s in slot %d, pid %d: %s", role_name(slot_role(slot)), slot, s->pid, why);
	watch_signal(s);
}

static void watch_read(int slot)
{
	struct message message;
	int fds[MESSAGE_FDS_MAX], err = 0;
	size_t fds_n;

	for (int i = 0; i < MESSAGES_PER_EVENT && !err; i++) {
		err = channel_recv(&slots[slot].channel, &message, fds, &fds_n);
		if (!err)
			on_message(slot, &message, fds, fds_n);
	}
	if (err == -EPROTO)
		watch_kill(slot, "it broke the protocol");
	/* It ends, or it has to: nobody is heard or told anything any more without that channel. */
	if (err == -EPIPE && slots[slot].state == SLOT_RUNNING)
		watch_signal(&slots[slot]);
}

/* The process of this slot is no longer ours to wait for. */
static void watch_forget(struct slot *s)
{
	/* Before the close: a copy in a child that has not reached exec would keep it in the set. */
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, s->pidfd, NULL);
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, s->channel.fd, NULL);
	close(s->pidfd);
	s->pid = 0;
	if (watch_now_ns() - s->started_ns > SETTLED_MS * NS_PER_MS)
		s->backoff_ms = 0;
	watch_retry(s);
}

static void watch_reap(int slot)
{
	struct slot *s = &slots[slot];
	struct pollfd wait = {.fd = s->pidfd, .events = POLLIN};
	siginfo_t info = {0};
	char how[40] = ", as its container logs";
	bool ours = waitid(P_PIDFD, (id_t)s->pidfd, &info, WEXITED | WNOHANG) == 0;

	if (ours ? info.si_pid == 0 : errno != ECHILD || poll(&wait, 1, 0) <= 0)
		return;
	watch_read(slot); /* its last words */
	if (ours)
		snprintf(how, sizeof(how), " by %s %d",
			 info.si_code == CLD_EXITED ? "exit" : "signal", info.si_status);
	if (!stopping && slot != ROLE_LOADER)
		log_warn("%s in slot %d, pid %d, ended%s; starting it again in %d ms",
			 role_name(slot_role(slot)), slot, s->pid, how, (int)s->backoff_ms);
	watch_forget(s);
	/* Whether the loader has to run again is not for us to say. */
	if (stopping || slot == ROLE_LOADER)
		s->state = SLOT_OFF;
}

/* Is there work, and what moves when it gets done? */
static bool watch_pending(struct slot *s, int slot, uint64_t *mark)
{
	static struct ledger_entry entry;

	if (slot_role(slot) == ROLE_SYMBOLIZER && s->samples.head && s->samples.tail) {
		*mark = atomic_load(&s->samples.tail->tail);
		return queue_used(&s->samples) > 0;
	}
	if (slot == ROLE_BROKER && s->ledger && ledger_read(s->ledger, &entry) == 0) {
		*mark = entry.counter[C_broker_answers];
		return entry.counter[C_broker_requests] > *mark;
	}
	return false;
}

static void watch_progress(int slot)
{
	struct slot *s = &slots[slot];
	uint64_t now = watch_own_ns(s), mark = s->mark;
	uint64_t turns = s->ledger ? atomic_load(&s->ledger->turns) : 0;
	uint64_t limit_ms = slot == ROLE_LOADER ? LOADER_MS : config->stuck_ms;

	if (turns != s->turns) {
		s->turns = turns;
		s->turns_ns = now;
	}
	if (!watch_pending(s, slot, &mark) || mark != s->mark) {
		s->mark = mark;
		s->mark_ns = now;
	}
	if (watch_since(now, s->turns_ns, limit_ms))
		watch_kill(slot, "no sign of life");
	else if (watch_since(now, s->mark_ns, limit_ms))
		watch_kill(slot, "no progress");
}

void watch_replace_all(void)
{
	replacing = true;
	for (int peer = ROLE_SAMPLER; peer < SLOT_COUNT; peer++)
		watch_kill(peer, "what is shared with others is replaced");
}

static void watch_abandon(int slot)
{
	struct slot *s = &slots[slot];

	log_error("%s in slot %d, pid %d, does not die; it is abandoned and replaced",
		  role_name(slot_role(slot)), slot, s->pid);
	s->abandoned++;
	watch_forget(s);
	if (stopping || slot == ROLE_LOADER) {
		s->state = SLOT_OFF;
		return;
	}
	/* Everyone holds something that it shared with somebody. */
	watch_replace_all();
}

/* When all have ended, nobody writes any more, and the copies are exact. */
static void watch_replace(void)
{
	int err;

	for (int i = ROLE_SAMPLER; i < SLOT_COUNT; i++)
		if (slots[i].pid)
			return;
	err = wiring_replace();
	if (err)
		log_error("cannot replace the shared memory: %s", strerror(-err));
	replacing = false;
}

bool watch_offer(int slot, int fd, int pidfd, pid_t pid)
{
	struct slot *s = &slots[slot];

	/* Of a death we may hear later than of the offer that follows it. */
	if (s->pid)
		watch_reap(slot);
	if (s->pid || pid <= 0)
		return false;
	if (s->offered)
		close(s->pidfd);
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	wiring_give(OBJECT_CONTROL, (uint32_t)slot, SIDE_A, fd);
	s->offered = pid;
	s->pidfd = pidfd;
	return true;
}

void watch_on_process(uint32_t slot, uint32_t generation)
{
	if (slots[slot].generation == generation && slots[slot].pid)
		watch_reap((int)slot);
}

void watch_on_channel(uint32_t slot, uint32_t generation)
{
	if (slots[slot].generation == generation && slots[slot].pid)
		watch_read((int)slot);
}

int watch_tick(void)
{
	int next_ms = TICK_MS;

	for (int i = 0; i < SLOT_COUNT; i++) {
		struct slot *s = &slots[i];

		if (s->pid)
			watch_reap(i);
		if (s->state == SLOT_RUNNING)
			watch_progress(i);
		else if (s->state == SLOT_KILLED &&
			 watch_since(watch_own_ns(s), s->killed_ns, DEATH_MS))
			watch_abandon(i);
	}
	if (replacing)
		watch_replace();
	for (int i = 0; i < SLOT_COUNT; i++) {
		struct slot *s = &slots[i];

		if (watch_startable(s) && !replacing && watch_now_ns() >= s->retry_ns)
			watch_spawn(i);
		if (watch_startable(s) || s->state == SLOT_KILLED)
			next_ms = TICK_PENDING_MS;
	}
	return next_ms;
}

bool watch_stop(void)
{
	bool left = false;

	stopping = true;
	for (int i = 0; i < SLOT_COUNT; i++) {
		struct slot *s = &slots[i];

		if (s->state == SLOT_RUNNING)
			watch_signal(s);
		if (s->state == SLOT_WAITING)
			s->state = SLOT_OFF;
		left |= s->state != SLOT_OFF;
	}
	return !left;
}
