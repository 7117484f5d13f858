/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/filenames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/jit.h"
#include "symbolizer/memory.h"

/* What was read of a Go program's table helps with new names only: what was found is kept in
 * symbolize's cache. 300 names of a program of 90 MB take 5 MiB. */
#define FILE_GO_SHARE 8
#define FILE_JIT_PART 8

/* Its names take more or less than before. */
static void filenames_count(struct files *files, struct file *file)
{
	size_t bytes = (file->symbols ? file->symbols->bytes : 0) +
		       (file->go ? golines_bytes(file->go) : 0) +
		       (file->dwarf ? dwarf_bytes(file->dwarf) : 0);

	files->symbol_bytes += bytes - file->bytes;
	file->bytes = bytes;
}

void filenames_close(struct files *files, struct file *file)
{
	file->lines_gone |= file->dwarf != NULL;
	dwarf_close(file->dwarf);
	file->dwarf = NULL;
	filenames_count(files, file);
}

/* What can be had again from the file. False: that was nothing. */
bool filenames_forget(struct files *files, struct file *file)
{
	size_t before = file->bytes;

	symbols_free(file->symbols);
	file->symbols = NULL;
	if (file->go)
		golines_forget(file->go);
	filenames_close(files, file);
	return file->bytes < before;
}

/* From here on what happens is the other file's doing; until files_begin() says otherwise. */
static void filenames_begin_other(struct files *files, const struct others_file *other)
{
	blame_begin(files->blame, other->key.device, other->key.inode, other->path);
}

static int filenames_open_other(struct files *files, const struct others_file *other,
				struct elffile *elf)
{
	if (other->slot < 0)
		return -ENOENT;
	filenames_begin_other(files, other);
	return elffile_open(elf, files->reader, other->slot, other->key.size_bytes);
}

int filenames_part(void *arg, uint32_t file_id, const struct others_file *part)
{
	struct files *files = arg;
	struct file *file = lru_get(&files->table, file_id);
	struct elffile elf;
	int err;

	if (!file || !file->dwarf || part->slot < 0)
		return file && file->dwarf ? dwarf_give(file->dwarf, part->dwo_id, NULL) : 0;
	err = filenames_open_other(files, part, &elf);
	if (err == 0) {
		err = dwarf_give(file->dwarf, part->dwo_id, &elf);
		elffile_close(&elf);
	}
	files_end(files);
	return err;
}

static void filenames_make_room(struct files *files, const struct file *keep)
{
	struct file *file = lru_oldest(&files->table);

	while (files_symbol_bytes(files) > files->symbol_bytes_max && file) {
		struct file *next = lru_newer(&files->table, &file->node);

		if (file != keep && filenames_forget(files, file))
			files->evictions++;
		file = next;
	}
}

static void filenames_keep_segments(struct file *file, const struct elffile *elf)
{
	file->segments = malloc(sizeof(elf->segments[0]) * (elf->segments_n + 1));
	if (!file->segments)
		return;
	memcpy(file->segments, elf->segments, sizeof(elf->segments[0]) * elf->segments_n);
	file->segments_n = elf->segments_n;
}

/*
 * So much may the names of one file take that nothing more has to go when all others have come to hold
 * what they may. Most processes make little code: as long as that is so, its names are not reckoned
 * with half of the memory, and when it is not any more, the file has to go and comes again smaller.
 */
static uint64_t filenames_most(const struct files *files)
{
	uint64_t max = files->symbol_bytes_max, part = max / FILE_JIT_PART;
	uint64_t others = max / FILES_OTHERS_SHARE + files->scripts_bytes +
			  (files->jit_bytes > part ? max / JIT_SHARE : part);

	return others < max ? max - others : 0;
}

static uint64_t filenames_symbols_max(const struct files *files)
{
	uint64_t most = filenames_most(files), half = files->symbol_bytes_max / 2;

	return half < most ? half : most;
}

/* Its own, or those of its debug file, which lie where its own code lies. */
static struct symbols *filenames_symbols(struct files *files, const struct file *file,
					 struct elffile *elf)
{
	const struct others *o = file->others;
	struct symbols *symbols = NULL;
	struct elffile debug;

	if (o && !o->says.symbols) {
		if (filenames_open_other(files, &o->debug, &debug) == 0) {
			memcpy(debug.segments, elf->segments, sizeof(debug.segments));
			debug.segments_n = elf->segments_n;
			symbols = symbols_build(&debug, filenames_symbols_max(files));
			elffile_close(&debug);
		}
		files_begin(files, file);
	}
	return symbols ? symbols : symbols_build(elf, filenames_symbols_max(files));
}

/* So much of them may the lines of one file take. */
static size_t filenames_lines_max(const struct files *files, const struct file *file)
{
	uint64_t most = filenames_most(files);
	uint64_t taken = (file->symbols ? file->symbols->bytes : 0) +
			 (file->go ? files->symbol_bytes_max / FILE_GO_SHARE : 0);

	return taken < most ? most - taken : 0;
}

/* By its own debug information, or by that of its debug file, with all that belongs to it. */
static void filenames_open_lines(struct files *files, struct file *file, struct elffile *own)
{
	static const struct others_file none = {.slot = -1};
	const struct others *o = file->others;
	const struct others_file *of[3] = {o && !o->says.lines ? &o->debug : &none,
					   o ? &o->alt : &none, o ? &o->dwp : &none};
	struct elffile elf[3], *parts[3];

	filenames_close(files, file);
	file->lines_gone = false;
	file->most = filenames_most(files);
	for (int i = 0; i < 3; i++)
		parts[i] = filenames_open_other(files, of[i], &elf[i]) ? NULL : &elf[i];
	file->dwarf =
	    dwarf_open(&(struct dwarf_parts){parts[0] ? parts[0] : own, parts[1], parts[2]},
		       filenames_lines_max(files, file));
	files->large += !file->dwarf && errno == EFBIG;
	for (int i = 0; i < 3; i++)
		if (parts[i])
			elffile_close(parts[i]);
	for (uint32_t i = 0; file->dwarf && o && o->split && i < o->split->parts_n; i++)
		filenames_part(files, file->node.key, &o->split->parts[i]);
	files_begin(files, file);
}

/*
 * Look into the file: once for what it is, and for its names whenever the index is gone. Those of a
 * Go program are in its own table; its symbols are wanted when something else of it is met, C code.
 */
static void filenames_examine(struct files *files, struct file *file)
{
	struct elffile elf;
	int err = elffile_open(&elf, files->reader, file->slot, file->key.size_bytes);

	file->most = filenames_most(files);
	if (!file->examined) {
		file->examined = true;
		file->ids = calloc(1, sizeof(*file->ids));
		if (file->ids)
			elffile_htlhash(files->reader, file->slot, file->key.size_bytes,
					file->ids->htlhash);
		if (err == 0) {
			filenames_keep_segments(file, &elf);
			if (file->ids)
				elffile_build_ids(&elf, file->ids);
			file->go = golines_open(&elf, files->symbol_bytes_max / FILE_GO_SHARE);
		}
		file->mapping_epoch = 0;
		if (file->go) {
			elffile_close(&elf);
			files->indexed++;
			return;
		}
	}
	if (err == 0) {
		if (!file->others_begun && file->node.key != RECORD_VDSO_FILE_ID)
			file->others = others_begin(&files->others, file->node.key, &elf);
		file->others_begun = true;
		file->symbols = filenames_symbols(files, file, &elf);
		if (!file->symbols && errno != ENOENT)
			err = -errno;
		filenames_open_lines(files, file, &elf);
		elffile_close(&elf);
	}
	if (file->symbols || file->dwarf) {
		filenames_count(files, file);
		files->indexed++;
		filenames_make_room(files, file);
		return;
	}
	/* Not an ELF file or without names is no fault of the file's. */
	file->bad = true;
	if (err && err != -ENOEXEC)
		files->bad++;
	if (err == -ENOMEM)
		memory_file_failed(file->path, "names");
}

static void filenames_find_go(struct files *files, struct file *file, uint64_t vaddr,
			      struct lines *lines)
{
	golines_find(file->go, file->slot, vaddr, lines);
	filenames_count(files, file);
	filenames_make_room(files, file);
}

/* They went when the file was closed, and the symbols did not. */
static void filenames_reopen_lines(struct files *files, struct file *file)
{
	struct elffile elf;

	file->lines_gone = false;
	if (elffile_open(&elf, files->reader, file->slot, file->key.size_bytes))
		return;
	filenames_open_lines(files, file, &elf);
	elffile_close(&elf);
}

/* By debug information, where there is some. */
static void filenames_find_lines(struct files *files, struct file *file, uint64_t address,
				 const char *symbol, struct lines *lines)
{
	const struct others *o = file->others;
	struct dwarf_want want;

	if (!file->dwarf)
		return;
	if (o && !o->says.lines && o->debug.slot >= 0)
		filenames_begin_other(files, &o->debug);
	dwarf_find(file->dwarf, address, symbol, lines);
	files_begin(files, file);
	if (dwarf_resumed(file->dwarf))
		file->generation = ++files->generations;
	if (file->others && dwarf_wants(file->dwarf, &want))
		others_want(&files->others, file->others, want.name, want.dwo_id);
	filenames_count(files, file);
	filenames_make_room(files, file);
}

/* By its symbols, and the debug information that says more of them. */
static void filenames_find_symbol(struct files *files, struct file *file, uint64_t vaddr,
				  struct lines *lines)
{
	const char *name;

	if (!file->symbols && !file->dwarf && !file->bad && file->slot >= 0)
		filenames_examine(files, file);
	name = file->symbols ? symbols_find(file->symbols, vaddr) : NULL;
	filenames_find_lines(files, file, vaddr, name, lines);
	if (lines->n == 0 && name)
		lines->line[lines->n++] = (struct line){.name = name};
}

bool filenames_pending(struct files *files, struct file *file)
{
	if (!file->examined && file->slot >= 0) {
		files_begin(files, file);
		filenames_examine(files, file);
		files_end(files);
	}
	return file->others && others_pending(file->others);
}

void filenames_find(struct files *files, struct file *file, uint64_t offset,
		    struct filenames_found *found)
{
	const struct elffile_segment *segment;

	/* It was opened when it might take more. */
	if (file->most > filenames_most(files) && filenames_forget(files, file))
		files->evictions++;
	if (!file->symbols && !file->dwarf && !file->go && !file->bad && file->slot >= 0)
		filenames_examine(files, file);
	else if (file->lines_gone && file->slot >= 0)
		filenames_reopen_lines(files, file);
	found->lines.n = 0;
	found->address = offset;
	found->segment = file->segments_n;
	segment = elffile_find_segment(file->segments, file->segments_n, offset);
	if (!segment)
		return;
	found->segment = (uint32_t)(segment - file->segments);
	found->address = segment->vaddr + (offset - segment->offset);
	if (file->go)
		filenames_find_go(files, file, found->address, &found->lines);
	if (found->lines.n == 0)
		filenames_find_symbol(files, file, found->address, &found->lines);
}
