/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/lang/live.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lang/hostwalk.h"
#include "tests/lang/livefile.h"
#include "tests/lang/stopped.h"

static const struct table_header *live_table(uint32_t file_id)
{
	const struct livefile *file = livefile_get(file_id);

	return file ? file->table : NULL;
}

/* --- Names. --- */

static void live_name_native(const struct frame *frame, struct live_frame *out)
{
	const struct livefile *file = livefile_get(frame->file_id);
	uint64_t at = frame->addr - (frame->flags & FRAME_RETURN ? 1 : 0);
	const char *name, *slash;

	out->kind = LIVE_NATIVE;
	snprintf(out->name, sizeof(out->name), "[unknown]");
	if (frame->kind != FRAME_NATIVE || !file)
		return;
	name = livefile_symbol(file, at);
	slash = strrchr(file->path, '/');
	snprintf(out->file, sizeof(out->file), "%s", file->path);
	if (name)
		snprintf(out->name, sizeof(out->name), "%s", name);
	else
		snprintf(out->name, sizeof(out->name), "[%.200s+0x%lx]",
			 slash ? slash + 1 : file->path, (unsigned long)frame->addr);
}

static void live_name_script(struct remote *remote, const struct frame *frame,
			     const struct frame *cookie, struct live_frame *out)
{
	const struct livefile *file = livefile_get(frame->file_id);
	struct lang_frame lang_frame = {frame->addr, cookie->addr, cookie->file_id};
	static struct lang_function function;
	const struct lang *lang;

	out->kind = LIVE_UNNAMED;
	out->language = frame->language;
	lang = frame->language < LANG_COUNT ? langs[frame->language] : NULL;
	snprintf(out->name, sizeof(out->name), "[%s]", lang ? lang->name : "?");
	memset(&function, 0, sizeof(function));
	remote_begin(remote);
	if (!frame->addr || !lang || !file || file->recognized ||
	    !lang->name_frame(remote, &file->runtime, &lang_frame, &function))
		return;
	/* What symbolizer/lang/lang.h says of a name. */
	if (!function.name[0] || !memchr(function.name, 0, sizeof(function.name)) ||
	    !memchr(function.file, 0, sizeof(function.file)))
		abort();
	out->kind = LIVE_SCRIPT;
	memcpy(out->name, function.name, sizeof(out->name));
	memcpy(out->file, function.file, sizeof(out->file));
	out->line = function.line;
	out->start_line = function.start_line;
}

static void live_name(const struct frame *frames, uint32_t slots, int mem, struct live_stack *stack)
{
	struct remote remote = {.fd = mem};

	stack->frames_n = 0;
	stack->name_reads = 0;
	for (uint32_t i = 0; i < slots; i++) {
		struct live_frame *out = &stack->frames[stack->frames_n++];

		memset(out, 0, sizeof(*out));
		if (frames[i].kind != FRAME_SCRIPT) {
			live_name_native(&frames[i], out);
			continue;
		}
		/* In two slots or not at all. */
		if (i + 1 == slots || frames[i + 1].kind != FRAME_COOKIE)
			abort();
		live_name_script(&remote, &frames[i], &frames[i + 1], out);
		stack->name_reads += remote.reads;
		i++;
	}
}

/* --- Samples. --- */

static struct frame frames[RECORD_USER_FRAMES_MAX];

void live_replay(struct snapshot *snapshot, struct live_stack *stack)
{
	uint32_t slots;

	snapshot->reads = snapshot->bytes = 0;
	slots = hostwalk(snapshot, live_table, frames, &stack->stop);
	stack->walk_reads = snapshot->reads;
	live_name(frames, slots, SNAPSHOT_FD, stack);
}

bool live_resolve(struct snapshot *snapshot)
{
	struct snapshot_head *head = &snapshot->head;
	bool all = true;

	for (uint32_t i = 0; i < head->ranges_n; i++) {
		struct record_range *range = &head->ranges[i];
		const char *path = range->file_id && range->file_id <= SNAPSHOT_FILES_MAX
				       ? head->paths[range->file_id - 1]
				       : NULL;

		if (!path)
			continue;
		/* The snapshot's own numbers say which is which: as if all were one device. */
		range->file_id = livefile_id(path, path, 0, 0);
		all = all && range->file_id;
	}
	stopped_made_by(head);
	return all;
}

const struct live_stack *live_sample(struct live *live, pid_t tid)
{
	struct stopped stopped;
	bool done;

	if (!stopped_begin(&stopped, tid))
		return NULL;
	snapshot_begin(&live->snapshot, live->pid);
	done = stopped_look(&stopped, live->pid, &live->snapshot.head);
	if (done && live->late) {
		uint32_t slots = hostwalk(&live->snapshot, live_table, frames, &live->stack.stop);

		live->stack.walk_reads = live->snapshot.reads;
		stopped_end(&stopped);
		live_name(frames, slots, live->mem, &live->stack);
		return &live->stack;
	}
	if (done)
		live_replay(&live->snapshot, &live->stack);
	/* What is not in it by now the process no longer has as it was. */
	live->snapshot.pid = 0;
	stopped_end(&stopped);
	return done ? &live->stack : NULL;
}

struct live *live_open(pid_t pid)
{
	struct live *live = calloc(1, sizeof(*live));
	char path[32];

	if (!live)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	live->pid = pid;
	live->mem = open(path, O_RDONLY | O_CLOEXEC);
	if (live->mem >= 0 && snapshot_open(&live->snapshot))
		return live;
	live_close(live);
	return NULL;
}

void live_close(struct live *live)
{
	if (live->mem >= 0)
		close(live->mem);
	snapshot_close(&live->snapshot);
	free(live);
}

uint32_t live_threads(pid_t pid, pid_t *tids, uint32_t max)
{
	char path[32];
	struct dirent *entry;
	uint32_t n = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && n < max && (entry = readdir(tasks)))
		if (atoi(entry->d_name))
			tids[n++] = atoi(entry->d_name);
	if (tasks)
		closedir(tasks);
	return n;
}

void live_pause(uint64_t *seed, uint32_t max_us)
{
	uint64_t us;

	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	us = *seed % max_us;
	nanosleep(&(struct timespec){(time_t)(us / 1000000), (long)(us % 1000000 * 1000)}, NULL);
}
