/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads files as a symbolizer does that meets them for the first time; bench/reads runs it.
 *
 *   read-files ring|pread cold|warm parts|all FILE...
 *
 * parts: what names and table are made from is read, and nothing made of it. all: both are made.
 * cold: the page cache is told to give up the files first, which it does with pages that nobody
 * has mapped. Prints in one line microseconds, microseconds of CPU, reads by io_uring, reads by
 * pread.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "symbolizer/ehframe.h"
#include "symbolizer/elfparts.h"
#include "symbolizer/symbols.h"

#define SYMBOL_BYTES_MAX (64u << 20)

static double now_us(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void ignore_symbol(void *arg, const struct elffile_symbol *symbol)
{
	(void)arg;
	(void)symbol;
}

static void read_names(struct elffile *elf, bool all)
{
	struct elffile_ids ids;

	elffile_build_ids(elf, &ids);
	if (all)
		symbols_free(symbols_build(elf, SYMBOL_BYTES_MAX));
	else if (elffile_symbols(elf, false, ignore_symbol, NULL) < 0)
		elffile_symbols(elf, true, ignore_symbol, NULL);
}

static void read_table(struct elffile *elf, bool all)
{
	struct table_header *table = NULL;
	const uint8_t *bytes;
	GElf_Shdr header;
	size_t n;

	if (!all)
		elfparts_section(elf, ".eh_frame", &header, &bytes);
	else if (ehframe_compile(elf, 1, &table, &n) == 0)
		free(table);
}

/* The worker opens a file twice: for its table, and when a frame in it is named. */
static void read_file(struct reader *reader, int fd, bool all)
{
	int slot = reader_add(reader, fd);
	struct elffile elf;
	struct stat st;
	char hash[33];

	if (slot < 0 || reader_stat(reader, slot, &st))
		exit(1);
	if (elffile_open(&elf, reader, slot, (uint64_t)st.st_size) == 0) {
		read_table(&elf, all);
		elffile_close(&elf);
	}
	elffile_htlhash(reader, slot, (uint64_t)st.st_size, hash);
	if (elffile_open(&elf, reader, slot, (uint64_t)st.st_size) == 0) {
		read_names(&elf, all);
		elffile_close(&elf);
	}
	reader_remove(reader, slot);
}

int main(int argc, char **argv)
{
	static struct reader reader;
	static int fds[1024];
	double wall, cpu;
	int n = argc - 4;

	if (n <= 0 || n > (int)(sizeof(fds) / sizeof(fds[0])))
		return 2;
	for (int i = 0; i < n; i++) {
		fds[i] = open(argv[4 + i], O_RDONLY | O_CLOEXEC);
		if (fds[i] < 0 || (strcmp(argv[2], "cold") == 0 &&
				   posix_fadvise(fds[i], 0, 0, POSIX_FADV_DONTNEED)))
			return 1;
	}
	reader_open(&reader, strcmp(argv[1], "ring") == 0);
	wall = now_us(CLOCK_MONOTONIC);
	cpu = now_us(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < n; i++)
		read_file(&reader, fds[i], strcmp(argv[3], "all") == 0);
	printf("%.0f %.0f %llu %llu\n", now_us(CLOCK_MONOTONIC) - wall,
	       now_us(CLOCK_PROCESS_CPUTIME_ID) - cpu, (unsigned long long)reader.reads_uring,
	       (unsigned long long)reader.reads_pread);
	reader_close(&reader);
	return 0;
}
