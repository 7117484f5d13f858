/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/lang/livefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/record.h"
#include "symbolizer/ehframe.h"
#include "symbolizer/reader.h"

#define LIVEFILE_MAX	 1024u
#define LIVEFILE_SYMBOLS (64u << 20)
#define LIVEFILE_VDSO	 16384u

static struct livefile *all[LIVEFILE_MAX];
static uint32_t all_n;
static struct livefile *vdso;

/* The table as a worker hands it over: the runtime stands behind the rules. */
static void livefile_append(struct livefile *file, size_t bytes)
{
	struct table_header *table = realloc(file->table, bytes + sizeof(file->runtime.walk));

	if (!table)
		abort();
	memcpy((char *)table + bytes, &file->runtime.walk, sizeof(file->runtime.walk));
	table->runtimes = 1;
	file->table = table;
	if (table_check(table, bytes + sizeof(file->runtime.walk)))
		abort();
}

/* Takes the fd. */
static struct livefile *livefile_new(const char *path, int fd, uint32_t id)
{
	struct livefile *file = calloc(1, sizeof(*file));
	const char *slash = strrchr(path, '/');
	static struct reader reader;
	struct elffile elf;
	struct stat st;
	size_t bytes = 0;
	int slot;

	if (!file || fstat(fd, &st))
		abort();
	snprintf(file->path, sizeof(file->path), "%s", path);
	reader_open(&reader, false);
	slot = reader_add(&reader, fd);
	file->recognized = -ENOEXEC;
	if (elffile_open(&elf, &reader, slot, (uint64_t)st.st_size) == 0) {
		memcpy(file->segments, elf.segments, sizeof(file->segments));
		file->segments_n = elf.segments_n;
		if (ehframe_compile(&elf, id, &file->table, &bytes))
			file->table = NULL;
		file->symbols = symbols_build(&elf, LIVEFILE_SYMBOLS);
		file->recognized = lang_recognize(&elf, slash ? slash + 1 : path, &file->runtime);
		elffile_close(&elf);
	}
	reader_close(&reader);
	if (file->recognized == 0 && file->table)
		livefile_append(file, bytes);
	return file;
}

uint32_t livefile_id(const char *path, const char *by, uint64_t device, uint64_t inode)
{
	int fd;

	for (uint32_t i = 0; i < all_n; i++)
		if (all[i]->device == device && all[i]->inode == inode &&
		    !strcmp(all[i]->path, path))
			return i + 1;
	fd = open(by, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (all_n == LIVEFILE_MAX)
		abort();
	all[all_n] = livefile_new(path, fd, all_n + 1);
	all[all_n]->device = device;
	all[all_n++]->inode = inode;
	return all_n;
}

static struct livefile *livefile_vdso(void)
{
	const char *at = (const char *)getauxval(AT_SYSINFO_EHDR);
	int fd = memfd_create("vdso", MFD_CLOEXEC);
	size_t n = 0;

	/* Page by page: how long it is only the kernel knows. */
	while (fd >= 0 && at && n < LIVEFILE_VDSO && write(fd, at + n, 4096) == 4096)
		n += 4096;
	return fd < 0 ? NULL : livefile_new("[vdso]", fd, RECORD_VDSO_FILE_ID);
}

const struct livefile *livefile_get(uint32_t id)
{
	if (id == RECORD_VDSO_FILE_ID && !vdso)
		vdso = livefile_vdso();
	if (id == RECORD_VDSO_FILE_ID)
		return vdso;
	return id && id <= all_n ? all[id - 1] : NULL;
}

const char *livefile_symbol(const struct livefile *file, uint64_t offset)
{
	const struct elffile_segment *segment =
	    elffile_find_segment(file->segments, file->segments_n, offset);

	return segment && file->symbols
		   ? symbols_find(file->symbols, offset - segment->offset + segment->vaddr)
		   : NULL;
}

static void livefile_free(struct livefile *file)
{
	if (!file)
		return;
	free(file->table);
	symbols_free(file->symbols);
	free(file);
}

void livefile_forget(void)
{
	while (all_n)
		livefile_free(all[--all_n]);
	livefile_free(vdso);
	vdso = NULL;
}
