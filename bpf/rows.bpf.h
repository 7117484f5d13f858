/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * One step by an unwind table (shm/table.h): from a file offset to a row, from the row to a rule,
 * by the rule to the caller's registers. A part of bpf/unwind.bpf.h, which includes it.
 *
 * Nothing in a table is believed. Whatever it says, the search ends, no word outside of table
 * memory is read, and only the process's own memory is; a stack then ends too early or shows
 * functions that were not called, but never an address that is not code (unwind_push_pc()).
 */
#ifndef SCONCE_BPF_ROWS_BPF_H
#define SCONCE_BPF_ROWS_BPF_H

#define ROWS_SEARCH_STEPS 16 /* a page has no more than 65,536 rows */
#define ROWS_CHUNK_SHIFT  20

_Static_assert(TABLES_CHUNK_WORDS == 1u << ROWS_CHUNK_SHIFT, "words of a chunk");
_Static_assert(sizeof(((struct unwind *)0)->extra) == 8 * RULE_REGISTER_COUNT, "one for each");
_Static_assert(sizeof(((struct record_regs *)0)->extra) == 8 * (RULE_REGISTER_COUNT - RULE_RAX),
	       "all but sp and fp");

/* The chunk that was looked up last; most tables lie in one. */
struct rows_chunk {
	const __u32 *words; /* NULL: none */
	__u64 number;
};

UNWIND_INLINE const __u32 *rows_chunk(const struct unwind *w, struct rows_chunk *last, __u64 index)
{
	if (!last->words || index >> ROWS_CHUNK_SHIFT != last->number) {
		last->words = unwind_chunk(w, index);
		last->number = index >> ROWS_CHUNK_SHIFT;
	}
	return last->words;
}

/* Words that lie in one chunk. */
UNWIND_INLINE int rows_read(const struct unwind *w, struct rows_chunk *last, __u64 index,
			    __u32 *words, int n)
{
	const __u32 *chunk = rows_chunk(w, last, index);

	if (!chunk)
		return STOP_BAD_ROW;
	for (int i = 0; i < n; i++) {
		const __u32 *word = unwind_word(w, chunk, index + i);

		if (!word)
			return STOP_BAD_ROW;
		words[i] = *word;
	}
	return UNWIND_GO;
}

/* The last of `left` rows from `low` on that does not begin behind target. */
UNWIND_INLINE int rows_search(const struct unwind *w, struct rows_chunk *last, __u64 low,
			      __u64 left, __u32 target, __u32 *row)
{
	__u64 end = low + left - 1, edge = end >> ROWS_CHUNK_SHIFT << ROWS_CHUNK_SHIFT;
	const __u32 *chunk, *word;

	/* Of rows that two chunks share, go on with those in one of them. */
	if (low < edge) {
		if (rows_read(w, last, edge, row, 1) != UNWIND_GO)
			return STOP_BAD_ROW;
		left = (*row & 0xffff) <= target ? end - edge + 1 : edge - low;
		low = (*row & 0xffff) <= target ? edge : low;
	}
	chunk = rows_chunk(w, last, low);
	if (!chunk)
		return STOP_BAD_ROW;
	for (int i = 0; i < ROWS_SEARCH_STEPS && left > 1; i++) {
		__u64 half = left >> 1;

		word = unwind_word(w, chunk, low + half);
		if (!word)
			return STOP_BAD_ROW;
		/* All ones when the row begins at target or before; no branch to follow twice. */
		low += half & ((__s64)((__u64)(*word & 0xffff) - target - 1) >> 63);
		left -= half;
	}
	return rows_read(w, last, low, row, 1);
}

/* What holds `into` bytes behind the beginning of the row: without the steps that come later. */
UNWIND_INLINE void rows_take_back(struct table_rule *rule, __u32 into)
{
	__u32 later = (rule->steps & ~RULE_STEPS_POP) >> into;
	__u32 moved = 8 * __builtin_popcount(later);

	/* Unsigned: a hostile sum wraps. */
	rule->cfa_offset += rule->steps & RULE_STEPS_POP ? moved : -moved;
	if (into < (rule->add & 15u))
		rule->fp = RULE_FP_SAME;
	if (into < rule->add >> 4)
		rule->cfa_register = RULE_SP;
}

/* The rule that holds at this offset of the file of w->file, into w->rule. */
UNWIND_INLINE int rows_find(struct unwind *w, __u64 offset)
{
	__u64 page = (offset >> TABLE_PAGE_SHIFT) - w->file.first_page;
	__u64 rows = w->file.first + 2 * (__u64)w->file.pages;
	struct rows_chunk last = {0};
	__u32 first, count, row, into, words[4];
	__u32 target = offset & ((1u << TABLE_PAGE_SHIFT) - 1);

	if (page >= w->file.pages)
		return STOP_NO_ROW;
	if (rows_read(w, &last, w->file.first + 2 * page, &first, 1) != UNWIND_GO ||
	    rows_read(w, &last, w->file.first + 2 * page + 1, &count, 1) != UNWIND_GO)
		return STOP_BAD_ROW;
	if (count == 0 || first >= w->file.rows || count > w->file.rows - first)
		return STOP_BAD_ROW;
	if (rows_search(w, &last, rows + first, count, target, &row) != UNWIND_GO)
		return STOP_BAD_ROW;
	into = target - (row & 0xffff);
	row >>= 16;
	if (row >= w->file.rules)
		return STOP_BAD_ROW;
	/* Tables are placed so that no rule is in two chunks. */
	if (rows_read(w, &last, rows + w->file.rows + 4 * (__u64)row, words, 4) != UNWIND_GO)
		return STOP_BAD_ROW;
	__builtin_memcpy(&w->rule, words, sizeof(w->rule));
	if (into < RULE_STEPS_BYTES && (w->rule.steps | w->rule.add) &&
	    w->rule.cfa == RULE_REGISTER)
		rows_take_back(&w->rule, into);
	return UNWIND_GO;
}

UNWIND_INLINE int rows_register(const struct unwind *w, __u32 number, __u64 *value)
{
	if (number == RULE_SP) {
		*value = w->sp;
	} else if (number == RULE_FP) {
		*value = w->fp;
		return w->known & UNWIND_KNOWS_FP ? UNWIND_GO : STOP_BAD_ROW;
	} else if (number == RULE_RBX && (w->known & UNWIND_KNOWS_RBX) && w->rbx_at) {
		return unwind_read_user(w, w->rbx_at, value, 1);
	} else {
		__u32 known = UNWIND_KNOWS_ALL | (number == RULE_RBX ? UNWIND_KNOWS_RBX : 0);

		*value = w->extra[number % RULE_REGISTER_COUNT];
		return w->known & known ? UNWIND_GO : STOP_BAD_ROW;
	}
	return UNWIND_GO;
}

/* The place that was noted, and its end: see RULE_NOTED. */
UNWIND_INLINE int rows_noted(const struct unwind *w, __u64 at, __u64 *cfa)
{
	__u64 words[2], end = 0;
	int stop = unwind_read_user(w, at, words, 2);

	if (stop != UNWIND_GO)
		return stop;
	*cfa = words[0] + 8;
	if (words[1] == 0)
		return UNWIND_GO;
	stop = unwind_read_user(w, words[1] + 8, &end, 1);
	*cfa = end - words[0] + 8;
	return stop;
}

/* The caller's sp. */
UNWIND_INLINE int rows_cfa(const struct unwind *w, __u64 *cfa)
{
	const struct table_rule *rule = &w->rule;
	int stop;

	if (rule->cfa == RULE_PLT) {
		*cfa = w->sp + 8 + ((w->pc & 15) >= rule->add ? 8 : 0);
		return UNWIND_GO;
	}
	stop = rows_register(w, rule->cfa == RULE_SWITCH ? RULE_FP : rule->cfa_register, cfa);
	if (stop != UNWIND_GO)
		return stop;
	if (rule->cfa == RULE_SWITCH && *cfa == 0)
		return STOP_COMPLETE;
	*cfa += (__s64)rule->cfa_offset;
	if (rule->cfa == RULE_REGISTER || rule->cfa == RULE_SWITCH)
		return UNWIND_GO;
	if (rule->cfa == RULE_NOTED)
		return rows_noted(w, *cfa, cfa);
	if (rule->cfa != RULE_DEREF)
		return STOP_BAD_ROW;
	stop = unwind_read_user(w, *cfa, cfa, 1);
	*cfa += rule->add;
	return stop;
}

/*
 * The kernel put the frame there, so it may lie anywhere, on another stack too. What was
 * interrupted is a leaf again.
 */
UNWIND_INLINE int rows_signal(struct unwind *w)
{
	/* struct sigcontext: r8 to r15, di, si, bp, bx, dx, ax, cx, sp, ip. */
	static const __u8 order[] = {RULE_RDI, RULE_RSI, RULE_FP,  RULE_RBX,
				     RULE_RDX, RULE_RAX, RULE_RCX, RULE_SP};
	__u64 from = w->sp + (__s64)w->rule.cfa_offset, words[9];
	struct frame *frame = unwind_slot(w, w->slots - 1);
	int stop = unwind_read_user(w, from, &w->extra[RULE_R8], 8);

	if (stop == UNWIND_GO)
		stop = unwind_read_user(w, from + 64, words, 9);
	if (stop != UNWIND_GO)
		return stop;
	for (unsigned i = 0; i < sizeof(order); i++)
		w->extra[order[i]] = words[i];
	w->fp = words[2];
	w->sp = words[7];
	w->pc = words[8];
	w->returns = 0;
	w->known = UNWIND_KNOWS_FP | UNWIND_KNOWS_ALL | UNWIND_KNOWS_RBX;
	w->rbx_at = 0;
	/* Nobody called the function that ends a handler: what is before it is another one. */
	if (frame)
		frame->flags &= ~FRAME_RETURN;
	return UNWIND_GO;
}

/* What is known of the caller. */
UNWIND_INLINE void rows_know(struct unwind *w, __u64 cfa)
{
	const struct table_rule *rule = &w->rule;
	__u32 rbx = rule->ra == RULE_RA_CFA ? rule->rbx : RULE_RBX_UNKNOWN, known;

	known = rule->fp == RULE_FP_SAME	? w->known & UNWIND_KNOWS_FP
		: rule->fp == RULE_FP_UNDEFINED ? 0
						: UNWIND_KNOWS_FP;
	if (rbx == RULE_RBX_SAME) {
		known |= w->known & UNWIND_KNOWS_RBX;
	} else if (rbx != RULE_RBX_UNKNOWN) {
		w->rbx_at = cfa - 8 * (__u64)rbx;
		known |= UNWIND_KNOWS_RBX;
	}
	w->known = known;
}

/* The return address and the caller's fp; the two mostly lie side by side. */
UNWIND_INLINE int rows_load(struct unwind *w, __u64 cfa, __u64 *pc)
{
	const struct table_rule *rule = &w->rule;
	__u64 pc_at = cfa + (__s64)rule->ra_offset, fp_at = cfa + (__s64)rule->fp_offset;
	__u64 words[2] = {0};
	int saved = rule->fp == RULE_FP_CFA || rule->fp == RULE_FP_FP, stop;

	if (rule->fp == RULE_FP_FP) {
		if (!(w->known & UNWIND_KNOWS_FP))
			return STOP_BAD_ROW;
		fp_at = w->fp + (__s64)rule->fp_offset;
	}
	if (rule->ra == RULE_RA_REGISTER) {
		stop = rule->ra_register < RULE_RAX ? STOP_BAD_ROW
						    : rows_register(w, rule->ra_register, pc);
	} else if (saved && fp_at == pc_at - 8) {
		stop = unwind_read_user(w, fp_at, words, 2);
		*pc = words[1];
	} else {
		/* The lower one first: who reads ahead has the other one then. */
		stop = saved ? unwind_read_user(w, fp_at, words, 1) : UNWIND_GO;
		if (stop == UNWIND_GO)
			stop = unwind_read_user(w, pc_at, pc, 1);
	}
	if (stop != UNWIND_GO)
		return stop;
	if (saved)
		w->fp = words[0];
	rows_know(w, cfa);
	return UNWIND_GO;
}

/* The walk stands at `offset` of a file that has a table. */
UNWIND_INLINE int rows_step(struct unwind *w, __u64 offset)
{
	__u64 cfa, pc = 0;
	int stop = rows_find(w, offset);

	if (stop != UNWIND_GO)
		return stop;
	if (w->rule.cfa == RULE_INVALID)
		return STOP_NO_ROW;
	if (w->rule.cfa == RULE_STOP)
		return STOP_COMPLETE;
	if (w->rule.cfa == RULE_SIGNAL)
		return rows_signal(w);
	stop = rows_cfa(w, &cfa);
	if (stop != UNWIND_GO)
		return stop;
	/*
	 * sp grows with every step, so no chain is a ring, unless the stack is another one: then it
	 * is the number of frames that ends the walk. A leaf may have popped its return address.
	 */
	if (w->rule.cfa != RULE_SWITCH && w->rule.cfa != RULE_NOTED &&
	    (cfa < w->sp || (cfa == w->sp && w->rule.ra != RULE_RA_REGISTER)))
		return STOP_BAD_ROW;
	stop = rows_load(w, cfa, &pc);
	if (stop != UNWIND_GO)
		return stop;
	if (pc == 0)
		return STOP_COMPLETE;
	w->sp = cfa;
	w->pc = pc;
	w->returns = 1;
	return UNWIND_GO;
}

#endif
