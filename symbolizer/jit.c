/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/jit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "symbolizer/memory.h"

#define NS_PER_MS    1000000ull
#define ASK_FIRST_MS 1000
#define ASK_LAST_MS  60000
/* A tenth of what the sampler tolerates (proto/messages.h): others ask too. */
#define ASK_PER_SECOND 20
#define CHUNK_BYTES    JITDUMP_RECORD_MAX
/* Of a file that is far behind: so much at a time, or the samples behind this one wait too long. */
#define LOOK_BYTES   (4 * CHUNK_BYTES)
#define LOOK_MORE_NS 20000000ull
/* Somebody asked in vain: perhaps it has been told since. */
#define LOOK_SOON_NS 250000000ull
/* One process may have so much of all that there is. */
#define PROCESS_SHARE 4
/* Starts of processes are known to the tick, times of files to the kernel's own. */
#define STALE_NS 1000000000ull

static char chunk[CHUNK_BYTES];

int jit_open(struct jit *jit, struct files *files, struct channel *sampler, uint64_t bytes_max)
{
	int err;

	memset(jit, 0, sizeof(*jit));
	jit->files = files;
	jit->sampler = sampler;
	jit->bytes_max = bytes_max;
	err = lru_init(&jit->processes, JIT_PROCESSES_MAX);
	return err ? err : lru_init(&jit->dumps, JIT_DUMPS_MAX);
}

/* --- What goes, and when. --- */

static void jit_blame(struct jit *jit, const struct file_key *key, uint32_t pid)
{
	char name[32];

	snprintf(name, sizeof(name), "perf map of %u", pid);
	blame_begin(jit->files->blame, key->device, key->inode, name);
}

static void jit_drop_map(struct jit *jit, struct jit_process *p)
{
	if (!p->map)
		return;
	jit->bytes -= perfmap_bytes(&p->map->map);
	perfmap_fini(&p->map->map);
	jit_blame(jit, &p->map->key, p->node.key);
	reader_remove(jit->files->reader, p->map->slot);
	blame_end(jit->files->blame);
	free(p->map);
	p->map = NULL;
	jit->maps--;
}

static void jit_free_process(struct jit *jit, struct jit_process *p)
{
	jit_drop_map(jit, p);
	lru_remove(&jit->processes, &p->node);
	free(p);
}

static void jit_free_dump(struct jit *jit, struct jit_dump *d)
{
	jit->bytes -= jitdump_bytes(&d->dump);
	jitdump_fini(&d->dump);
	lru_remove(&jit->dumps, &d->node);
	free(d);
}

void jit_close(struct jit *jit)
{
	void *oldest;

	while ((oldest = lru_oldest(&jit->processes)))
		jit_free_process(jit, oldest);
	while ((oldest = lru_oldest(&jit->dumps)))
		jit_free_dump(jit, oldest);
	lru_fini(&jit->processes);
	lru_fini(&jit->dumps);
}

/* The map of somebody else that was not asked for longest. False: nobody else has one. */
static bool jit_drop_oldest_map(struct jit *jit, const struct jit_process *keep)
{
	struct jit_process *p = lru_oldest(&jit->processes);

	while (p && (!p->map || p == keep))
		p = lru_newer(&jit->processes, &p->node);
	if (!p)
		return false;
	jit_drop_map(jit, p);
	p->ask_ns = jit->now_ns + ASK_LAST_MS * NS_PER_MS;
	jit->evictions++;
	return true;
}

/* What is at work is the newest of its kind. */
static void jit_make_room(struct jit *jit, const struct jit_process *keep)
{
	while (jit->bytes > jit->bytes_max) {
		if (jit->dumps.count > 1) {
			jit_free_dump(jit, lru_oldest(&jit->dumps));
			jit->evictions++;
		} else if (!jit_drop_oldest_map(jit, keep)) {
			break;
		}
	}
	jit->files->jit_bytes = jit->bytes;
}

void jit_turn(struct jit *jit, struct processes *processes, uint64_t now_ns)
{
	struct jit_process *p, *next;

	jit->now_ns = now_ns;
	if (now_ns < jit->sweep_ns)
		return;
	jit->sweep_ns = now_ns + JIT_LOOK_NS;
	for (p = lru_oldest(&jit->processes); p; p = next) {
		next = lru_newer(&jit->processes, &p->node);
		if (!lru_peek(&processes->table, p->node.key))
			jit_free_process(jit, p);
	}
	jit->files->jit_bytes = jit->bytes;
}

/* --- Who. --- */

static bool jit_is(const struct jit_process *p, const struct process *process)
{
	return p->start_lo_ns <= process->start_hi_ns && process->start_lo_ns <= p->start_hi_ns;
}

/* Another program runs under this pid: what its predecessor wrote is not of this one. */
static void jit_exec(struct jit *jit, struct jit_process *p)
{
	if (p->map)
		p->stale = p->map->key;
	jit_drop_map(jit, p);
	p->dumps_n = p->ranges_seen = p->ask_ms = 0;
	p->ask_ns = p->look_ns = p->files_seen = p->wait_until_ns = 0;
	p->answered = p->waited = false;
	p->read_bytes = 0;
}

static struct jit_process *jit_new_process(struct jit *jit, uint32_t pid)
{
	struct jit_process *p = calloc(1, sizeof(*p));

	if (!p)
		memory_over("a process that makes code");
	if (jit->processes.count >= JIT_PROCESSES_MAX)
		jit_free_process(jit, lru_oldest(&jit->processes));
	lru_add(&jit->processes, &p->node, pid);
	return p;
}

static struct jit_process *jit_process_of(struct jit *jit, const struct process *process)
{
	struct jit_process *p = lru_get(&jit->processes, process->node.key);

	if (p && !jit_is(p, process)) {
		jit_free_process(jit, p);
		p = NULL;
	}
	if (!p)
		p = jit_new_process(jit, process->node.key);
	else if (p->exec_id && process->exec_id && p->exec_id != process->exec_id)
		jit_exec(jit, p);
	p->start_lo_ns = process->start_lo_ns;
	p->start_hi_ns = process->start_hi_ns;
	if (process->exec_id)
		p->exec_id = process->exec_id;
	return p;
}

/* --- The map. --- */

static void jit_ask(struct jit *jit, struct jit_process *p)
{
	struct message_need_other need = {.pid = p->node.key, .kind = OTHER_PERF_MAP};

	if (jit->now_ns < p->ask_ns)
		return;
	if (jit->now_ns - jit->window_ns >= 1000 * NS_PER_MS) {
		jit->window_ns = jit->now_ns;
		jit->sent = 0;
	}
	if (jit->sent >= ASK_PER_SECOND ||
	    channel_send(jit->sampler, MESSAGE_NEED_OTHER, &need, NULL, 0))
		return;
	jit->sent++;
	p->ask_ms = p->ask_ms == 0		  ? ASK_FIRST_MS
		    : p->ask_ms * 2 > ASK_LAST_MS ? ASK_LAST_MS
						  : p->ask_ms * 2;
	p->ask_ns = jit->now_ns + p->ask_ms * NS_PER_MS;
}

static uint64_t jit_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* Of a process that had the pid before, or of the program before: names for other code. */
static bool jit_is_stale(const struct jit_process *p, const struct file_key *key)
{
	uint64_t boot_ns = jit_clock(CLOCK_REALTIME) - jit_clock(CLOCK_BOOTTIME);

	if (key->mtime_ns + STALE_NS < boot_ns + p->start_lo_ns)
		return true;
	return p->stale.inode == key->inode && p->stale.device == key->device &&
	       p->stale.mtime_ns == key->mtime_ns;
}

void jit_message(struct jit *jit, const struct message_other *message, int fd)
{
	struct jit_process *p = lru_peek(&jit->processes, message->need.pid);
	const struct file_key *key = &message->file.key;
	int slot;

	if (p)
		p->answered = true;
	if (fd < 0)
		return;
	if (!p || p->start_hi_ns < message->start_lo_ns || jit_is_stale(p, key) ||
	    (p->map && p->map->key.inode == key->inode && p->map->key.device == key->device)) {
		close(fd);
		return;
	}
	jit_drop_map(jit, p);
	if (jit->maps >= JIT_MAPS_MAX)
		jit_drop_oldest_map(jit, p);
	slot = files_slot(jit->files, fd);
	if (slot < 0)
		return;
	p->map = calloc(1, sizeof(*p->map));
	if (!p->map)
		memory_over("a perf map");
	perfmap_init(&p->map->map, jit->bytes_max / PROCESS_SHARE);
	p->map->slot = slot;
	p->map->key = *key;
	p->look_ns = 0;
	jit->maps++;
}

/* From the beginning again. */
static void jit_restart_map(struct jit_map *m)
{
	size_t bytes_max = m->map.bytes_max;

	perfmap_fini(&m->map);
	perfmap_init(&m->map, bytes_max);
	m->at = 0;
}

/* True: there is more than was read. */
static bool jit_read_map(struct jit *jit, struct jit_process *p, struct jit_map *m)
{
	uint64_t end = m->at + LOOK_BYTES;
	struct reader_part part;
	size_t taken;

	while (m->at < end && m->at < m->key.size_bytes && p->read_bytes < JIT_READ_MAX) {
		part = (struct reader_part){chunk, sizeof(chunk), m->at, 0};
		reader_read(jit->files->reader, m->slot, &part, 1);
		taken = part.result > 0 ? perfmap_feed(&m->map, chunk, (size_t)part.result) : 0;
		m->at += taken;
		p->read_bytes += taken;
		if (taken == 0)
			return false;
	}
	return m->at < m->key.size_bytes && p->read_bytes < JIT_READ_MAX;
}

/* How long it may rest. */
static uint64_t jit_look_at_map(struct jit *jit, struct jit_process *p)
{
	struct jit_map *m = p->map;
	size_t before = perfmap_bytes(&m->map);
	uint64_t lines = m->map.lines, refused = m->map.refused;
	struct stat st;
	bool more = false;

	jit_blame(jit, &m->key, p->node.key);
	if (reader_stat(jit->files->reader, m->slot, &st) == 0) {
		if ((uint64_t)st.st_size < m->key.size_bytes) {
			jit_restart_map(m);
			lines = refused = 0;
		}
		m->key.size_bytes = (uint64_t)st.st_size;
		m->key.mtime_ns =
		    (uint64_t)st.st_mtim.tv_sec * 1000000000ull + (uint64_t)st.st_mtim.tv_nsec;
		more = jit_read_map(jit, p, m);
		perfmap_settle(&m->map);
		/* Another one has its name, or will have. */
		if (st.st_nlink == 0)
			jit_ask(jit, p);
	}
	blame_end(jit->files->blame);
	jit->names += m->map.lines - lines;
	jit->refused += m->map.refused - refused;
	jit->bytes += perfmap_bytes(&m->map) - before;
	jit_make_room(jit, p);
	return more ? LOOK_MORE_NS : JIT_LOOK_NS;
}

/* --- Dumps. --- */

/* jit-PID.dump, whatever the number: inside of another pid namespace it is another one. */
static bool jit_is_dump(const struct file *file)
{
	const char *name = file_module(file);
	size_t digits = strncmp(name, "jit-", 4) ? 0 : strspn(name + 4, "0123456789");

	return digits > 0 && strcmp(name + 4 + digits, ".dump") == 0;
}

static struct file *jit_file(struct jit *jit, uint32_t file_id)
{
	return file_id ? lru_peek(&jit->files->table, file_id) : NULL;
}

static void jit_add_dump(struct jit_process *p, uint32_t file_id)
{
	for (uint32_t i = 0; i < p->dumps_n; i++)
		if (p->dumps[i] == file_id)
			return;
	if (p->dumps_n < JIT_PROCESS_DUMPS)
		p->dumps[p->dumps_n++] = file_id;
}

static void jit_look_for_dumps(struct jit *jit, struct jit_process *p,
			       const struct process *process)
{
	if (p->files_seen == jit->files->arrivals && p->ranges_seen == process->ranges_n)
		return;
	p->files_seen = jit->files->arrivals;
	p->ranges_seen = process->ranges_n;
	for (uint32_t i = 0; i < process->ranges_n; i++) {
		const struct file *file = jit_file(jit, process->ranges[i].file_id);

		if (file && jit_is_dump(file))
			jit_add_dump(p, file->node.key);
	}
}

static struct jit_dump *jit_dump_of(struct jit *jit, const struct file *file)
{
	struct jit_dump *d = lru_get(&jit->dumps, file->node.key);

	/* A sampler that was restarted gives the same id to another file. */
	if (d && d->device == file->key.device && d->inode == file->key.inode)
		return d;
	if (d)
		jit_free_dump(jit, d);
	else if (jit->dumps.count >= JIT_DUMPS_MAX)
		jit_free_dump(jit, lru_oldest(&jit->dumps));
	d = calloc(1, sizeof(*d));
	if (!d)
		memory_over("a jitdump");
	jitdump_init(&d->dump, jit->bytes_max / PROCESS_SHARE);
	d->device = file->key.device;
	d->inode = file->key.inode;
	lru_add(&jit->dumps, &d->node, file->node.key);
	return d;
}

/* True: there is more than was read. */
static bool jit_read_dump(struct jit *jit, const struct file *file, struct jit_dump *d)
{
	uint64_t now_ns = jit_clock(CLOCK_MONOTONIC), step;
	uint32_t rounds = LOOK_BYTES / CHUNK_BYTES;
	struct reader_part part;

	while (rounds-- && d->at < d->size_bytes && d->read_bytes < JIT_READ_MAX) {
		part = (struct reader_part){chunk, sizeof(chunk), d->at, 0};
		reader_read(jit->files->reader, file->slot, &part, 1);
		step = part.result > 0 ? jitdump_feed(&d->dump, chunk, (size_t)part.result, now_ns)
				       : 0;
		d->at += step;
		d->read_bytes += part.result > 0 ? (uint64_t)part.result : 0;
		if (jitdump_settle(&d->dump) || step == 0)
			return false;
	}
	return d->at < d->size_bytes && d->read_bytes < JIT_READ_MAX;
}

static void jit_look_at_dump(struct jit *jit, const struct file *file, struct jit_dump *d,
			     const struct jit_process *p)
{
	size_t before = jitdump_bytes(&d->dump), bytes_max = d->dump.bytes_max;
	uint64_t names = d->dump.codes_n, refused = d->dump.refused;
	struct stat st;

	d->look_ns = jit->now_ns + JIT_LOOK_NS;
	files_begin(jit->files, file);
	if (reader_stat(jit->files->reader, file->slot, &st) == 0) {
		if ((uint64_t)st.st_size < d->size_bytes) {
			jitdump_fini(&d->dump);
			jitdump_init(&d->dump, bytes_max);
			d->at = names = refused = 0;
		}
		d->size_bytes = (uint64_t)st.st_size;
		if (jit_read_dump(jit, file, d))
			d->look_ns = jit->now_ns + LOOK_MORE_NS;
	}
	files_end(jit->files);
	jit->names += d->dump.codes_n - names;
	jit->refused += d->dump.refused - refused;
	jit->bytes += jitdump_bytes(&d->dump) - before;
	jit_make_room(jit, p);
}

static void jit_look_soon(const struct jit *jit, uint64_t *look_ns)
{
	if (*look_ns > jit->now_ns + LOOK_SOON_NS)
		*look_ns = jit->now_ns + LOOK_SOON_NS;
}

/* Read the dump as far as it is time for that. */
static void jit_look_at(struct jit *jit, const struct jit_process *p, uint32_t file_id)
{
	struct file *file = jit_file(jit, file_id);
	struct jit_dump *d = file && file->received ? jit_dump_of(jit, file) : NULL;

	if (d && file->slot < 0)
		files_need(jit->files, file, jit->now_ns);
	else if (d && jit->now_ns >= d->look_ns)
		jit_look_at_dump(jit, file, d, p);
}

/*
 * A fork inherits what its parent had mapped, and the parent goes on writing into that one: who has
 * a dump that was begun later means that.
 */
static void jit_find_dumped(struct jit *jit, const struct jit_process *p, uint64_t address,
			    uint64_t time_ns, struct lines *lines)
{
	/* What the machine slept lies between the two clocks. */
	uint64_t slept_ns = jit_clock(CLOCK_BOOTTIME) - jit_clock(CLOCK_MONOTONIC);
	uint64_t newest = 0;

	/* To read one may make another one go: what is found comes after all that. */
	for (uint32_t i = 0; i < p->dumps_n; i++)
		jit_look_at(jit, p, p->dumps[i]);
	for (uint32_t i = 0; i < p->dumps_n; i++) {
		struct jit_dump *d = lru_peek(&jit->dumps, p->dumps[i]);
		struct lines found;

		if (!d || (lines->n && d->dump.created < newest))
			continue;
		jitdump_find(&d->dump, address, time_ns - slept_ns, &found);
		if (!found.n) {
			jit_look_soon(jit, &d->look_ns);
			continue;
		}
		newest = d->dump.created;
		lines->line[0] = found.line[0];
		lines->n = 1;
	}
}

/* --- Both. --- */

static void jit_look(struct jit *jit, struct jit_process *p, const struct process *process)
{
	p->look_ns = jit->now_ns + JIT_LOOK_NS;
	jit_look_for_dumps(jit, p, process);
	if (p->map)
		p->look_ns = jit->now_ns + jit_look_at_map(jit, p);
	else if (!process->exited)
		jit_ask(jit, p);
}

struct jit_process *jit_begin(struct jit *jit, const struct process *process)
{
	struct jit_process *p = jit_process_of(jit, process);

	if (p->ask_ms == 0 && !process->exited)
		jit_ask(jit, p);
	return p->ask_ms && !p->answered ? p : NULL;
}

void jit_find(struct jit *jit, const struct process *process, uint64_t address, uint64_t time_ns,
	      struct lines *lines)
{
	struct jit_process *p = jit_process_of(jit, process);
	const char *name;

	lines->n = 0;
	if (jit->now_ns >= p->look_ns)
		jit_look(jit, p, process);
	if (p->dumps_n)
		jit_find_dumped(jit, p, address, time_ns, lines);
	name = p->map && lines->n == 0 ? perfmap_find(&p->map->map, address) : NULL;
	if (name)
		lines->line[lines->n++] = (struct line){.name = name};
	else if (p->map && lines->n == 0)
		jit_look_soon(jit, &p->look_ns);
}
