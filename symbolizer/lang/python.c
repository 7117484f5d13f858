/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython in a file: libpython, or a program that has it in itself. The version is what the file
 * says, never what it is called. And the name, file and line of a code object in a process.
 */
#include "bpf/lang/python.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/lang/facts.h"
#include "symbolizer/lang/lang.h"
#include "symbolizer/lang/python_layout.h"
#include "symbolizer/lang/python_lines.h"
#include "symbolizer/lang/python_text.h"

#define LOOP	 "_PyEval_EvalFrameDefault"
#define LOOP_OLD "PyEval_EvalFrameEx" /* to 3.5 */
#define LINES_BYTES_MAX                                                                            \
	(128u << 10) /* of a code object; a table of 64 KiB tells of 20,000 lines                  \
		      */
#define VERSION_BYTES 16
#define RELEASE_FINAL 0xfu

/* lang_runtime.layout */
enum python_word { WORD_LINES, WORD_ASCII, WORD_COMPACT, WORD_HEADER, WORD_KIND_SHIFT };

struct python_code {
	uint64_t name, file, lines;
	uint32_t first;
};

/* --- The file. --- */

/* "3.9.18" or "3.12.0rc1", whole. As PY_VERSION_HEX; 0: it is something else. */
static uint32_t python_parse_version(const char *text)
{
	unsigned major, minor, micro = 0, serial = 0;
	char level[3] = "";
	int n = 0, m = 0;

	if (sscanf(text, "%1u.%2u%n.%3u%n", &major, &minor, &n, &micro, &m) < 2)
		return 0;
	text += m ? m : n;
	if (*text == '+') /* built from a repository */
		text++;
	if (*text && (sscanf(text, "%2[abrc]%2u%n", level, &serial, &n) != 2 || text[n]))
		return 0;
	return major << 24 | minor << 16 | (micro & 0xff) << 8 |
	       (level[0] == 'r' ? 0xcu
		: level[0]	? (unsigned)(level[0] - 'a') + 0xau
				: RELEASE_FINAL)
		   << 4 |
	       (serial & 0xf);
}

/* Before 3.11: what Py_GetVersion() prints first. */
static uint32_t python_version_text(struct facts *facts)
{
	struct facts_step steps[FACTS_INSNS_MAX];
	struct facts_symbol symbol;
	char text[VERSION_BYTES];
	uint32_t n, version = 0;

	if (facts_any_symbol(facts, "Py_GetVersion", &symbol))
		return 0;
	n = facts_trace(facts, symbol.vaddr, steps, FACTS_INSNS_MAX);
	for (uint32_t i = 0; i < n && !version; i++)
		if (steps[i].form == FACTS_ADDRESS && steps[i].at.kind == FACTS_CONSTANT &&
		    facts_text(facts, (uint64_t)steps[i].at.number, text, sizeof(text)))
			version = python_parse_version(text);
	return version;
}

static uint32_t python_version(struct facts *facts)
{
	struct facts_symbol symbol;
	uint64_t version;

	if (facts_any_symbol(facts, "Py_Version", &symbol) == 0 &&
	    facts_read(facts, symbol.vaddr, &version, sizeof(version)))
		return (uint32_t)version;
	return python_version_text(facts);
}

static void python_show_version(uint32_t version, char text[LANG_VERSION_BYTES])
{
	static const char *const levels[16] = {[0xa] = "a", [0xb] = "b", [0xc] = "rc"};
	const char *level = levels[version >> 4 & 0xf];
	int n;

	if (!version)
		return;
	n = snprintf(text, LANG_VERSION_BYTES, "%u.%u.%u", version >> 24, version >> 16 & 0xff,
		     version >> 8 & 0xff);
	if (level)
		snprintf(text + n, LANG_VERSION_BYTES - (size_t)n, "%s%u", level, version & 0xf);
}

/* Where a thread finds its state. A Py_tss_t (3.7) is {whether there is a key, the key}. */
static int python_thread(struct facts *facts, struct table_runtime *walk)
{
	struct facts_symbol symbol;
	uint64_t key;
	bool taken;
	int err = facts_any_symbol(facts, "PyGILState_GetThisThreadState", &symbol);

	if (err)
		return err;
	walk->libc = facts_libc(facts);
	if (facts_key(facts, symbol.vaddr, &key, &taken))
		return facts_thread(facts, symbol.vaddr, 0, walk);
	walk->thread = TABLE_THREAD_KEY;
	walk->thread_at = key + (taken ? 4 : 0);
	return 0;
}

/* The state of who holds the GIL, as long as keys do not tell of sub-interpreters: what this
 * function reads. */
static int python_current(struct facts *facts, struct table_runtime *walk)
{
	struct facts_step steps[FACTS_INSNS_MAX];
	struct facts_symbol symbol;
	uint32_t n;
	int err;

	if (walk->fields[PYTHON_FORM] == PYTHON_SHIM)
		return 0;
	err = facts_any_symbol(facts, "_PyThreadState_UncheckedGet", &symbol);
	if (err)
		return err;
	n = facts_trace(facts, symbol.vaddr, steps, FACTS_INSNS_MAX);
	for (uint32_t i = 0; i < n; i++)
		if (steps[i].form == FACTS_LOAD && steps[i].at.kind == FACTS_CONSTANT &&
		    steps[i].bytes == 8) {
			walk->symbols[PYTHON_CURRENT] = (uint64_t)steps[i].at.number;
			return 0;
		}
	return -ENOENT;
}

static int python_fill(struct facts *facts, uint64_t loop, struct lang_runtime *runtime)
{
	struct python_layout layout;
	int err = python_layout(facts, runtime->walk.version, &layout);

	if (err == 0)
		err = python_layout_fields(&layout, runtime->walk.fields);
	if (err == 0)
		err = facts_loop(facts, loop, &runtime->walk);
	if (err == 0)
		err = python_thread(facts, &runtime->walk);
	if (err == 0)
		err = python_current(facts, &runtime->walk);
	if (err)
		return -ENOTSUP;
	runtime->layout[WORD_LINES] = layout.lines;
	runtime->layout[WORD_ASCII] = layout.ascii;
	runtime->layout[WORD_COMPACT] = layout.compact;
	runtime->layout[WORD_HEADER] = layout.header;
	runtime->layout[WORD_KIND_SHIFT] = layout.kind_shift;
	return 0;
}

/* All programs with CPython in them export it for extensions; what is linked statically need not.
 */
static int python_recognize(struct elffile *elf, const char *module, struct lang_runtime *runtime)
{
	struct facts_symbol loop;
	struct facts facts;
	bool likely = strstr(module, "python"), old;

	if (facts_open(&facts, elf))
		return -ENOENT;
	old =
	    facts_symbol(&facts, LOOP, &loop) && (!likely || facts_any_symbol(&facts, LOOP, &loop));
	if (old && facts_symbol(&facts, LOOP_OLD, &loop))
		return -ENOENT;
	runtime->walk.version = python_version(&facts);
	python_show_version(runtime->walk.version, runtime->version);
	return old ? -ENOTSUP : python_fill(&facts, loop.vaddr, runtime);
}

/* --- A frame. --- */

static uint64_t python_word(const uint64_t *words, uint32_t field)
{
	return words[field / 8];
}

static bool python_code(struct remote *remote, const struct lang_runtime *runtime, uint64_t object,
			struct python_code *code)
{
	const uint32_t *f = runtime->walk.fields;
	uint64_t words[PYTHON_CODE_BYTES / 8];

	if (!remote_read(remote, object + f[PYTHON_CODE_AT], words, sizeof(words)))
		return false;
	code->name = python_word(words, f[PYTHON_CODE_NAME]);
	code->file = python_word(words, f[PYTHON_CODE_FILE]);
	code->lines = python_word(words, f[PYTHON_CODE_LINES]);
	code->first = (uint32_t)(python_word(words, f[PYTHON_CODE_FIRST]) >>
				 (f[PYTHON_CODE_FIRST] & 4 ? 32 : 0));
	return true;
}

static bool python_is(struct remote *remote, const struct lang_runtime *runtime,
		      const struct lang_frame *frame, struct python_code *code)
{
	return python_code(remote, runtime, frame->object, code) &&
	       python_cookie(code->name, code->file, code->lines, code->first) == frame->cookie;
}

static uint32_t python_find_line(struct remote *remote, const struct lang_runtime *runtime,
				 const struct python_code *code, uint32_t offset)
{
	uint32_t header = runtime->layout[WORD_HEADER], line = 0;
	uint8_t *table;
	uint64_t bytes;

	/* A bytes object: its size, its hash, and then they are. */
	if (!remote_u64(remote, code->lines + header, &bytes) || bytes > LINES_BYTES_MAX)
		return 0;
	table = malloc(bytes + 1);
	if (table && remote_read(remote, code->lines + header + 16, table, bytes))
		line = python_line((enum python_lines)runtime->layout[WORD_LINES], table, bytes,
				   code->first, offset);
	free(table);
	return line;
}

static bool python_name_frame(struct remote *remote, const struct lang_runtime *runtime,
			      const struct lang_frame *frame, struct lang_function *function)
{
	const struct python_strings strings = {
	    .header = runtime->layout[WORD_HEADER],
	    .ascii = runtime->layout[WORD_ASCII],
	    .compact = runtime->layout[WORD_COMPACT],
	    .kind_shift = runtime->layout[WORD_KIND_SHIFT],
	};
	struct python_code code;

	if (!python_is(remote, runtime, frame, &code) ||
	    !python_text(remote, &strings, code.name, function->name, sizeof(function->name)) ||
	    !python_text(remote, &strings, code.file, function->file, sizeof(function->file)) ||
	    !function->name[0])
		return false;
	function->start_line = code.first;
	function->line = python_find_line(remote, runtime, &code, frame->where);
	return python_is(remote, runtime, frame, &code);
}

const struct lang python_lang = {"python", "cpython", python_recognize, python_name_frame};
