/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/bpf/tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "symbolizer/ehframe.h"

static void tables_expect(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "tables: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t tables_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static struct table_header *tables_compile(int fd, size_t *bytes)
{
	static struct reader reader;
	struct table_header *table = NULL;
	struct elffile file;
	struct stat st;

	tables_expect(fstat(fd, &st) == 0, "fstat");
	reader_open(&reader, false);
	tables_expect(elffile_open(&file, &reader, reader_add(&reader, fd), (uint64_t)st.st_size) ==
			  0,
		      "open");
	tables_expect(ehframe_compile(&file, 0, &table, bytes) == 0, "compile");
	elffile_close(&file);
	reader_close(&reader);
	return table;
}

static void tables_hand_over(struct store *store, uint32_t file_id, const void *table, size_t bytes)
{
	int fd = memfd_create("table", MFD_ALLOW_SEALING);

	tables_expect(write(fd, table, bytes) == (ssize_t)bytes &&
			  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0,
		      "memfd");
	tables_expect(store_install(store, file_id, 0, fd, (uint32_t)bytes, tables_now_ns()) == 0,
		      "install");
	close(fd);
}

static struct table_header *tables_add_runtime(struct table_header *table, size_t *bytes,
					       const struct table_runtime *runtime)
{
	table = realloc(table, *bytes + sizeof(*runtime));
	tables_expect(table != NULL, "realloc");
	memcpy((char *)table + *bytes, runtime, sizeof(*runtime));
	*bytes += sizeof(*runtime);
	table->runtimes = 1;
	return table;
}

struct table_header *tables_install(struct store *store, const struct rig_process *process,
				    pid_t pid, const struct table_runtime *runtime)
{
	struct table_header *first = NULL;

	for (uint32_t i = 0; i < process->ranges_n; i++) {
		const struct record_range *range = &process->ranges[i];
		struct table_header *table;
		char path[96];
		size_t bytes = 0;
		int fd;

		if (!range->file_id)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid, range->start,
			 range->end);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		table = tables_compile(fd, &bytes);
		close(fd);
		if (i == 0 && runtime)
			table = tables_add_runtime(table, &bytes, runtime);
		tables_hand_over(store, range->file_id, table, bytes);
		if (i == 0)
			first = table;
		else
			free(table);
	}
	return first;
}
