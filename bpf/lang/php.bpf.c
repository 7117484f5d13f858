// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PHP: the chain of zend_execute_data from executor_globals on. What execute_ex() runs before it
 * returns to C ends at a function of a script that was called from C. Functions of C have a frame
 * too, below that of their native one; those called back from C (array_map('strlen', ...)) end
 * nothing, because execute_ex() has no part in it.
 */
#include "bpf/lang.bpf.h"
#include "bpf/lang/php.h"

/* In w->script.words. */
struct php_read {
	struct php_frame frame;
	__u64 unused;
	union {
		struct php_function function;
		__u64 words[32]; /* PHP_OP_ARRAY_WORDS of them; as many as any index has */
		__u32 halves[64];
	};
	__u64 text[2]; /* hash and length */
};
_Static_assert(sizeof(struct php_read) <= 8 * UNWIND_SCRIPT_WORDS, "fits");

enum { PHP_BEGUN = 1, PHP_BELOW_LEAF }; /* w->script.begun */

/* Of w->script.aux. */
enum php_aux {
	/* Not 0: the frame is a generator's that delegates; this is what comes behind it. */
	PHP_RESUMED_BY,
	/* There is no way on in the native stack. */
	PHP_CUT,
};

UNWIND_INLINE __u64 php_word(const struct unwind *w, const struct php_read *read, int field)
{
	return read->words[w->runtime.fields[field] & 31];
}

UNWIND_INLINE __u32 php_half(const struct unwind *w, const struct php_read *read, int field)
{
	return read->halves[w->runtime.fields[field] & 63];
}

/* The leaf's frame, into w->script.at. */
UNWIND_INLINE int php_begin(struct unwind *w)
{
	__u64 globals = lang_address(w, w->runtime.symbols[PHP_GLOBALS]), offset;

	if (w->runtime.fields[PHP_ZTS]) {
		if (lang_read(&offset, sizeof(offset), globals) || lang_thread(w, &globals))
			return -1;
		globals += offset;
	}
	w->script.begun = PHP_BEGUN;
	return lang_read(&w->script.at, sizeof(w->script.at),
			 globals + w->runtime.fields[PHP_CURRENT]);
}

/*
 * The native walk goes on. What the JIT made has neither a frame of its own nor unwind information:
 * it runs in the frame of execute_ex().
 */
UNWIND_INLINE int php_leave(struct unwind *w)
{
	if (w->script.aux[PHP_CUT])
		return w->script.at ? UNWIND_GO : STOP_FRAME_POINTER;
	if (w->script.made) {
		w->pc = lang_address(w, w->runtime.symbols[PHP_BODY]);
		w->returns = 0;
	}
	return lang_done(w);
}

UNWIND_INLINE int php_lost(struct unwind *w)
{
	int stop, pushed;

	w->script.at = 0;
	stop = php_leave(w);
	pushed = lang_lost(w);
	return pushed == UNWIND_GO ? stop : pushed;
}

/* Made by something else: the loop's frame is in r14 wherever the JIT's code is interrupted. */
UNWIND_INLINE int php_is_foreign(const struct unwind *w)
{
	return w->script.made && w->script.begun == PHP_BEGUN && !w->script.aux[PHP_CUT] &&
	       (w->known & UNWIND_KNOWS_ALL) && w->extra[RULE_R14] != w->script.at;
}

/* The line that the frame is in. What may be garbage is looked up only in the function's code. */
UNWIND_INLINE __u32 php_line(struct unwind *w, const struct php_read *read)
{
	__u64 opcodes = php_word(w, read, PHP_OPCODES), opline = read->frame.opline;
	__u64 bytes = (__u64)php_half(w, read, PHP_LAST) * PHP_OP_BYTES;
	__u32 line = 0;

	/*
	 * The loop keeps the frame in r14 and its place in r15, which the leaf has in memory only
	 * where something may look; functions of C that it calls save them before they use them.
	 */
	if (w->script.begun == PHP_BEGUN && w->extra[RULE_R14] == w->script.at &&
	    w->extra[RULE_R15] - opcodes < bytes)
		opline = w->extra[RULE_R15];
	if (opline - opcodes < bytes && (opline - opcodes) % PHP_OP_BYTES == 0 &&
	    lang_read(&line, sizeof(line), opline + PHP_OP_LINE))
		line = 0;
	return line ? line : php_half(w, read, PHP_LINE_START);
}

/* Mix in what a text's hash is, if that can be read. */
UNWIND_INLINE __u64 php_mix_text(struct php_read *read, __u64 cookie, __u64 string, __u32 bit,
				 __u32 *bits)
{
	if (!string || lang_read(read->text, sizeof(read->text), string + PHP_STRING_HASH))
		return cookie;
	*bits |= bit;
	return php_mix(php_mix(cookie, read->text[0]), read->text[1]);
}

UNWIND_INLINE int php_push(struct unwind *w, struct php_read *read, int whole)
{
	__u64 cookie = php_cookie_head(&read->function), name = read->function.name;
	__u32 bits = 0, where = 0, internal = read->function.type == PHP_INTERNAL;

	if (whole && !internal) {
		__u64 file = php_word(w, read, PHP_FILENAME);

		bits = PHP_WHOLE;
		where = php_line(w, read);
		cookie = php_mix(cookie, php_word(w, read, PHP_OPCODES));
		cookie = php_mix(cookie, file);
		cookie = php_mix(cookie, (__u64)php_half(w, read, PHP_LAST) << 32 |
					     php_half(w, read, PHP_LINE_START));
		cookie = php_mix_text(read, cookie, name, PHP_NAME_HASH, &bits);
		cookie = php_mix_text(read, cookie, file, PHP_FILE_HASH, &bits);
	}
	if (!internal && !name && read->frame.previous)
		where |= PHP_INCLUDED;
	return unwind_push_script(w, read->frame.function, where,
				  (cookie & ~(__u64)PHP_COOKIE_BITS) | bits);
}

/*
 * A frame without a function stands for a generator that waits in `yield from`: the one that it
 * delegates to was resumed in its place. Or for nothing. Of generators that delegate to one another
 * the outermost is shown.
 */
UNWIND_INLINE int php_placeholder(struct unwind *w, const struct php_read *read)
{
	__u32 offset = w->runtime.fields[PHP_GENERATOR];

	w->script.begun = PHP_BELOW_LEAF;
	w->script.at = 0;
	if (offset && (read->frame.type_info & 0xff) == PHP_OBJECT &&
	    lang_read(&w->script.at, sizeof(w->script.at), read->frame.object + offset))
		w->script.at = 0;
	if (w->script.at)
		w->script.aux[PHP_RESUMED_BY] = read->frame.previous;
	else
		w->script.at = read->frame.previous;
	return UNWIND_GO;
}

/* The frame is pushed: to its caller, or to C. */
UNWIND_INLINE int php_next(struct unwind *w, const struct php_read *read)
{
	__u64 resumed_by = w->script.aux[PHP_RESUMED_BY];

	w->script.begun = PHP_BELOW_LEAF;
	w->script.at = resumed_by ? resumed_by : read->frame.previous;
	w->script.aux[PHP_RESUMED_BY] = 0;
	if (!resumed_by && read->function.type != PHP_INTERNAL &&
	    (read->frame.type_info & PHP_CALL_TOP))
		return php_leave(w);
	return UNWIND_GO;
}

LANG_STEP int php_step(struct unwind *w)
{
	struct php_read *read = (struct php_read *)w->script.words;
	int whole, stop;

	if (!w->script.begun && php_begin(w))
		return php_lost(w);
	if (php_is_foreign(w)) {
		/* A regular expression, mostly: nobody can say where its frame ends. */
		w->script.aux[PHP_CUT] = 1;
		return unwind_push(w, FRAME_PC, FRAME_ANON, 0, w->pc);
	}
	if (!w->script.at) {
		w->script.ended = 1;
		return php_leave(w);
	}
	if (lang_read(&read->frame, sizeof(read->frame), w->script.at))
		return php_lost(w);
	if (!read->frame.function)
		return php_placeholder(w, read);
	/* A function of C is shorter and may end where nothing follows. */
	whole = !lang_read(read->words, 8 * PHP_OP_ARRAY_WORDS, read->frame.function);
	if (!whole && lang_read(&read->function, sizeof(read->function), read->frame.function))
		return php_lost(w);
	if (read->function.type != PHP_INTERNAL && read->function.type != PHP_USER &&
	    read->function.type != PHP_EVAL)
		return php_lost(w);
	stop = php_push(w, read, whole);
	return stop == UNWIND_GO ? php_next(w, read) : stop;
}
