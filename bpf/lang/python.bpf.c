// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The frames of CPython (bpf/lang/python.h). Reads: of a stack two or three, of a frame two.
 *
 * In the first instructions of an activation and in its last ones the list of frames has not, or no
 * longer, the frame of it: then it is pushed one activation further out, and none is lost or shown
 * twice.
 */
#include "bpf/lang.bpf.h"
#include "bpf/lang/python.h"

#define PYTHON_MASK (UNWIND_SCRIPT_WORDS - 1)

/* What stands around the return to a trampoline, seven bytes from `call` on. */
#define PYTHON_TRAMPOLINE      0x00c308c48348d1ffull
#define PYTHON_TRAMPOLINE_MASK 0x00ffffffffffffffull

/* A field of what was read last; field: counted from there. */
UNWIND_INLINE __u64 python_word(const struct unwind *w, __u32 field)
{
	return w->script.words[(w->runtime.fields[field] >> 3) & PYTHON_MASK];
}

UNWIND_INLINE __u32 python_half(const struct unwind *w, __u32 field)
{
	__u64 word = python_word(w, field);

	return w->runtime.fields[field] & 4 ? word >> 32 : word;
}

UNWIND_INLINE __u32 python_byte(const struct unwind *w, __u32 field)
{
	return (python_word(w, field) >> (8 * (w->runtime.fields[field] & 7))) & 0xff;
}

/* Read a state; 0 if it is of this thread. */
UNWIND_INLINE int python_state(struct unwind *w, __u64 state)
{
	if (!state || lang_read(w->script.words, PYTHON_STATE_BYTES,
				state + w->runtime.fields[PYTHON_STATE_AT]))
		return -1;
	return python_word(w, PYTHON_STATE_ID) == w->thread_pointer ? 0 : -1;
}

UNWIND_INLINE int python_begin(struct unwind *w)
{
	__u64 state = 0, inner;

	w->script.begun = 1;
	if (w->runtime.symbols[PYTHON_CURRENT] &&
	    lang_read(&state, sizeof(state), lang_address(w, w->runtime.symbols[PYTHON_CURRENT])))
		return -1;
	if (python_state(w, state)) {
		if (lang_thread(w, &state) || python_state(w, state))
			return -1;
	}
	inner = python_word(w, PYTHON_STATE_FRAME);
	if (w->runtime.fields[PYTHON_INNER] &&
	    lang_read(&inner, sizeof(inner), inner + w->runtime.fields[PYTHON_INNER] - 1))
		return -1;
	w->script.at = inner;
	return 0;
}

UNWIND_INLINE int python_frame(struct unwind *w)
{
	__u64 from = w->script.at + w->runtime.fields[PYTHON_FRAME_AT];

	/* Frames lie at multiples of eight. */
	if (w->script.at & 7)
		return -1;
	if (w->runtime.fields[PYTHON_FORM] == PYTHON_OBJECTS)
		return lang_read(w->script.words, PYTHON_OBJECT_BYTES, from);
	return lang_read(w->script.words, PYTHON_FRAME_BYTES, from);
}

/* Push the code object that a frame runs. */
UNWIND_INLINE int python_push(struct unwind *w, __u64 code, __u32 where)
{
	__u64 cookie;

	if (!code ||
	    lang_read(w->script.words, PYTHON_CODE_BYTES, code + w->runtime.fields[PYTHON_CODE_AT]))
		return lang_lost(w);
	cookie =
	    python_cookie(python_word(w, PYTHON_CODE_NAME), python_word(w, PYTHON_CODE_FILE),
			  python_word(w, PYTHON_CODE_LINES), python_half(w, PYTHON_CODE_FIRST));
	return unwind_push_script(w, code, where, cookie);
}

/*
 * Code in no file: of ctypes or a compiler, which is nobody's business here; or with -X perf a
 * trampoline of each function, that of 3.12 and 3.13 without a frame pointer
 * (Python/asm_trampoline.S): sub $8,%rsp; call *%rcx; add $8,%rsp; ret. It is stepped over, because
 * its function was just pushed.
 */
UNWIND_INLINE int python_made(struct unwind *w)
{
	__u64 *words = w->script.words;

	if (w->returns && !lang_read(words, 8, w->pc - 2) &&
	    (words[0] & PYTHON_TRAMPOLINE_MASK) == PYTHON_TRAMPOLINE &&
	    !lang_read(words, 8, w->sp + 8)) {
		w->pc = words[0];
		w->sp += 16;
		w->scripted = 0;
	}
	return lang_done(w);
}

LANG_STEP int python_step(struct unwind *w)
{
	__u32 form = w->runtime.fields[PYTHON_FORM], where, mark;
	__u64 code;

	if (w->script.made)
		return python_made(w);
	/* There is one activation for each frame, and this one's is pushed. */
	if (form != PYTHON_SHIM && w->script.aux[0]) {
		w->script.aux[0] = 0;
		return lang_done(w);
	}
	if (!w->script.begun && python_begin(w))
		return lang_lost(w);
	if (!w->script.at)
		return lang_done(w);
	if (python_frame(w))
		return lang_lost(w);
	w->script.at = python_word(w, PYTHON_FRAME_BACK);
	code = PYTHON_POINTER(python_word(w, PYTHON_FRAME_CODE));
	mark = python_byte(w, PYTHON_FRAME_MARK);
	if (form == PYTHON_SHIM && mark >= PYTHON_OWNER_C)
		return lang_done(w);
	if (form == PYTHON_OBJECTS) {
		where = python_half(w, PYTHON_FRAME_LASTI) * w->runtime.fields[PYTHON_FRAME_SCALE];
		w->script.aux[0] = 1;
	} else {
		where =
		    python_word(w, PYTHON_FRAME_LASTI) - code - w->runtime.fields[PYTHON_BYTECODE];
		w->script.aux[0] = form == PYTHON_ENTRY && mark;
	}
	return python_push(w, code, where);
}
