/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/lang/python_layout.h"

#include <errno.h>
#include <string.h>

#include "bpf/lang/python.h"
#include "symbolizer/elfparts.h"
#include "symbolizer/lang/python_lines.h"

#define HEADER_BYTES	  16
#define HEADER_BYTES_FREE 32 /* of builds without a GIL */
#define RELEASE_CANDIDATE 0xcu

/* Rows from tests/tools/python-layout, which makes them from headers. */
static const struct python_layout layouts[] = {
    {6, PYTHON_OBJECTS, PYTHON_LNOTAB, 152, 24, -1, 32, 24, 120, 0, 96, 104, 112, 36, 0, 48, 72, 16,
     2},
    {7, PYTHON_OBJECTS, PYTHON_LNOTAB, 176, 24, -1, 32, 24, 104, 0, 96, 104, 112, 36, 0, 48, 72, 16,
     2},
    {8, PYTHON_OBJECTS, PYTHON_LNOTAB, 176, 24, -1, 32, 24, 104, 0, 104, 112, 120, 40, 0, 48, 72,
     16, 2},
    {9, PYTHON_OBJECTS, PYTHON_LNOTAB, 176, 24, -1, 32, 24, 104, 0, 104, 112, 120, 40, 0, 48, 72,
     16, 2},
    {10, PYTHON_OBJECTS, PYTHON_LINETABLE, 176, 24, -1, 32, 24, 96, 0, 104, 112, 120, 40, 0, 48, 72,
     16, 2},
    {11, PYTHON_ENTRY, PYTHON_LOCATIONS, 152, 56, 8, 32, 48, 56, 68, 112, 128, 136, 72, 184, 48, 72,
     16, 2},
    {12, PYTHON_SHIM, PYTHON_LOCATIONS, 136, 56, 0, 0, 8, 56, 70, 112, 128, 136, 68, 192, 40, 56,
     16, 2},
};

/*
 * struct _Py_DebugOffsets (Include/internal/pycore_runtime.h of 3.13, pycore_debug_offsets.h
 * of 3.14): 8-byte words, in groups each of which begins with the size of the structure. Groups
 * grow from version to version, so that where they begin is known for each.
 */
struct python_offsets {
	uint8_t minor;
	uint8_t state, frame, code; /* the word with the group's size */
};

static const struct python_offsets offsets[] = {
    {13, 19, 28, 34},
    {14, 22, 31, 39},
};

enum { WORD_VERSION = 1, WORD_FREE, WORDS = 64 };
enum { STATE_FRAME = 4, STATE_ID };
enum { FRAME_BACK = 1, FRAME_CODE, FRAME_LASTI, FRAME_OWNER = 5 };
enum { CODE_FILE = 1, CODE_QUALNAME = 3, CODE_LINES, CODE_FIRST, CODE_BYTECODE = 9 };

/* A field of the group at `group`; what cannot be one is too large for any window. */
static uint16_t python_field_at(const uint64_t *words, uint32_t group, uint32_t field)
{
	uint64_t size = words[group], at = words[group + field];

	return at < size && size <= UINT16_MAX ? (uint16_t)at : UINT16_MAX;
}

static bool python_runtime(struct facts *facts, uint64_t words[WORDS])
{
	struct facts_symbol symbol;
	GElf_Shdr section;
	uint64_t vaddr;

	if (facts_symbol(facts, "_PyRuntime", &symbol) == 0)
		vaddr = symbol.vaddr;
	else if (elfparts_find(facts->elf, ".PyRuntime", &section) == 0)
		vaddr = section.sh_addr;
	else
		return false;
	return facts_read(facts, vaddr, words, WORDS * sizeof(*words)) &&
	       memcmp(words, "xdebugpy", 8) == 0;
}

static int python_layout_told(struct facts *facts, uint32_t version, struct python_layout *layout)
{
	const struct python_offsets *at = NULL;
	uint64_t words[WORDS];

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		if (offsets[i].minor == ((version >> 16) & 0xff))
			at = &offsets[i];
	if (!at || !python_runtime(facts, words) || words[WORD_VERSION] != version ||
	    words[WORD_FREE] > 1)
		return -ENOTSUP;
	/* Threads of 3.14 without a GIL have copies of the bytecode, into which lasti points. */
	if (words[WORD_FREE] && at->minor >= 14)
		return -ENOTSUP;
	*layout = (struct python_layout){
	    .minor = at->minor,
	    .form = PYTHON_SHIM,
	    .lines = PYTHON_LOCATIONS,
	    .state_id = python_field_at(words, at->state, STATE_ID),
	    .state_frame = python_field_at(words, at->state, STATE_FRAME),
	    .inner = -1,
	    .frame_code = python_field_at(words, at->frame, FRAME_CODE),
	    .frame_back = python_field_at(words, at->frame, FRAME_BACK),
	    .frame_lasti = python_field_at(words, at->frame, FRAME_LASTI),
	    .frame_mark = python_field_at(words, at->frame, FRAME_OWNER),
	    .code_file = python_field_at(words, at->code, CODE_FILE),
	    .code_name = python_field_at(words, at->code, CODE_QUALNAME),
	    .code_lines = python_field_at(words, at->code, CODE_LINES),
	    .code_first = python_field_at(words, at->code, CODE_FIRST),
	    .bytecode = python_field_at(words, at->code, CODE_BYTECODE),
	    .header = words[WORD_FREE] ? HEADER_BYTES_FREE : HEADER_BYTES,
	    .kind_shift = 2,
	};
	/* Length, hash and state follow the header; then two words for a text in UTF-8. */
	layout->ascii = layout->header + 24;
	layout->compact = layout->ascii + 16;
	return layout->bytecode == UINT16_MAX ? -ENOTSUP : 0;
}

int python_layout(struct facts *facts, uint32_t version, struct python_layout *layout)
{
	if (version >> 24 != 3)
		return -ENOTSUP;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].minor != ((version >> 16) & 0xff))
			continue;
		/* Before that structures change from one alpha to the next. */
		if (((version >> 4) & 0xf) < RELEASE_CANDIDATE)
			return -ENOTSUP;
		*layout = layouts[i];
		return 0;
	}
	return python_layout_told(facts, version, layout);
}

/* Count fields from the lowest one's word on; false: they take more than so many bytes. */
static bool python_window(uint32_t *at, uint32_t *const *window, size_t n, uint32_t bytes)
{
	uint32_t low = UINT32_MAX;

	for (size_t i = 0; i < n; i++)
		if (*window[i] < low)
			low = *window[i];
	*at = low & ~7u;
	for (size_t i = 0; i < n; i++) {
		*window[i] -= *at;
		if ((*window[i] & ~7u) + 8 > bytes)
			return false;
	}
	return true;
}

int python_layout_fields(const struct python_layout *layout, uint32_t f[TABLE_FIELDS])
{
	bool objects = layout->form == PYTHON_OBJECTS;
	uint32_t *const state[] = {&f[PYTHON_STATE_ID], &f[PYTHON_STATE_FRAME]};
	uint32_t *const frame[] = {&f[PYTHON_FRAME_CODE], &f[PYTHON_FRAME_BACK],
				   &f[PYTHON_FRAME_LASTI], &f[PYTHON_FRAME_MARK]};
	uint32_t *const code[] = {&f[PYTHON_CODE_NAME], &f[PYTHON_CODE_FILE], &f[PYTHON_CODE_LINES],
				  &f[PYTHON_CODE_FIRST]};

	f[PYTHON_FORM] = layout->form;
	f[PYTHON_STATE_ID] = layout->state_id;
	f[PYTHON_STATE_FRAME] = layout->state_frame;
	f[PYTHON_INNER] = (uint32_t)(layout->inner + 1);
	f[PYTHON_FRAME_CODE] = layout->frame_code;
	f[PYTHON_FRAME_BACK] = layout->frame_back;
	f[PYTHON_FRAME_LASTI] = layout->frame_lasti;
	f[PYTHON_FRAME_SCALE] = layout->lines == PYTHON_LINETABLE ? 2 : 1;
	f[PYTHON_FRAME_MARK] = layout->frame_mark;
	f[PYTHON_BYTECODE] = layout->bytecode;
	f[PYTHON_CODE_NAME] = layout->code_name;
	f[PYTHON_CODE_FILE] = layout->code_file;
	f[PYTHON_CODE_LINES] = layout->code_lines;
	f[PYTHON_CODE_FIRST] = layout->code_first;
	if (!python_window(&f[PYTHON_STATE_AT], state, 2, PYTHON_STATE_BYTES) ||
	    !python_window(&f[PYTHON_FRAME_AT], frame, objects ? 3 : 4,
			   objects ? PYTHON_OBJECT_BYTES : PYTHON_FRAME_BYTES) ||
	    !python_window(&f[PYTHON_CODE_AT], code, 4, PYTHON_CODE_BYTES))
		return -ENOTSUP;
	return 0;
}
