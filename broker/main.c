/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sconce-broker: the one process that may look into what belongs to others. It acts on the
 * sampler's requests and on nothing else, reads no byte of any file that it opens, and hands what
 * it finds to the worker that the sampler named. A file on a dead server may stop it; then it is
 * replaced.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "broker/memory.h"
#include "broker/open.h"
#include "broker/other.h"
#include "supervisor/child.h"
#include "supervisor/sandbox.h"

#define TURN_MS	     500
#define SEND_WAIT_MS 100 /* for the sampler, which never waits for us */

static struct {
	struct child child;
	struct channel sampler, worker[WORKERS_MAX];
	const struct ledger *ledger[WORKERS_MAX]; /* of the workers */
	struct blame *blame;
} self;

/* Not of a process that has held us up. */
static int open_target(struct target *target, const struct message_ask_process *ask)
{
	const struct ledger *ledger = self.ledger[ask->worker];

	*target = (struct target){
	    .dir = -1, .blame = self.blame, .of_worker = ledger ? &ledger->blame : NULL};
	if (blame_refuses(self.blame, 0, ask->start_lo_ns + ask->pid))
		return -EOWNERDEAD;
	return target_open(target, ask->pid, ask->start_lo_ns, ask->start_hi_ns);
}

static void answer_sampler(enum message_type type, const void *payload)
{
	struct pollfd p = {.fd = self.sampler.fd, .events = POLLOUT};

	for (int tries = 0; tries < 2; tries++) {
		if (channel_send(&self.sampler, type, payload, NULL, 0) != -EAGAIN)
			return;
		poll(&p, 1, SEND_WAIT_MS);
	}
}

static void tell_worker(const struct target *target, const struct message_ask_process *ask)
{
	static struct message_process_info info;

	info = (struct message_process_info){.pid = ask->pid,
					     .start_lo_ns = ask->start_lo_ns,
					     .start_hi_ns = ask->start_hi_ns,
					     .exec_id = ask->exec_id};
	target_link(target, "exe", info.executable, sizeof(info.executable));
	info.cgroup_bytes =
	    (uint32_t)target_read(target, "cgroup", info.cgroup, sizeof(info.cgroup));
	channel_send(&self.worker[ask->worker], MESSAGE_PROCESS_INFO, &info, NULL, 0);
}

static uint32_t range_flags(const struct target_vma *vma)
{
	if (strcmp(vma->name, "[vdso]") == 0)
		return RANGE_VDSO;
	return vma->range.inode == 0 || strncmp(vma->name, "/memfd:", 7) == 0 ||
			       strncmp(vma->name, "/dev/zero", 9) == 0
		   ? RANGE_ANON
		   : 0;
}

/* All of them but the last piece is sent. */
static int collect_ranges(const struct target *target, struct message_ranges *out)
{
	static struct target_vma vma;
	struct target_maps maps;
	uint64_t address = 0;
	int err = target_maps_open(&maps, target);

	if (err)
		return err;
	for (uint32_t n = 0;
	     n <= MESSAGE_RANGES_PROCESS && !(err = target_maps_next(&maps, address, &vma)); n++) {
		if (out->n == MESSAGE_RANGES_MAX) {
			answer_sampler(MESSAGE_RANGES, out);
			out->first = out->n = 0;
		}
		out->range[out->n] = vma.range;
		out->range[out->n++].flags = range_flags(&vma);
		address = vma.range.end;
	}
	target_maps_close(&maps);
	return err == -ENOENT ? 0 : err;
}

static enum counter error_counter(int error)
{
	static const struct {
		int error;
		enum counter counter;
	} counters[] = {{0, C_broker_files},
			{ESRCH, C_broker_processes_gone},
			{EINVAL, C_broker_files_refused_type},
			{EOPNOTSUPP, C_broker_files_refused_fs},
			{EOWNERDEAD, C_broker_quarantined},
			{ESTALE, C_broker_files_refused_identity}};

	for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
		if (counters[i].error == error)
			return counters[i].counter;
	return C_broker_files_failed;
}

static void on_ask_process(const struct message *message)
{
	const struct message_ask_process *ask = &message->ask_process;
	static struct message_ranges out;
	struct target target;

	out = (struct message_ranges){.pid = ask->pid, .exec_id = ask->exec_id, .first = 1};
	out.start_lo_ns = ask->start_lo_ns;
	out.start_hi_ns = ask->start_hi_ns;
	out.time_ns = child_now_ns();
	out.error = -open_target(&target, ask);
	/* Of one that is gone there is nothing to tell, but nobody has to wait for it. */
	tell_worker(&target, ask);
	if (!out.error) {
		if (ask->ranges)
			out.error = -collect_ranges(&target, &out);
		if (!target_alive(&target))
			out.error = ESRCH;
		target_close(&target);
	}
	if (out.error == ESRCH || out.error == EOWNERDEAD)
		ledger_add(&self.child.ledger, error_counter(out.error), 1);
	out.last = 1;
	if (ask->ranges)
		answer_sampler(MESSAGE_RANGES, &out);
}

/* To the worker, with the fd if there is one, which it closes. 0 or an errno value. */
static int hand_over(uint32_t worker, enum message_type type, const void *payload, int fd)
{
	int error = -channel_send(&self.worker[worker], type, payload, &fd, fd >= 0);

	if (fd >= 0)
		close(fd);
	if (error == EPIPE)
		child_report(&self.child, SLOT_WORKER((int)worker), EPIPE);
	return error;
}

static void on_ask_file(const struct message *message)
{
	const struct message_ask_file *ask = &message->ask_file;
	struct message_file file = {.file_id = ask->file_id};
	struct message_file_key key = {.file_id = ask->file_id, .worker = ask->worker};
	struct target target;
	int fd = open_target(&target, &message->ask_process);

	if (!fd) {
		fd = open_mapped(&target, ask, &file);
		target_close(&target);
	}
	file.error = fd < 0 ? -fd : 0;
	key.error = hand_over(ask->worker, MESSAGE_FILE, &file, fd);
	if (!key.error)
		key.error = file.error;
	key.key = file.key;
	ledger_add(&self.child.ledger, error_counter(key.error), 1);
	answer_sampler(MESSAGE_FILE_KEY, &key);
}

static void on_ask_other(const struct message *message)
{
	const struct message_ask_other *ask = &message->ask_other;
	struct message_other other = {.need = ask->need,
				      .start_lo_ns = ask->file.start_lo_ns,
				      .file.file_id = ask->need.file_id};
	struct target target;
	int fd = open_target(&target, &message->ask_process), error;

	if (!fd) {
		fd = ask->need.kind == OTHER_MEM ? memory_open(&target, ask, self.child.config)
						 : other_open(&target, ask, &other);
		target_close(&target);
	}
	other.file.error = fd < 0 ? -fd : 0;
	error = hand_over(ask->file.worker, MESSAGE_OTHER, &other, fd);
	if (!error)
		error = other.file.error;
	ledger_add(&self.child.ledger,
		   ask->need.kind == OTHER_MEM && (!error || error == EPERM)
		       ? (error ? C_broker_memories_refused : C_broker_memories)
		   : error == 0	      ? C_broker_others
		   : error == ENOENT ? C_broker_others_absent
				      : error_counter(error),
		   1);
}

/*
 * The books stand before the work begins: the supervisor sees a request that is never answered, and
 * the next broker at what.
 */
static void handle(const struct message *message)
{
	static void (*const handlers[MESSAGE_COUNT])(const struct message *) = {
	    [MESSAGE_ASK_PROCESS] = on_ask_process,
	    [MESSAGE_ASK_FILE] = on_ask_file,
	    [MESSAGE_ASK_OTHER] = on_ask_other,
	};
	const struct message_ask_process *ask = &message->ask_process; /* all begin alike */
	char name[24];

	if (!handlers[message->type] || ask->worker >= self.child.config->workers) {
		child_report(&self.child, ROLE_SAMPLER, EPROTO);
		return;
	}
	snprintf(name, sizeof(name), "process %u", ask->pid);
	blame_begin(self.blame, 0, ask->start_lo_ns + ask->pid, name);
	ledger_add(&self.child.ledger, C_broker_requests, 1);
	ledger_commit(&self.child.ledger);
	handlers[message->type](message);
	blame_end(self.blame);
	ledger_add(&self.child.ledger, C_broker_answers, 1);
	ledger_commit(&self.child.ledger);
}

int main(int argc, char **argv)
{
	struct pollfd wait[] = {{.fd = FD_SUPERVISOR, .events = POLLIN},
				{.fd = FD_BROKER_SAMPLER, .events = POLLIN}};
	static struct message message;
	int err;

	child_start(&self.child, ROLE_BROKER, argc, argv);
	self.blame = &self.child.ledger.shared->blame;
	channel_init(&self.sampler, FD_BROKER_SAMPLER, ROLE_BROKER, ROLE_SAMPLER, true);
	for (uint32_t k = 0; k < self.child.config->workers && k < WORKERS_MAX; k++) {
		channel_init(&self.worker[k], FD_BROKER_WORKERS + (int)k, ROLE_BROKER,
			     ROLE_SYMBOLIZER, true);
		self.ledger[k] = ledger_map(FD_BROKER_LEDGERS + SLOT_WORKER((int)k));
	}
	blame_resume(self.blame, self.child.config->stuck_ms);
	self.blame->reading = 1; /* what holds a broker up is never what stands in the file */
	/* What the one before had in hand ended with it, and is no work that waits. */
	ledger_set(&self.child.ledger, C_broker_answers,
		   self.child.ledger.now.counter[C_broker_requests]);
	ledger_commit(&self.child.ledger);
	child_ready(&self.child, sandbox_enter(ROLE_BROKER, NULL));
	while (child_continue(&self.child)) {
		poll(wait, 2, TURN_MS);
		err = channel_recv(&self.sampler, &message, NULL, NULL);
		if (!err)
			handle(&message);
		else if (err == -EPROTO)
			child_report(&self.child, ROLE_SAMPLER, EPROTO);
		else if (self.child.draining)
			child_drained(&self.child);
	}
	return 0;
}
