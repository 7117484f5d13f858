/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/files.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "symbolizer/filenames.h"
#include "symbolizer/filetable.h"
#include "symbolizer/memory.h"
#include "symbolizer/runtimes.h"

#define NEED_FIRST_MS 1000
#define NEED_LAST_MS  60000
/* Half of what the sampler tolerates (proto/messages.h). */
#define NEED_PER_SECOND 100
#define NS_PER_MS	1000000ull

static struct blame nobodys;

void files_begin(struct files *files, const struct file *file)
{
	blame_begin(files->blame, file->key.device, file->key.inode, file->path ? file->path : "");
}

void files_end(struct files *files)
{
	blame_end(files->blame);
}

static void file_close(struct files *files, struct file *file)
{
	if (file->slot < 0)
		return;
	/* It reads from there whenever it is asked. */
	filenames_close(files, file);
	files_begin(files, file);
	reader_remove(files->reader, file->slot);
	files_end(files);
	file->slot = -1;
}

/* Back to knowing nothing of what is in it. */
static void file_forget_content(struct files *files, struct file *file)
{
	golines_close(file->go);
	file->go = NULL;
	filenames_forget(files, file);
	if (files->tables)
		filetable_forget(files->tables, file);
	runtimes_forget(file);
	file_close(files, file);
	others_free(&files->others, file->others);
	free(file->ids);
	free(file->segments);
	file->others = NULL;
	file->others_begun = false;
	file->ids = NULL;
	file->segments = NULL;
	file->segments_n = 0;
	file->examined = file->bad = file->received = file->waited = false;
	file->wait_until_ns = file->need_ns = file->need_ms = 0;
	file->mapping_epoch = 0;
	file->generation = ++files->generations;
}

/* Somebody wrote into it. */
static void file_overwritten(struct files *files, struct file *file)
{
	if (files->tables)
		filetable_withdraw(files->tables, file);
	file_forget_content(files, file);
}

static void file_free(struct files *files, struct file *file)
{
	file_forget_content(files, file);
	lru_remove(&files->table, &file->node);
	free(file->path);
	free(file);
}

/* All that is wanted of it is in memory: nothing goes when it is closed. */
static bool file_is_read(const struct file *file)
{
	return (file->symbols || file->bad) && !file->dwarf && !file->go &&
	       (file->table || file->table_none);
}

/* Give up the open file that was not used for longest, before the others those that were read. */
static void files_close_oldest(struct files *files)
{
	struct file *oldest = NULL, *file = lru_oldest(&files->table);

	for (; file; file = lru_newer(&files->table, &file->node)) {
		if (file->slot < 0)
			continue;
		if (!oldest)
			oldest = file;
		if (file_is_read(file))
			break;
	}
	if (file || oldest)
		file_close(files, file ? file : oldest);
}

int files_slot(struct files *files, int fd)
{
	while (files->reader->files >= READER_FILES_MAX)
		files_close_oldest(files);
	return reader_add(files->reader, fd);
}

/* --- Files that belong to one (symbolizer/others.h). --- */

/* Frames are named anew, with what was found; a part is known already. */
static void files_changed(void *arg, uint32_t file_id, bool parts_only)
{
	struct files *files = arg;
	struct file *file = lru_get(&files->table, file_id);

	if (!file)
		return;
	if (!parts_only) {
		filenames_forget(files, file);
		file->bad = false;
	}
	file->generation = ++files->generations;
}

static bool others_are_open(const struct others *o)
{
	return o && (o->debug.slot >= 0 || o->alt.slot >= 0 || o->dwp.slot >= 0 || o->split);
}

/* Those of the file that was not used for longest go, and what was made from them. */
static bool files_room(void *arg, uint32_t file_id)
{
	struct files *files = arg;
	struct file *file = lru_oldest(&files->table), *next;

	for (; file && files->others.open >= OTHERS_OPEN_MAX; file = next) {
		next = lru_newer(&files->table, &file->node);
		if (file->node.key == file_id || !others_are_open(file->others))
			continue;
		filenames_forget(files, file);
		others_free(&files->others, file->others);
		file->others = NULL;
		file->others_begun = false;
		file->generation = ++files->generations;
	}
	while (files->reader->files >= READER_FILES_MAX)
		files_close_oldest(files);
	return files->others.open < OTHERS_OPEN_MAX;
}

int files_open(struct files *files, struct reader *reader, struct channel *sampler,
	       uint64_t symbol_bytes_max)
{
	memset(files, 0, sizeof(*files));
	files->reader = reader;
	files->sampler = sampler;
	files->symbol_bytes_max = symbol_bytes_max;
	files->blame = files->others.blame = &nobodys;
	files->others.calls = (struct others_calls){.changed = files_changed,
						    .part = filenames_part,
						    .room = files_room,
						    .arg = files};
	files->others.bytes_max = symbol_bytes_max / FILES_OTHERS_SHARE;
	files->others.reader = reader;
	files->others.sampler = sampler;
	return lru_init(&files->table, FILES_MAX);
}

void files_close(struct files *files)
{
	struct file *file;

	while ((file = lru_oldest(&files->table)))
		file_free(files, file);
	lru_fini(&files->table);
}

static void file_take_fd(struct files *files, struct file *file, int fd)
{
	if (fd < 0)
		return;
	file_close(files, file);
	file->slot = files_slot(files, fd);
	file->need_ms = 0;
}

/* The kernel maps the same vdso into every process: what is in ours, as a file. */
static void files_open_vdso(struct files *files, struct file *file)
{
	const Elf64_Ehdr *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	int fd = -1;

	if (vdso) {
		/* Its sections' headers are the last of it. */
		file->key.size_bytes = vdso->e_shoff + (size_t)vdso->e_shnum * vdso->e_shentsize;
		fd = filetable_memfd(vdso, file->key.size_bytes);
	}
	if (!file->path)
		file->path = strdup("[vdso]");
	file->received = true;
	file->refused = fd < 0;
	file_take_fd(files, file, fd);
}

static struct file *files_new(struct files *files, uint32_t file_id)
{
	struct file *file;

	if (files->table.count >= FILES_MAX)
		file_free(files, lru_oldest(&files->table));
	file = calloc(1, sizeof(*file));
	if (!file)
		memory_over("a file");
	file->slot = -1;
	file->generation = ++files->generations;
	lru_add(&files->table, &file->node, file_id);
	return file;
}

struct file *files_get(struct files *files, uint32_t file_id)
{
	struct file *file = lru_get(&files->table, file_id);

	if (!file)
		file = files_new(files, file_id);
	if (file_id == RECORD_VDSO_FILE_ID && file->slot < 0 && !file->refused)
		files_open_vdso(files, file);
	return file;
}

static void file_set_path(struct files *files, struct file *file, const char *path, size_t max)
{
	static const char deleted[] = " (deleted)";
	size_t n = strnlen(path, max);

	if (n > sizeof(deleted) - 1 &&
	    memcmp(path + n - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1) == 0)
		n -= sizeof(deleted) - 1;
	if (n == 0 || (file->path && strlen(file->path) == n && !memcmp(file->path, path, n)))
		return;
	free(file->path);
	file->path = strndup(path, n);
	file->mapping_epoch = 0;
	file->generation = ++files->generations;
}

void files_record(struct files *files, const struct record_file *record)
{
	struct file *file = files_get(files, record->file_id);

	/* A new sampler counts its ids from the start again. */
	if (file->announced &&
	    (file->inode != record->inode || file->dev_major != record->dev_major ||
	     file->dev_minor != record->dev_minor))
		file_forget_content(files, file);
	file->announced = true;
	file->inode = record->inode;
	file->dev_major = record->dev_major;
	file->dev_minor = record->dev_minor;
	/* The broker's path is of the same file, and longer. */
	if (!file->received || !file->path)
		file_set_path(files, file, record->path, sizeof(record->path));
	files->arrivals++;
}

void files_message(struct files *files, const struct message_file *message, int fd)
{
	struct file *file = files_get(files, message->file_id);

	files->arrivals++;
	if (message->error || fd < 0) {
		file->refused = true;
		file->waited = true; /* so waiting for it makes no sense */
		file_set_path(files, file, message->path, sizeof(message->path));
		if (fd >= 0)
			close(fd);
		return;
	}
	if (file->received && memcmp(&file->key, &message->key, sizeof(file->key)))
		file_overwritten(files, file);
	if (!file->received || file->slot < 0)
		file->generation = ++files->generations;
	file->received = true;
	file->refused = false;
	file->key = message->key;
	file_set_path(files, file, message->path, sizeof(message->path));
	file_take_fd(files, file, fd);
}

/*
 * A file that is overwritten in place while nobody runs it keeps its inode, and so its id: nobody
 * but who holds it open can notice. What is open is that very file, so its new content is at hand.
 */
void files_mapped(struct files *files, uint32_t file_id)
{
	struct file *file = lru_get(&files->table, file_id);
	struct stat st;
	uint64_t mtime_ns;
	int slot, err;

	if (file && file->others)
		others_again(&files->others, file->others);
	if (!file || file->slot < 0 || !file->key.inode)
		return;
	files_begin(files, file);
	err = reader_stat(files->reader, file->slot, &st);
	files_end(files);
	if (err)
		return;
	mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000ull + (uint64_t)st.st_mtim.tv_nsec;
	if (file->key.mtime_ns == mtime_ns && file->key.size_bytes == (uint64_t)st.st_size)
		return;
	slot = file->slot;
	file->slot = -1;
	file_overwritten(files, file);
	file->slot = slot;
	file->received = true;
	file->key.mtime_ns = mtime_ns;
	file->key.size_bytes = (uint64_t)st.st_size;
}

uint64_t files_symbol_bytes(const struct files *files)
{
	return files->symbol_bytes + files->jit_bytes + files->scripts_bytes + files->others.bytes;
}

bool file_is_known(const struct file *file)
{
	/* Go's table is read as it is asked for. */
	return file->slot >= 0 || (!file->go && (file->symbols || file->bad));
}

void files_need(struct files *files, struct file *file, uint64_t now_ns)
{
	struct message_need_file need = {.file_id = file->node.key};

	if (file_is_known(file) || now_ns < file->need_ns)
		return;
	/* The sampler has asked for it when it gave the id. */
	if (file->announced && !file->received && file->need_ms == 0) {
		file->need_ms = NEED_FIRST_MS;
		file->need_ns = now_ns + NEED_FIRST_MS * NS_PER_MS;
		return;
	}
	if (now_ns - files->need_window_ns >= 1000 * NS_PER_MS) {
		files->need_window_ns = now_ns;
		files->need_sent = 0;
	}
	if (files->need_sent >= NEED_PER_SECOND ||
	    channel_send(files->sampler, MESSAGE_NEED_FILE, &need, NULL, 0))
		return;
	files->need_sent++;
	file->need_ms = file->need_ms == 0		   ? NEED_FIRST_MS
			: file->need_ms * 2 > NEED_LAST_MS ? NEED_LAST_MS
							   : file->need_ms * 2;
	file->need_ns = now_ns + file->need_ms * NS_PER_MS;
}

void files_other(struct files *files, const struct message_other *message, int fd)
{
	struct file *file = lru_get(&files->table, message->need.file_id);

	files->arrivals++;
	others_message(&files->others, file ? file->others : NULL, message, fd);
}

const char *file_module(const struct file *file)
{
	const char *slash = file->path ? strrchr(file->path, '/') : NULL;

	if (!file->path)
		return "?";
	if (file->node.key == RECORD_VDSO_FILE_ID)
		return "vdso";
	return slash && slash[1] ? slash + 1 : file->path;
}
