/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/scripts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/symbol.h"
#include "supervisor/child.h"
#include "symbolizer/memory.h"

#define NS_PER_MS 1000000ull
/* A question may be lost wherever somebody has too much to do; a refusal holds for a while. */
#define ASK_FIRST_MS   100
#define ASK_REFUSED_MS 1000
#define ASK_LAST_MS    60000
#define RETRY_FIRST_MS 1000
/* A tenth of what the sampler tolerates (proto/messages.h): others ask too. */
#define ASK_PER_SECOND 20
#define SWEEP_NS       1000000000ull
#define WAYS	       4 /* places that a frame may have */
#define SLOTS_MIN      256
/* One part in so many of all time may be spent on reading, and so much at once. */
#define SHARE	      2
#define BURST_NS      (500 * (int64_t)NS_PER_MS)
#define PROCESS_SHARE 8
#define PROCESS_BURST (250 * (int64_t)NS_PER_MS)

static uint8_t scripts_frame_type(const struct lang *lang)
{
	static const char *const texts[] = {
#define TYPE(NAME, text) [SYMBOL_FRAME_##NAME] = text,
	    SYMBOL_FRAME_TYPES(TYPE)
#undef TYPE
	};

	for (uint8_t i = 0; lang && i < SYMBOL_FRAME_TYPE_COUNT; i++)
		if (!strcmp(texts[i], lang->frame_type))
			return i;
	return SYMBOL_FRAME_NATIVE;
}

int scripts_open(struct scripts *scripts, struct runtimes *runtimes, struct files *files,
		 struct channel *sampler, uint64_t bytes_max)
{
	memset(scripts, 0, sizeof(*scripts));
	scripts->runtimes = runtimes;
	scripts->files = files;
	scripts->sampler = sampler;
	scripts->time.left_ns = BURST_NS;
	scripts->slots_n = SLOTS_MIN;
	while (scripts->slots_n < SCRIPTS_SLOTS_MAX &&
	       2 * scripts->slots_n * sizeof(*scripts->slots) <= bytes_max)
		scripts->slots_n *= 2;
	for (int i = 0; i < LANG_COUNT; i++)
		scripts->frame_types[i] = scripts_frame_type(langs[i]);
	scripts->slots = calloc(scripts->slots_n, sizeof(*scripts->slots));
	files->scripts_bytes = scripts->slots_n * sizeof(*scripts->slots);
	return scripts->slots ? lru_init(&scripts->processes, SCRIPTS_PROCESSES_MAX) : -ENOMEM;
}

/* --- Processes. --- */

static void scripts_close_memory(struct scripts *scripts, struct scripts_process *p)
{
	if (p->fd < 0)
		return;
	close(p->fd);
	p->fd = -1;
	scripts->memories--;
}

static void scripts_free_process(struct scripts *scripts, struct scripts_process *p)
{
	scripts_close_memory(scripts, p);
	lru_remove(&scripts->processes, &p->node);
	free(p);
}

void scripts_close(struct scripts *scripts)
{
	void *oldest;

	while ((oldest = lru_oldest(&scripts->processes)))
		scripts_free_process(scripts, oldest);
	lru_fini(&scripts->processes);
	free(scripts->slots);
	scripts->slots = NULL;
}

static void scripts_earn(struct scripts_time *time, uint64_t now_ns, uint32_t share, int64_t burst)
{
	time->left_ns += (int64_t)((now_ns - time->counted_ns) / share);
	if (time->left_ns > burst)
		time->left_ns = burst;
	time->counted_ns = now_ns;
}

void scripts_turn(struct scripts *scripts, const struct processes *processes, uint64_t now_ns)
{
	struct scripts_process *p, *next;

	scripts->now_ns = now_ns;
	scripts_earn(&scripts->time, now_ns, SHARE, BURST_NS);
	if (now_ns < scripts->sweep_ns)
		return;
	scripts->sweep_ns = now_ns + SWEEP_NS;
	for (p = lru_oldest(&scripts->processes); p; p = next) {
		next = lru_newer(&scripts->processes, &p->node);
		if (!lru_peek(&processes->table, p->node.key))
			scripts_free_process(scripts, p);
	}
}

static struct scripts_process *scripts_new_process(struct scripts *scripts, uint32_t pid)
{
	struct scripts_process *p = calloc(1, sizeof(*p));

	if (!p)
		memory_over("a process that runs scripts");
	if (scripts->processes.count >= SCRIPTS_PROCESSES_MAX)
		scripts_free_process(scripts, lru_oldest(&scripts->processes));
	p->fd = -1;
	p->serial = ++scripts->serials;
	p->time = (struct scripts_time){PROCESS_BURST, scripts->now_ns};
	lru_add(&scripts->processes, &p->node, pid);
	return p;
}

/* Is this the same program of the same process? */
static bool scripts_is(const struct scripts_process *p, const struct process *process)
{
	return p->start_lo_ns <= process->start_hi_ns && process->start_lo_ns <= p->start_hi_ns &&
	       (!p->exec_id || !process->exec_id || p->exec_id == process->exec_id);
}

static struct scripts_process *scripts_process_of(struct scripts *scripts,
						  const struct process *process)
{
	struct scripts_process *p = lru_get(&scripts->processes, process->node.key);

	if (p && !scripts_is(p, process)) {
		scripts_free_process(scripts, p);
		p = NULL;
	}
	if (!p)
		p = scripts_new_process(scripts, process->node.key);
	p->start_lo_ns = process->start_lo_ns;
	p->start_hi_ns = process->start_hi_ns;
	if (process->exec_id)
		p->exec_id = process->exec_id;
	return p;
}

/* --- Their memory. --- */

static void scripts_ask(struct scripts *scripts, struct scripts_process *p, uint32_t file_id)
{
	struct message_need_other need = {
	    .file_id = file_id, .pid = p->node.key, .kind = OTHER_MEM};

	if (scripts->now_ns < p->ask_ns)
		return;
	if (scripts->now_ns - scripts->window_ns >= 1000 * NS_PER_MS) {
		scripts->window_ns = scripts->now_ns;
		scripts->sent = 0;
	}
	if (scripts->sent >= ASK_PER_SECOND ||
	    channel_send(scripts->sampler, MESSAGE_NEED_OTHER, &need, NULL, 0))
		return;
	scripts->sent++;
	p->ask_ms = p->ask_ms == 0		  ? ASK_FIRST_MS
		    : p->ask_ms * 2 > ASK_LAST_MS ? ASK_LAST_MS
						  : p->ask_ms * 2;
	p->ask_ns = scripts->now_ns + p->ask_ms * NS_PER_MS;
}

/* The memory of the process that was not met for longest goes. */
static void scripts_make_room(struct scripts *scripts)
{
	struct scripts_process *p = lru_oldest(&scripts->processes);

	while (p && scripts->memories >= SCRIPTS_MEMORIES_MAX) {
		scripts_close_memory(scripts, p);
		p = lru_newer(&scripts->processes, &p->node);
	}
}

static void scripts_refused(const struct scripts *scripts, struct scripts_process *p)
{
	if (p->ask_ms >= ASK_REFUSED_MS)
		return;
	p->ask_ms = ASK_REFUSED_MS;
	p->ask_ns = scripts->now_ns + ASK_REFUSED_MS * NS_PER_MS;
}

void scripts_message(struct scripts *scripts, const struct message_other *message, int fd)
{
	struct scripts_process *p = lru_peek(&scripts->processes, message->need.pid);

	if (p)
		p->answered = true;
	if (p && fd < 0)
		scripts_refused(scripts, p);
	if (fd < 0)
		return;
	if (!p || p->start_hi_ns < message->start_lo_ns) {
		close(fd);
		return;
	}
	/* The one before was perhaps another program's: what could not be read can now. */
	if (p->fd >= 0)
		p->serial = ++scripts->serials;
	scripts_close_memory(scripts, p);
	scripts_make_room(scripts);
	p->fd = fd;
	p->proved = false;
	p->blamed = message->start_lo_ns + p->node.key;
	scripts->memories++;
}

struct scripts_process *scripts_begin(struct scripts *scripts, const struct process *process,
				      uint32_t file_id)
{
	struct scripts_process *p = scripts_process_of(scripts, process);

	if (p->ask_ms == 0 && !process->exited)
		scripts_ask(scripts, p, file_id);
	return p->ask_ms && !p->answered ? p : NULL;
}

/* It was opened of a program that has ended since. */
static bool scripts_is_over(const struct scripts_process *p, uint64_t at)
{
	char byte;

	return pread(p->fd, &byte, 1, (off_t)(at & INT64_MAX)) == 0;
}

/* --- Frames. --- */

static uint64_t scripts_hash(const struct scripts_slot *slot)
{
	uint64_t hash = slot->process * 0x9e3779b97f4a7c15ull;

	hash = (hash ^ slot->object) * 0xbf58476d1ce4e5b9ull;
	hash = (hash ^ slot->cookie ^ hash >> 29) * 0x94d049bb133111ebull;
	return (hash ^ slot->where ^ hash >> 31) * 0x9e3779b97f4a7c15ull;
}

static bool scripts_same(const struct scripts_slot *a, const struct scripts_slot *b)
{
	return a->process == b->process && a->object == b->object && a->cookie == b->cookie &&
	       a->where == b->where && a->file_id == b->file_id && a->generation == b->generation;
}

struct scripts_slot *scripts_find(struct scripts *scripts, const struct process *process,
				  const struct file *file, const struct frame *frame,
				  const struct frame *cookie)
{
	struct scripts_slot key = {.object = frame->addr,
				   .file_id = frame->file_id,
				   .generation = file->generation},
			    *set, *slot;

	if (!process || !frame->addr || !cookie || cookie->kind != FRAME_COOKIE)
		return NULL;
	key.process = scripts_process_of(scripts, process)->serial;
	key.cookie = cookie->addr;
	key.where = cookie->file_id;
	set = &scripts->slots[scripts_hash(&key) >> 32 & (scripts->slots_n - WAYS)];
	for (slot = set; slot < set + WAYS; slot++)
		if (scripts_same(slot, &key))
			return slot;
	for (slot = set; slot < set + WAYS && slot->process; slot++)
		;
	if (slot == set + WAYS)
		slot = set + scripts->hand++ % WAYS;
	*slot = key;
	return slot;
}

bool scripts_is_due(const struct scripts *scripts, const struct scripts_slot *slot)
{
	return slot->retry_ns && scripts->now_ns >= slot->retry_ns;
}

static void scripts_later(const struct scripts *scripts, struct scripts_slot *slot)
{
	slot->retry_ms = slot->retry_ms == 0		    ? RETRY_FIRST_MS
			 : slot->retry_ms * 2 > ASK_LAST_MS ? ASK_LAST_MS
							    : slot->retry_ms * 2;
	slot->retry_ns = scripts->now_ns + slot->retry_ms * NS_PER_MS;
}

/* The time that it takes counts for all and for this process. */
static bool scripts_name(struct scripts *scripts, struct scripts_process *p,
			 const struct lang_runtime *runtime, const struct scripts_slot *slot,
			 struct lang_function *function)
{
	const struct lang_frame frame = {slot->object, slot->cookie, slot->where};
	struct remote remote = {.fd = p->fd};
	uint64_t begin_ns = child_now_ns();
	char name[24];
	int64_t took_ns;
	bool named;

	snprintf(name, sizeof(name), "process %u", p->node.key);
	blame_begin(scripts->files->blame, 0, p->blamed, name);
	remote_begin(&remote);
	named = langs[runtime->walk.language]->name_frame(&remote, runtime, &frame, function);
	p->proved |= named;
	if (!named && scripts_is_over(p, slot->object)) {
		scripts_close_memory(scripts, p);
		p->ask_ns = 0;
	}
	blame_end(scripts->files->blame);
	took_ns = (int64_t)(child_now_ns() - begin_ns);
	p->time.left_ns -= took_ns;
	scripts->time.left_ns -= took_ns;
	scripts->read++;
	scripts->reads += remote.reads;
	scripts->read_ns += (uint64_t)took_ns;
	return named && function->name[0];
}

const struct lang_function *scripts_read(struct scripts *scripts, const struct process *process,
					 struct file *file, struct scripts_slot *slot,
					 const struct frame *frame)
{
	static struct lang_function function;
	struct scripts_process *p = scripts_process_of(scripts, process);
	const struct lang_runtime *runtime = runtimes_get(scripts->runtimes, scripts->files, file);

	if (!runtime)
		files_need(scripts->files, file, scripts->now_ns);
	if ((p->fd < 0 || !p->proved) && !process->exited)
		scripts_ask(scripts, p, frame->file_id);
	scripts_earn(&p->time, scripts->now_ns, PROCESS_SHARE, PROCESS_BURST);
	if (!runtime || runtime->walk.language != frame->language || p->fd < 0 ||
	    p->time.left_ns <= 0 || scripts->time.left_ns <= 0) {
		/* Not its own fault. */
		slot->retry_ns = scripts->now_ns + SWEEP_NS / 10;
		return NULL;
	}
	function = (struct lang_function){.line = 0};
	if (!scripts_name(scripts, p, runtime, slot, &function)) {
		scripts_later(scripts, slot);
		return NULL;
	}
	slot->retry_ns = slot->retry_ms = 0;
	function.name[sizeof(function.name) - 1] = function.file[sizeof(function.file) - 1] = 0;
	return &function;
}
