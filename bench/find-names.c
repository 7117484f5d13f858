/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names addresses of one file as a symbolizer does that meets it for the first time; bench/names
 * runs it.
 *
 *   find-names ring|pread cold|warm BYTES FILE < ADDRESSES
 *
 * Addresses are the file's own, in hex, one a line. cold: the page cache is told to give up the
 * file first, which it does with pages that nobody has mapped. BYTES: --symbol-memory. Prints in
 * one line: addresses, those with a name, those with a file and line, lines, microseconds to the
 * first answer, to the last, of a second pass over the same, bytes held then, bytes and entries of
 * the index of symbols.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "symbolizer/demangle.h"
#include "symbolizer/filenames.h"

#define ADDRESSES_MAX 1000000
#define FILE_ID	      1

struct answers {
	unsigned named, placed, lines;
	double first_us, all_us;
};

static struct reader reader;
static struct channel sampler;
static struct files files;
static uint64_t *addresses;
static size_t addresses_n;

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void read_addresses(void)
{
	char line[64];

	addresses = calloc(ADDRESSES_MAX, sizeof(*addresses));
	if (!addresses)
		fail("memory");
	while (addresses_n < ADDRESSES_MAX && fgets(line, sizeof(line), stdin))
		addresses[addresses_n++] = strtoull(line, NULL, 16);
}

static void open_file(const char *path, bool cold)
{
	struct message_file message = {.file_id = FILE_ID};
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st))
		fail(path);
	if (cold)
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	message.key = (struct file_key){st.st_dev, st.st_ino, (uint64_t)st.st_size, 1};
	snprintf(message.path, sizeof(message.path), "%s", path);
	files_message(&files, &message, fd);
}

/* Where the file holds it: what a sample says of an address. */
static uint64_t offset_of(const struct file *file, uint64_t vaddr)
{
	for (uint32_t i = 0; i < file->segments_n; i++)
		if (vaddr - file->segments[i].vaddr < file->segments[i].bytes)
			return file->segments[i].offset + (vaddr - file->segments[i].vaddr);
	return 0;
}

static struct answers find_all(double begin_us)
{
	struct answers a = {0};
	struct filenames_found found;
	struct file *file = files_get(&files, FILE_ID);
	char readable[1024];

	/* Segments are known when something was asked. */
	if (!file->examined)
		filenames_find(&files, file, 0, &found);
	for (size_t i = 0; i < addresses_n; i++) {
		filenames_find(&files, files_get(&files, FILE_ID), offset_of(file, addresses[i]),
			   &found);
		for (uint32_t k = 0; k < found.lines.n; k++)
			demangle(found.lines.line[k].name, readable, sizeof(readable));
		a.named += found.lines.n > 0;
		a.placed += found.lines.n && found.lines.line[0].file;
		a.lines += found.lines.n;
		if (i == 0)
			a.first_us = now_us() - begin_us;
	}
	a.all_us = now_us() - begin_us;
	return a;
}

int main(int argc, char **argv)
{
	struct answers first, again;
	const struct file *file;
	int fds[2];

	if (argc != 5)
		return 2;
	read_addresses();
	/* What it has to say goes nowhere. */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds))
		fail("socketpair");
	channel_init(&sampler, fds[0], ROLE_SYMBOLIZER, ROLE_SAMPLER, true);
	reader_open(&reader, argv[1][0] == 'r');
	if (files_open(&files, &reader, &sampler, strtoull(argv[3], NULL, 10)))
		fail("files_open");
	open_file(argv[4], argv[2][0] == 'c');
	first = find_all(now_us());
	again = find_all(now_us());
	file = files_get(&files, FILE_ID);
	printf("%zu %u %u %u %.3f %.3f %.3f %llu %zu %u\n", addresses_n, first.named, first.placed,
	       first.lines, first.first_us, first.all_us, again.all_us,
	       (unsigned long long)files.symbol_bytes, file->symbols ? file->symbols->bytes : 0,
	       file->symbols ? file->symbols->entries_n : 0);
	return 0;
}
