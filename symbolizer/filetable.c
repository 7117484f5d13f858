/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/filetable.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolizer/ehframe.h"
#include "symbolizer/memory.h"
#include "symbolizer/peers.h"
#include "symbolizer/runtimes.h"

/* The sampler may have refused or evicted it; who keeps needing it sends it again. */
#define SEND_AGAIN_NS 5000000000ull
/* Half of what the sampler tolerates (proto/messages.h). */
#define SEND_PER_SECOND 100
#define SECOND_NS	1000000000ull

void filetable_open(struct filetables *tables, struct files *files, struct channel *sampler,
		    uint64_t bytes_max)
{
	memset(tables, 0, sizeof(*tables));
	tables->files = files;
	tables->sampler = sampler;
	tables->bytes_max = bytes_max;
	files->tables = tables;
}

void filetable_forget(struct filetables *tables, struct file *file)
{
	if (file->table)
		tables->bytes -= file->table_bytes;
	free(file->table);
	file->table = NULL;
	file->table_none = file->own_table = false;
	file->table_sent_ns = file->borrow_until_ns = 0;
	file->lender = 0;
}

void filetable_forget_lent(struct filetables *tables, uint32_t lender)
{
	struct file *file = lru_oldest(&tables->files->table);

	for (; file; file = lru_newer(&tables->files->table, &file->node))
		if (file->lender == lender)
			filetable_forget(tables, file);
}

void filetable_withdraw(struct filetables *tables, const struct file *file)
{
	struct message_table message = {.file_id = file->node.key, .bytes = 1};

	channel_send(tables->sampler, MESSAGE_NO_TABLE, &message, NULL, 0);
}

static void filetable_make_room(struct filetables *tables, const struct file *keep)
{
	struct file *file = lru_oldest(&tables->files->table);

	while (tables->bytes > tables->bytes_max && file) {
		struct file *next = lru_newer(&tables->files->table, &file->node);

		if (file->table && file != keep) {
			filetable_forget(tables, file);
			tables->evictions++;
		}
		file = next;
	}
}

int filetable_memfd(const void *bytes, size_t n)
{
	int fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t done = 0;

	while (fd >= 0 && done < n) {
		ssize_t more = write(fd, (const char *)bytes + done, n - done);

		if (more <= 0) {
			close(fd);
			return -1;
		}
		done += (size_t)more;
	}
	if (fd >= 0)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
	return fd;
}

static void filetable_send(struct filetables *tables, struct file *file)
{
	struct message_table message = {.file_id = file->node.key,
					.bytes = (uint32_t)file->table_bytes};
	int fd;

	if (file->table_sent_ns && tables->now_ns < file->table_sent_ns + SEND_AGAIN_NS)
		return;
	if (tables->now_ns - tables->window_ns >= SECOND_NS) {
		tables->window_ns = tables->now_ns;
		tables->sent = 0;
	}
	if (tables->sent >= SEND_PER_SECOND)
		return; /* the next walk tries again */
	tables->sent++;
	file->table_sent_ns = tables->now_ns;
	if (file->lender) {
		peers_remind(tables->peers, file);
		return;
	}
	if (!file->table) {
		message.bytes = 0;
		channel_send(tables->sampler, MESSAGE_NO_TABLE, &message, NULL, 0);
		return;
	}
	fd = filetable_memfd(file->table, file->table_bytes);
	if (fd < 0)
		return;
	channel_send(tables->sampler, MESSAGE_TABLE, &message, &fd, 1);
	close(fd);
}

static void filetable_keep(struct filetables *tables, struct file *file)
{
	tables->bytes += file->table_bytes;
	filetable_make_room(tables, file);
}

static void filetable_compile(struct filetables *tables, struct file *file)
{
	struct elffile elf;
	int err;

	files_begin(tables->files, file);
	err = elffile_open(&elf, tables->files->reader, file->slot, file->key.size_bytes);
	if (err == 0) {
		err = ehframe_compile(&elf, file->node.key, &file->table, &file->table_bytes);
		if (err == 0 && tables->runtimes)
			runtimes_look(tables->runtimes, file, &elf);
		elffile_close(&elf);
		/* What was built on the way is many times the table. */
		malloc_trim(0);
	}
	files_end(tables->files);
	if (err) {
		if (err == -ENOMEM)
			memory_file_failed(file->path, "an unwind table");
		file->table = NULL;
		file->table_none = true;
		tables->none++;
		return;
	}
	if (file->runtime)
		runtimes_append(file->runtime, &file->table, &file->table_bytes);
	/* What was said of it while it was refused does not hold any more. */
	file->table_sent_ns = 0;
	tables->compiled++;
	filetable_keep(tables, file);
}

bool filetable_make(struct filetables *tables, struct file *file)
{
	if (!file->table && !file->table_none && file->slot >= 0)
		filetable_compile(tables, file);
	if (!file->table && !file->table_none)
		return false;
	filetable_send(tables, file);
	return true;
}

void filetable_adopt(struct filetables *tables, struct file *file, struct table_header *table,
		     size_t bytes, uint32_t lender)
{
	filetable_forget(tables, file);
	file->lender = lender;
	file->table = table;
	file->table_bytes = bytes;
	file->table_none = !table;
	/* The lender sends it to the sampler. */
	file->table_sent_ns = tables->now_ns;
	if (table)
		filetable_keep(tables, file);
}

const struct table_header *filetable_get(struct filetables *tables, uint32_t file_id, bool *missing)
{
	struct file *file = files_get(tables->files, file_id);

	*missing = false;
	if (file->slot < 0 || file->table || file->table_none ||
	    !peers_borrow(tables->peers, file, tables->now_ns))
		filetable_make(tables, file);
	/* One that the broker does not open is walked by frame pointers until it does. */
	if (!file->table && !file->table_none && !file->refused) {
		*missing = true;
		if (!tables->missing)
			tables->missing = file;
	}
	return file->table;
}
