/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/symbolize.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/demangle.h"
#include "symbolizer/filenames.h"

#define CACHE_SLOTS 65536 /* a power of two */
#define NAME_BYTES  1024  /* longer names of C++ are left mangled */

struct symbolize_cached {
	uint64_t addr;
	uint64_t generation; /* of the file, or of the kernel's symbols with the top bit set */
	uint32_t file_id, epoch;
	uint32_t location; /* 0 = free */
	uint32_t outcome;
};

#define KERNEL_GENERATION (1ull << 63)

int symbolize_open(struct symbolize *s, struct define *define, struct files *files,
		   struct kallsyms *kallsyms, const char *kernel_build_id, struct jit *jit,
		   struct scripts *scripts)
{
	memset(s, 0, sizeof(*s));
	s->define = define;
	s->files = files;
	s->kallsyms = kallsyms;
	s->kernel_build_id = kernel_build_id;
	s->jit = jit;
	s->scripts = scripts;
	s->cache = calloc(CACHE_SLOTS, sizeof(*s->cache));
	return s->cache ? 0 : -ENOMEM;
}

void symbolize_close(struct symbolize *s)
{
	free(s->cache);
	s->cache = NULL;
}

void symbolize_forget_kernel(struct symbolize *s)
{
	s->kernel_generation++;
}

/* --- Definitions. 0 from any of them goes through to the caller: the log is full. --- */

static uint32_t symbolize_text(struct symbolize *s, const char *text)
{
	return define_string(s->define, text, strlen(text));
}

static int symbolize_optional(struct symbolize *s, const char *text, uint32_t *string)
{
	*string = text && text[0] ? symbolize_text(s, text) : 0;
	return text && text[0] && !*string ? -ENOSPC : 0;
}

static uint32_t symbolize_function(struct symbolize *s, const struct line *line,
				   enum symbol_frame_type type)
{
	struct symbol_function function = {.system_name = symbolize_text(s, line->name),
					   .start_line = line->start_line};
	char readable[NAME_BYTES];

	function.name = function.system_name;
	/* Scripts may call their functions what they like. */
	if (type <= SYMBOL_FRAME_KERNEL && demangle(line->name, readable, sizeof(readable)))
		function.name = symbolize_text(s, readable);
	if (!function.system_name || !function.name ||
	    symbolize_optional(s, line->file, &function.file))
		return 0;
	return define_function(s->define, &function);
}

static uint32_t symbolize_location(struct symbolize *s, uint32_t mapping, uint64_t address,
				   enum symbol_frame_type type, const struct lines *lines)
{
	struct symbol_location location = {.mapping = mapping,
					   .frame_type = (uint8_t)type,
					   .address = address,
					   .lines_n = lines->n};
	struct symbol_line defined[SYMBOL_LINES_MAX];

	for (uint32_t i = 0; i < lines->n; i++) {
		defined[i].function = symbolize_function(s, &lines->line[i], type);
		defined[i].line = lines->line[i].line;
		if (!defined[i].function)
			return 0;
	}
	return define_location(s->define, &location, defined);
}

/* Of which nothing is known but what to call it. */
static uint32_t symbolize_name(struct symbolize *s, uint32_t mapping, uint64_t address,
			       enum symbol_frame_type type, const char *name)
{
	struct lines lines = {.line = {{.name = name}}, .n = 1};

	return symbolize_location(s, mapping, address, type, &lines);
}

/* Of what is no file. build_id: the kernel's; "" = none. */
static uint32_t symbolize_plain_mapping(struct symbolize *s, const char *name, const char *build_id)
{
	struct symbol_mapping mapping = {.file = symbolize_text(s, name)};

	if (!mapping.file || symbolize_optional(s, build_id, &mapping.gnu_build_id))
		return 0;
	return define_mapping(s->define, &mapping);
}

/*
 * One mapping per executable segment: start and limit are the addresses at which the file itself
 * asks to be loaded, and a location's address counts among them, so that it is what addr2line wants
 * and the same in every process. Where the segments are not known: 0, 0, and addresses are offsets
 * in the file.
 */
static uint32_t symbolize_file_mapping(struct symbolize *s, struct file *file, uint32_t segment)
{
	struct symbol_mapping mapping = {0};
	uint32_t *known = &file->mapping[segment];

	if (file->mapping_epoch != s->define->epoch) {
		memset(file->mapping, 0, sizeof(file->mapping));
		file->mapping_epoch = s->define->epoch;
	}
	if (*known)
		return *known;
	mapping.file = symbolize_text(s, file->path ? file->path : "?");
	if (!mapping.file)
		return 0;
	if (file->ids && (symbolize_optional(s, file->ids->gnu, &mapping.gnu_build_id) ||
			  symbolize_optional(s, file->ids->go, &mapping.go_build_id) ||
			  symbolize_optional(s, file->ids->htlhash, &mapping.htlhash)))
		return 0;
	if (segment < file->segments_n) {
		mapping.start = file->segments[segment].vaddr;
		mapping.limit = mapping.start + file->segments[segment].bytes;
		mapping.offset = file->segments[segment].offset;
	}
	*known = define_mapping(s->define, &mapping);
	return *known;
}

/* --- Frames. --- */

static uint32_t symbolize_native(struct symbolize *s, struct file *file, uint64_t offset,
				 enum symbolize_outcome *outcome)
{
	struct filenames_found found;
	char unnamed[RECORD_PATH_BYTES + 32];
	uint32_t mapping;

	filenames_find(s->files, file, offset, &found);
	mapping = symbolize_file_mapping(s, file, found.segment);
	if (!mapping)
		return 0;
	*outcome = found.lines.n ? FRAME_NAMED : FRAME_UNNAMED;
	if (found.lines.n)
		return symbolize_location(s, mapping, found.address, SYMBOL_FRAME_NATIVE,
					  &found.lines);
	snprintf(unnamed, sizeof(unnamed), "[%.255s+0x%llx]", file_module(file),
		 (unsigned long long)found.address);
	return symbolize_name(s, mapping, found.address, SYMBOL_FRAME_NATIVE, unnamed);
}

static uint32_t symbolize_kernel(struct symbolize *s, uint64_t addr,
				 enum symbolize_outcome *outcome)
{
	struct kallsyms_found found = {"[kernel]", "", 0};
	char module[128] = "[kernel]";
	uint32_t mapping;

	*outcome = kallsyms_find(s->kallsyms, addr, &found) ? FRAME_NAMED : FRAME_UNNAMED;
	if (found.module[0])
		snprintf(module, sizeof(module), "[%.100s]", found.module);
	mapping = symbolize_plain_mapping(s, module, found.module[0] ? "" : s->kernel_build_id);
	if (!mapping)
		return 0;
	return symbolize_name(s, mapping, found.offset, SYMBOL_FRAME_KERNEL, found.name);
}

static struct symbolize_cached *symbolize_slot(struct symbolize *s, uint32_t file_id, uint64_t addr)
{
	uint64_t hash = (addr ^ (uint64_t)file_id << 40) * 0x9e3779b97f4a7c15ull;

	return &s->cache[hash >> 32 & (CACHE_SLOTS - 1)];
}

static int symbolize_push(struct symbolize *s, uint32_t location, enum symbolize_outcome outcome)
{
	if (!location)
		return -ENOSPC;
	s->locations[s->locations_n++] = location;
	s->outcomes[outcome]++;
	return 0;
}

/* file NULL: a frame of the kernel. */
static int symbolize_cached(struct symbolize *s, struct file *file, uint64_t addr)
{
	uint32_t file_id = file ? file->node.key : 0;
	uint64_t generation = file ? file->generation : KERNEL_GENERATION | s->kernel_generation;
	struct symbolize_cached *slot = symbolize_slot(s, file_id, addr);
	enum symbolize_outcome outcome;
	uint32_t location;

	if (slot->location && slot->addr == addr && slot->file_id == file_id &&
	    slot->generation == generation && slot->epoch == s->define->epoch)
		return symbolize_push(s, slot->location, (enum symbolize_outcome)slot->outcome);
	if (file) {
		files_begin(s->files, file);
		location = symbolize_native(s, file, addr, &outcome);
		files_end(s->files);
	} else {
		location = symbolize_kernel(s, addr, &outcome);
	}
	if (location)
		*slot = (struct symbolize_cached){addr,	    generation, file_id, s->define->epoch,
						  location, outcome};
	return symbolize_push(s, location, outcome);
}

/* In no file. One location for all of a function: an absolute address tells nobody anything. */
static int symbolize_anonymous(struct symbolize *s, const struct process *process, uint64_t addr)
{
	struct lines lines = {.n = 0};
	uint32_t mapping;

	if (process)
		jit_find(s->jit, process, addr, s->time_ns, &lines);
	if (lines.n == 0)
		return symbolize_push(s, symbolize_name(s, 0, 0, SYMBOL_FRAME_NATIVE, "[unknown]"),
				      FRAME_UNKNOWN);
	mapping = symbolize_plain_mapping(s, "[jit]", "");
	return symbolize_push(s,
			      mapping ? symbolize_location(s, mapping, 0, SYMBOL_FRAME_NATIVE,
							   &lines)
				      : 0,
			      FRAME_NAMED);
}

/* The mapping that native frames of the interpreter loop have. */
static uint32_t symbolize_runtime_mapping(struct symbolize *s, struct file *file)
{
	const struct lang_runtime *runtime = runtimes_get(s->scripts->runtimes, s->files, file);
	const struct elffile_segment *segment = NULL;

	filenames_pending(s->files, file);
	if (runtime)
		segment = elffile_find_segment(file->segments, file->segments_n,
					       runtime->walk.loops[0].start);
	return symbolize_file_mapping(s, file,
				      segment ? (uint32_t)(segment - file->segments) : 0);
}

/* function NULL: there is one, but nothing of it is known. */
static uint32_t symbolize_script_location(struct symbolize *s, struct file *file,
					  const struct frame *frame,
					  const struct lang_function *function)
{
	uint32_t language = frame->language < LANG_COUNT ? frame->language : LANG_NONE;
	uint32_t mapping = file ? symbolize_runtime_mapping(s, file) : 0;
	struct lines lines = {.n = 1};
	char unnamed[32];

	if (file && !mapping)
		return 0;
	snprintf(unnamed, sizeof(unnamed), "[%s]", language ? langs[language]->name : "script");
	lines.line[0].name = unnamed;
	if (function)
		lines.line[0] = (struct line){.name = function->name,
					      .file = function->file,
					      .line = function->line,
					      .start_line = function->start_line};
	return symbolize_location(s, mapping, 0,
				  (enum symbol_frame_type)s->scripts->frame_types[language],
				  &lines);
}

/* cookie: the frame behind it. */
static int symbolize_script(struct symbolize *s, const struct process *process,
			    const struct frame *frame, const struct frame *cookie)
{
	struct file *file = frame->file_id ? files_get(s->files, frame->file_id) : NULL;
	struct scripts_slot *slot =
	    file ? scripts_find(s->scripts, process, file, frame, cookie) : NULL;
	const struct lang_function *function = NULL;
	bool known = slot && slot->location && slot->epoch == s->define->epoch;
	uint32_t location;

	if (known && !scripts_is_due(s->scripts, slot)) {
		s->scripts->unnamed += slot->retry_ns != 0;
		s->scripts->named += slot->retry_ns == 0;
		return symbolize_push(s, slot->location,
				      slot->retry_ns ? FRAME_UNNAMED : FRAME_NAMED);
	}
	if (slot && (!slot->retry_ns || scripts_is_due(s->scripts, slot)))
		function = scripts_read(s->scripts, process, file, slot, frame);
	location = symbolize_script_location(s, file, frame, function);
	if (slot) {
		slot->location = location;
		slot->epoch = s->define->epoch;
	}
	s->scripts->unnamed += !function;
	s->scripts->named += !!function;
	return symbolize_push(s, location, function ? FRAME_NAMED : FRAME_UNNAMED);
}

void symbolize_begin(struct symbolize *s, uint64_t time_ns)
{
	s->time_ns = time_ns;
	s->locations_n = 0;
	memset(s->outcomes, 0, sizeof(s->outcomes));
}

int symbolize_frame(struct symbolize *s, const struct process *process, const struct frame *frame,
		    const struct frame *next)
{
	/* A return address may be the first byte of the next function. */
	uint64_t addr = frame->addr - ((frame->flags & FRAME_RETURN) && frame->addr ? 1 : 0);
	const struct record_range *range = NULL;
	uint32_t file_id = frame->file_id;
	struct file *file;

	if (frame->kind == FRAME_COOKIE || s->locations_n == SYMBOL_STACK_FRAMES_MAX)
		return 0;
	if (frame->kind == FRAME_KERNEL)
		return symbolize_cached(s, NULL, addr);
	if (frame->kind == FRAME_SCRIPT)
		return symbolize_script(s, process, frame, next);
	if (frame->kind != FRAME_NATIVE) {
		/* The ranges that we know may be newer than those that BPF had. */
		range = process ? process_find_range(process, addr) : NULL;
		file_id = range ? range->file_id : 0;
		if (file_id)
			addr = addr - range->start + range->offset;
	}
	file = file_id ? files_get(s->files, file_id) : NULL;
	return file ? symbolize_cached(s, file, addr) : symbolize_anonymous(s, process, addr);
}

uint32_t symbolize_end(struct symbolize *s)
{
	return define_stack(s->define, s->locations, s->locations_n);
}

/* The program: what the broker said, else the lowest file that it has mapped. */
static const char *symbolize_executable(struct symbolize *s, const struct process *process)
{
	if (process->info_known)
		return process->executable ? process->executable : "";
	for (uint32_t i = 0; i < process->ranges_n; i++) {
		struct file *file = process->ranges[i].file_id
					? lru_get(&s->files->table, process->ranges[i].file_id)
					: NULL;

		if (file)
			return file->path ? file->path : "";
	}
	return process->executable ? process->executable : "";
}

uint32_t symbolize_process(struct symbolize *s, struct process *process)
{
	static const struct cgroup none;
	const struct cgroup *cgroup = process->cgroup ? process->cgroup : &none;
	struct symbol_process record = {.pid = process->node.key, .start_ns = process->start_lo_ns};
	char comm[RECORD_COMM_BYTES + 1] = {0};

	if (process->id && process->id_epoch == s->define->epoch)
		return process->id;
	memcpy(comm, process->comm, RECORD_COMM_BYTES);
	if (symbolize_optional(s, symbolize_executable(s, process), &record.executable) ||
	    symbolize_optional(s, cgroup->path, &record.cgroup) ||
	    symbolize_optional(s, cgroup->container_id, &record.container_id) ||
	    symbolize_optional(s, cgroup->unit, &record.unit) ||
	    symbolize_optional(s, comm, &record.comm))
		return 0;
	process->id = define_process(s->define, &record);
	process->id_epoch = s->define->epoch;
	return process->id;
}
