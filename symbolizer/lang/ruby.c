/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of Ruby's frames, as Ruby 3.4 and later write them themselves: "Shop::Cart#total",
 * "Shop.open", "block in Shop::Cart#total", "Array#each", "<main>".
 */
#include <stdio.h>
#include <string.h>

#include "bpf/lang/ruby.h"
#include "symbolizer/lang/lang.h"
#include "symbolizer/lang/ruby_file.h"
#include "symbolizer/lang/ruby_layout.h"
#include "symbolizer/lang/ruby_lines.h"
#include "symbolizer/lang/ruby_values.h"

#define PAGE	    4096ull
#define PARENTS_MAX 4 /* of code that is evaluated by evaluated code */

/* A frame, its words as they are now. */
struct code {
	uint64_t at, entry_at; /* entry_at: 0 = none */
	__u64 body[RUBY_BODY_WORDS + 1];
	__u64 entry[RUBY_ENTRY_WORDS];
};

#define FIRST_LINE RUBY_BODY_WORDS /* stands behind what the walker reads */

/* Does that file lie there? */
static bool is_base(struct remote *remote, const struct lang_runtime *runtime, uint64_t base)
{
	char text[LANG_VERSION_BYTES];
	size_t bytes = strlen(runtime->version) + 1;

	return remote_read(remote, base + runtime->layout[RUBY_FILE_TEXT], text, bytes) &&
	       memcmp(text, runtime->version, bytes) == 0;
}

/*
 * What the file's addresses are counted from, in the process. Code begins with the address of its
 * first instruction in the loop, so that there are as few answers as the loop has pages.
 */
static bool find_base(struct remote *remote, const struct lang_runtime *runtime,
		      const struct code *code, uint64_t *base)
{
	const struct table_runtime *walk = &runtime->walk;
	uint64_t first, low, high;

	if (!remote_u64(remote, code->body[RUBY_BODY_ENCODED], &first))
		return false;
	low = first - walk->bias - walk->loops[0].end;
	high = first - walk->bias - walk->loops[0].start;
	for (*base = (low + PAGE) & ~(PAGE - 1); *base <= high; *base += PAGE)
		if (is_base(remote, runtime, *base))
			return true;
	return false;
}

static bool find_tables(struct ruby *ruby, const struct lang_runtime *runtime, uint64_t base)
{
	uint64_t vm;

	ruby->symbols = base + runtime->layout[RUBY_FILE_SYMBOLS];
	if (!ruby->layout->variables)
		return true;
	return remote_u64(ruby->remote, base + runtime->layout[RUBY_FILE_VM], &vm) &&
	       remote_u64(ruby->remote, vm + runtime->layout[RUBY_FILE_SHAPES], &ruby->shapes);
}

/* Only before 3.3 is there a need for names of IDs. */
static bool find_tables_of(struct ruby *ruby, const struct lang_runtime *runtime,
			   const struct code *code)
{
	uint64_t base;

	if (ruby->layout->class_path || !code->entry_at)
		return true;
	return find_base(ruby->remote, runtime, code, &base) && find_tables(ruby, runtime, base);
}

/* False: it is not what was sampled any more. */
static bool read_code(struct remote *remote, const struct lang_frame *frame, struct code *code)
{
	uint64_t check;

	code->at = frame->object;
	code->entry_at = frame->cookie >> RUBY_ENTRY_SHIFT << 3;
	if (!remote_read(remote, code->at, code->body, sizeof(code->body)) ||
	    (code->entry_at &&
	     !remote_read(remote, code->entry_at, code->entry, sizeof(code->entry))))
		return false;
	check = ruby_check(code->body, code->entry_at ? code->entry : NULL);
	return frame->cookie == ruby_cookie(code->entry_at, check) &&
	       frame->where == ruby_where(frame->where & RUBY_POSITION_NONE, check);
}

/* A path is a String, or an Array of what was given and what it really is. */
static bool name_file(const struct ruby *ruby, uint64_t path, char *file, size_t size)
{
	uint64_t value;

	if (ruby_element(ruby, path, 1, &value) && ruby_string(ruby, value, file, size))
		return true;
	return ruby_string(ruby, path, file, size) ||
	       (ruby_element(ruby, path, 0, &value) && ruby_string(ruby, value, file, size));
}

/*
 * From 3.4 on evaluated code is called like what it was evaluated in, but "<compiled>" is what it
 * has.
 */
static bool read_label(const struct ruby *ruby, const struct code *code, char *label, size_t size)
{
	uint64_t body = code->at, value = code->body[RUBY_BODY_LABEL], parent;

	for (int i = 0;; i++) {
		if (!ruby_string(ruby, value, label, size))
			return false;
		if (!ruby->layout->parent || i == PARENTS_MAX || strcmp(label, "<compiled>") != 0)
			return true;
		if (!remote_u64(ruby->remote, body + ruby->layout->parent, &parent))
			return false;
		if (!parent)
			return true;
		/* rb_iseq_t.body */
		if (!remote_u64(ruby->remote, parent + 16, &body) ||
		    !remote_u64(ruby->remote, body + 8 * RUBY_BODY_LABEL, &value))
			return false;
	}
}

/*
 * "total" or "block in total": the owner goes in front of what it owns. Bodies of classes and
 * scripts,
 * "<class:Cart>", belong to nobody.
 */
static bool name_code(const struct ruby *ruby, const struct code *code, char *name, size_t size)
{
	char label[LANG_NAME_BYTES], base[LANG_NAME_BYTES], owner[RUBY_CLASS_BYTES] = "";
	size_t in_front = 0, label_bytes, base_bytes;

	if (!read_label(ruby, code, label, sizeof(label)) ||
	    !ruby_string(ruby, code->body[RUBY_BODY_BASE_LABEL], base, sizeof(base)))
		return false;
	label_bytes = strlen(label);
	base_bytes = strlen(base);
	if (code->entry_at && base[0] != '<') {
		if (!ruby_owner(ruby, code->entry[RUBY_ENTRY_OWNER], owner))
			return false;
		if (label_bytes >= base_bytes &&
		    strcmp(label + label_bytes - base_bytes, base) == 0)
			in_front = label_bytes - base_bytes;
	}
	snprintf(name, size, "%.*s%s%s", (int)in_front, label, owner, label + in_front);
	return name[0] != 0;
}

static bool name_code_frame(struct ruby *ruby, const struct lang_runtime *runtime,
			    const struct lang_frame *frame, struct lang_function *function)
{
	uint32_t position = frame->where & RUBY_POSITION_NONE;
	struct code code;

	if (!read_code(ruby->remote, frame, &code) || !find_tables_of(ruby, runtime, &code) ||
	    !name_code(ruby, &code, function->name, sizeof(function->name)) ||
	    !name_file(ruby, code.body[RUBY_BODY_PATH], function->file, sizeof(function->file)))
		return false;
	if (position != RUBY_POSITION_NONE)
		function->line = ruby_line(ruby, code.at, position);
	function->start_line = (uint32_t)(ruby->layout->line_is_value ? code.body[FIRST_LINE] >> 1
								      : code.body[FIRST_LINE]);
	return read_code(ruby->remote, frame, &code);
}

static bool read_function(struct remote *remote, const struct lang_frame *frame, __u64 *entry)
{
	uint64_t check;

	if (!remote_read(remote, frame->object & ~RUBY_FRAME_C, entry, 8 * RUBY_ENTRY_WORDS))
		return false;
	check = ruby_check(NULL, entry);
	return frame->where == (uint32_t)check &&
	       frame->cookie == ruby_c_cookie(frame->cookie >> RUBY_BASE_SHIFT << 12, check);
}

static bool name_function_frame(struct ruby *ruby, const struct lang_runtime *runtime,
				const struct lang_frame *frame, struct lang_function *function)
{
	char owner[RUBY_CLASS_BYTES], name[LANG_NAME_BYTES - RUBY_CLASS_BYTES];
	__u64 entry[RUBY_ENTRY_WORDS];
	uint64_t id;

	/* rb_method_definition_struct.original_id */
	if (!read_function(ruby->remote, frame, entry) ||
	    !find_tables(ruby, runtime, frame->cookie >> RUBY_BASE_SHIFT << 12) ||
	    !remote_u64(ruby->remote, entry[RUBY_ENTRY_DEFINITION] + 0x20, &id) ||
	    !ruby_id(ruby, id, name, sizeof(name)) || !name[0] ||
	    !ruby_owner(ruby, entry[RUBY_ENTRY_OWNER], owner))
		return false;
	snprintf(function->name, sizeof(function->name), "%s%s", owner, name);
	return read_function(ruby->remote, frame, entry);
}

static bool ruby_name_frame(struct remote *remote, const struct lang_runtime *runtime,
			    const struct lang_frame *frame, struct lang_function *function)
{
	struct ruby ruby = {remote, ruby_layout_find(runtime->layout[RUBY_FILE_VERSION]), 0, 0};

	function->file[0] = 0;
	function->line = function->start_line = 0;
	if (!ruby.layout)
		return false;
	if (frame->object & RUBY_FRAME_C)
		return name_function_frame(&ruby, runtime, frame, function);
	return name_code_frame(&ruby, runtime, frame, function);
}

const struct lang ruby_lang = {"ruby", "ruby", ruby_file_recognize, ruby_name_frame};
