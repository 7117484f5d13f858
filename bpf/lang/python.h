/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * CPython 3.6 to 3.14: what symbolizer/lang/python.c tells bpf/lang/python.bpf.c, and what a frame
 * is.
 *
 * A thread's state (PyThreadState) is where PyGILState_GetThisThreadState() has it: behind a key of
 * pthread_getspecific(), held by threads without the GIL too. Before 3.12 that is the state that
 * the thread was made with, and one that runs in a sub-interpreter has another: the one of the
 * GIL's holder, if that one is of this thread. A state that is not of this thread (thread_id) is
 * nobody's.
 *
 * From the state a list of frames, leaf first. Which of them belong to one activation of the loop:
 *   PYTHON_OBJECTS (to 3.10)	one
 *   PYTHON_ENTRY (3.11)	up to and with the one that is marked as the first (is_entry)
 *   PYTHON_SHIM (from 3.12)	up to one that has no code and stands for the C beneath (owner >= 3)
 *
 * FRAME_SCRIPT: object = the code object, where = the offset in its bytecode (bytes), of the
 * instruction that runs; (u32)-2 = not begun. cookie = python_cookie() of three pointers and the
 * first line.
 */
#ifndef SCONCE_BPF_LANG_PYTHON_H
#define SCONCE_BPF_LANG_PYTHON_H

#include <linux/types.h>

enum python_form { PYTHON_OBJECTS, PYTHON_ENTRY, PYTHON_SHIM };

/* table_runtime.symbols */
enum python_symbol {
	PYTHON_CURRENT, /* where the state of the GIL's holder is kept; 0: not needed */
};

/*
 * table_runtime.fields. Of state, frame and code a part is read at once, as long as these constants
 * say and from the offset PYTHON_x_AT on; the fields behind it are counted from there.
 */
enum python_field {
	PYTHON_FORM, /* enum python_form */
	PYTHON_STATE_AT,
	PYTHON_STATE_ID, /* u64: what pthread_self() is, the thread pointer of both C libraries */
	PYTHON_STATE_FRAME, /* the first frame, or where it is kept */
	PYTHON_INNER, /* 1 + the offset of the first frame there; 0: it was the frame itself */
	PYTHON_FRAME_AT,
	PYTHON_FRAME_CODE,
	PYTHON_FRAME_BACK,
	PYTHON_FRAME_LASTI, /* to 3.10 s32: index of bytecode; then a pointer into the bytecode */
	PYTHON_FRAME_SCALE, /* bytes of bytecode for 1 of the index */
	PYTHON_FRAME_MARK,  /* u8: is_entry, owner */
	PYTHON_BYTECODE,    /* its offset in the code object, where lasti is a pointer */
	PYTHON_CODE_AT,
	PYTHON_CODE_NAME, /* co_qualname, to 3.10 co_name */
	PYTHON_CODE_FILE,
	PYTHON_CODE_LINES,
	PYTHON_CODE_FIRST, /* s32 co_firstlineno */
};

#define PYTHON_STATE_BYTES  168
#define PYTHON_OBJECT_BYTES 104 /* of a frame that is an object; behind that its variables follow  \
				 */
#define PYTHON_FRAME_BYTES 80	/* of one that is not; it has room for one value at least */
#define PYTHON_CODE_BYTES  112
#define PYTHON_OWNER_C                                                                             \
	3 /* FRAME_OWNED_BY_CSTACK of 3.12 and 3.13, _BY_INTERPRETER of 3.14; 4 there */

/* From 3.14 on the lowest bits of a pointer may say how it is held. */
#define PYTHON_POINTER(word) ((word) & ~7ull)

static inline __attribute__((always_inline)) __u64 python_cookie(__u64 name, __u64 file,
								 __u64 lines, __u32 first)
{
	__u64 mix = (__u64)first + 1;

	mix = (mix ^ name) * 0x9e3779b97f4a7c15ull; /* 2^64 / the golden ratio */
	mix = (mix ^ file ^ (mix >> 29)) * 0x9e3779b97f4a7c15ull;
	mix = (mix ^ lines ^ (mix >> 32)) * 0x9e3779b97f4a7c15ull;
	return mix ^ (mix >> 31);
}

#endif
