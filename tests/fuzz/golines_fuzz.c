/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a Go program: where its table is, what it describes itself as, functions, files,
 * lines and the calls that were put into them. Whatever is said of an address are texts that end,
 * within the memory that was allowed.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolizer/golines.h"
#include "symbolizer/pclntab.h"
#include "symbolizer/reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/symbolizer/goimage.h"

#define BYTES_MAX   (1u << 20)
#define INDEX_BYTES 1024 /* besides what was read */
#define EVERY	    13

const unsigned fuzz_mutations = 1000;

static void look(struct golines *go, int slot, uint64_t vaddr)
{
	struct lines lines;

	golines_find(go, slot, vaddr, &lines);
	if (lines.n > SYMBOL_LINES_MAX || golines_bytes(go) > BYTES_MAX + INDEX_BYTES)
		abort();
	for (uint32_t i = 0; i < lines.n; i++)
		if (!lines.line[i].name[0] || strlen(lines.line[i].name) >= PCLNTAB_NAME_MAX ||
		    (lines.line[i].file && strlen(lines.line[i].file) >= PCLNTAB_NAME_MAX))
			abort();
}

static void look_around(struct golines *go, int slot, const struct elffile_segment *text)
{
	/* By turns as it is, after everything was given up, and without the file. */
	for (uint64_t i = 0; i < GOIMAGE_FUNCTIONS * GOIMAGE_FUNCTION_BYTES; i += EVERY) {
		look(go, slot, text->vaddr + GOIMAGE_TEXT + i);
		if (i % 2)
			golines_forget(go);
		look(go, i % 3 ? slot : -1, text->vaddr + GOIMAGE_TEXT + i);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct reader reader;
	static struct elffile file;
	static int ready;
	struct elffile_segment text;
	struct golines *go;
	int fd = memfd_create("input", MFD_CLOEXEC), slot;

	if (!ready++)
		reader_open(&reader, false);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	slot = reader_add(&reader, fd);
	if (elffile_open(&file, &reader, slot, size) == 0) {
		go = file.segments_n ? golines_open(&file, BYTES_MAX) : NULL;
		text = file.segments[0];
		elffile_close(&file);
		if (go)
			look_around(go, slot, &text);
		golines_close(go);
	}
	reader_remove(&reader, slot);
	return 0;
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	if (n >= GOIMAGE_RELEASES)
		return 0;
	goimage_make(&goimage_releases[n], data);
	return GOIMAGE_BYTES;
}
