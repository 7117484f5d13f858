/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk of a user stack by unwind rows (bpf/rows.bpf.h) as an ordinary program: every kind of
 * rule, every page and row, and tables that lie.
 */
#include "tests/bpf/walk_image.h"

/* --- By rows. File 7 has a table: its code lies at offsets 0x1000 to 0x11000, on two pages. --- */

#define TABLE_FIRST 5 /* words before the table, as those of others */
#define LEAF 0x1010u
#define CALLER 0x2000u /* where RULE_STOP holds */
#define CALLER_PC (CODE + CALLER - 0x1000)

static uint32_t words_of_table[4096];

struct row {
	uint32_t offset, rule;
};

/* Rows by file offset, ascending, the first of each page on its first byte. */
static void image_table(struct image *image, const struct table_rule *rules, uint32_t rules_n,
			const struct row *rows, uint32_t rows_n)
{
	struct table_page pages[2] = {0};
	uint32_t *to = words_of_table + TABLE_FIRST;

	for (uint32_t i = 0; i < rows_n; i++) {
		struct table_page *page = &pages[rows[i].offset >> 16];

		page->first = page->count++ ? page->first : i;
		to[4 + i] = rows[i].rule << 16 | (rows[i].offset & 0xffff);
	}
	memcpy(to, pages, sizeof(pages));
	memcpy(to + 4 + rows_n, rules, rules_n * sizeof(*rules));
	image->table = words_of_table;
	image->table_n = TABLE_FIRST + 4 + rows_n + 4 * rules_n;
	image->file = (struct bpf_file){.file_id = 7,
					.flags = BPF_FILE_TABLE,
					.first = TABLE_FIRST,
					.pages = 2,
					.rows = rows_n,
					.rules = rules_n};
}

/* `leaf` holds at the leaf, RULE_STOP at its caller, and nothing on the second page. */
static void image_leaf_rule(struct image *image, const struct table_rule *leaf)
{
	static const struct row rows[] = {{0, 0},	  {LEAF - 1, 0}, {LEAF, 2}, {LEAF + 1, 0},
					  {CALLER - 1, 1}, {CALLER, 0},	 {0x10000, 0}};
	const struct table_rule rules[] = {{.cfa = RULE_INVALID}, {.cfa = RULE_STOP}, *leaf};

	image_table(image, rules, 3, rows, sizeof(rows) / sizeof(rows[0]));
}

struct rule_case {
	struct table_rule rule;
	unsigned fp;	   /* of the leaf, in words of the stack */
	unsigned pc_at;	   /* word that holds the return address; 0 = none */
	unsigned fp_at;	   /* word that holds 0xf00d; 0 = none */
	enum record_stop stop;
	unsigned sp;	   /* of the caller, in words */
	bool fp_found;	   /* the caller's fp is 0xf00d */
};

/* extra registers hold STACK_BASE + 100 words and 10 more for each. */
static void run_rule_case(const struct rule_case *c)
{
	static struct image image;

	image_init(&image, c->fp);
	for (unsigned i = 0; i < 14; i++)
		image.regs.extra[i] = STACK_BASE + (100 + 10 * i) * 8;
	image.words[50] = STACK_BASE + 60 * 8; /* for RULE_DEREF */
	if (c->pc_at)
		image.words[c->pc_at] = CALLER_PC;
	if (c->fp_at)
		image.words[c->fp_at] = 0xf00d;
	image_leaf_rule(&image, &c->rule);
	assert_int_equal(image_walk(&image, 0, image.ranges_n), c->stop);
	assert_frame(&image.frames[0], FRAME_NATIVE, 0, 7, LEAF);
	if (c->stop != STOP_COMPLETE || !c->pc_at) {
		assert_int_equal(image.walk.slots, 1);
		return;
	}
	assert_int_equal(image.walk.slots, 2);
	assert_frame(&image.frames[1], FRAME_NATIVE, FRAME_RETURN, 7, CALLER);
	assert_int_equal(image.walk.sp, STACK_BASE + c->sp * 8);
	assert_int_equal(image.walk.fp == 0xf00d, c->fp_found);
}

static void test_every_kind_of_rule(void **state)
{
#define AT(reg, words) .cfa = RULE_REGISTER, .cfa_register = RULE_##reg, .cfa_offset = (words) * 8
	static const struct rule_case cases[] = {
	    {{AT(SP, 1), .ra_offset = -8}, 9, 0, 0, STOP_COMPLETE, 0, false}, /* returns to 0 */
	    {{AT(SP, 1), .ra_offset = -8}, 9, 0 + 0, 0, STOP_COMPLETE, 1, false},
	    {{AT(SP, 6), .ra_offset = -8}, 9, 5, 0, STOP_COMPLETE, 6, false},
	    {{AT(FP, 2), .ra_offset = -8}, 9, 10, 0, STOP_COMPLETE, 11, false},
	    /* the caller's fp: beside the return address, elsewhere, below our own, lost */
	    {{AT(FP, 2), .fp = RULE_FP_CFA, .fp_offset = -16, .ra_offset = -8}, 9, 10, 9, STOP_COMPLETE, 11, true},
	    {{AT(SP, 20), .fp = RULE_FP_CFA, .fp_offset = -48, .ra_offset = -8}, 9, 19, 14, STOP_COMPLETE, 20, true},
	    {{AT(SP, 20), .fp = RULE_FP_FP, .fp_offset = -16, .ra_offset = -8}, 9, 19, 7, STOP_COMPLETE, 20, true},
	    {{AT(SP, 20), .fp = RULE_FP_UNDEFINED, .ra_offset = -8}, 9, 19, 0, STOP_COMPLETE, 20, false},
	    /* the return address is where code written by hand has put it */
	    {{AT(SP, 20), .ra_offset = -40}, 9, 15, 0, STOP_COMPLETE, 20, false},
	    /* the first and the last of the other registers */
	    {{AT(RAX, 1), .ra_offset = -8}, 9, 100, 0, STOP_COMPLETE, 101, false},
	    {{AT(R10, 0), .ra_offset = -8}, 9, 179, 0, STOP_COMPLETE, 180, false},
	    {{AT(R15, 0), .ra_offset = -8}, 9, 229, 0, STOP_COMPLETE, 230, false},
	    /* *(fp - 8): fp at word 51 */
	    {{.cfa = RULE_DEREF, .cfa_register = RULE_FP, .cfa_offset = -8, .ra_offset = -8}, 51, 59, 0, STOP_COMPLETE, 60, false},
	    {{.cfa = RULE_DEREF, .cfa_register = RULE_FP, .cfa_offset = -8, .add = 16, .ra_offset = -8}, 51, 61, 0, STOP_COMPLETE, 62, false},
	    /* pc & 15 is 0 */
	    {{.cfa = RULE_PLT, .add = 11, .ra_offset = -8}, 9, 0, 0, STOP_COMPLETE, 1, false},
	    {{.cfa = RULE_PLT, .add = 0, .ra_offset = -8}, 9, 1, 0, STOP_COMPLETE, 2, false},
	    {{.cfa = RULE_STOP}, 9, 0, 0, STOP_COMPLETE, 0, false},
	    {{.cfa = RULE_INVALID}, 9, 0, 0, STOP_NO_ROW, 0, false},
	    /* sp does not grow, user memory is not there, no such rule */
	    {{AT(SP, 0), .ra_offset = -8}, 9, 5, 0, STOP_BAD_ROW, 0, false},
	    {{AT(SP, -1), .ra_offset = 8}, 9, 5, 0, STOP_BAD_ROW, 0, false},
	    {{AT(SP, 1 << 20), .ra_offset = -8}, 9, 5, 0, STOP_READ_FAULT, 0, false},
	    {{AT(SP, 6), .fp = RULE_FP_CFA, .fp_offset = -32768, .ra_offset = -8}, 9, 5, 0, STOP_READ_FAULT, 0, false},
	    {{.cfa = 77}, 9, 5, 0, STOP_BAD_ROW, 0, false},
	};
#undef AT

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run_rule_case(&cases[i]);
}

/* The other stack may lie below this one. */
static void test_another_stack(void **state)
{
	static const struct table_rule rule = {.cfa = RULE_SWITCH,
					       .cfa_register = RULE_R9, /* means nothing */
					       .cfa_offset = 16,
					       .fp = RULE_FP_CFA,
					       .fp_offset = -16,
					       .ra_offset = -8};
	static const struct table_rule same = {
	    .cfa = RULE_REGISTER, .cfa_register = RULE_FP, .cfa_offset = 16, .ra_offset = -8};
	static struct image image;

	(void)state;
	image_init(&image, 9);
	image.regs.sp = STACK_BASE + 40 * 8;
	image.words[9] = 0xf00d;
	image.words[10] = CALLER_PC;
	image_leaf_rule(&image, &rule);
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
	assert_int_equal(image.walk.slots, 2);
	assert_frame(&image.frames[1], FRAME_NATIVE, FRAME_RETURN, 7, CALLER);
	assert_int_equal(image.walk.sp, STACK_BASE + 11 * 8);
	assert_int_equal(image.walk.fp, 0xf00d);
	image.regs.fp = 0;
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
	assert_int_equal(image.walk.slots, 1);
	image.regs.fp = STACK_BASE + 9 * 8;
	image_leaf_rule(&image, &same);
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_BAD_ROW);
}

/* Go before 1.21: how far from its end the other stack was left, and whose end. */
static void test_noted_stack(void **state)
{
	static const struct table_rule rule = {.cfa = RULE_NOTED, .cfa_offset = 16, .ra_offset = -8};
	static struct image image;

	(void)state;
	image_init(&image, 9);
	image.regs.sp = STACK_BASE + 40 * 8;
	image.words[42] = 20 * 8;
	image.words[43] = STACK_BASE + 50 * 8; /* struct g */
	image.words[51] = STACK_BASE + 30 * 8;
	image.words[10] = CALLER_PC;
	image_leaf_rule(&image, &rule);
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
	assert_int_equal(image.walk.slots, 2);
	assert_frame(&image.frames[1], FRAME_NATIVE, FRAME_RETURN, 7, CALLER);
	assert_int_equal(image.walk.sp, STACK_BASE + 11 * 8);
	assert_int_equal(image.walk.fp, image.regs.fp);
	/* On the thread's own stack already: the place itself. */
	image.words[42] = STACK_BASE + 10 * 8;
	image.words[43] = 0;
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
	assert_int_equal(image.walk.slots, 2);
	assert_int_equal(image.walk.sp, STACK_BASE + 11 * 8);
	/* A goroutine that cannot be read. */
	image.words[43] = 8;
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_READ_FAULT);
	assert_int_equal(image.walk.slots, 1);
}

/* It says that it is its own caller: nothing but the room for frames ends that. */
static void test_stack_in_a_ring(void **state)
{
	static const struct table_rule rule = {
	    .cfa = RULE_SWITCH, .cfa_offset = 16, .fp = RULE_FP_SAME, .ra_offset = -8};
	static struct image image;

	(void)state;
	image_init(&image, 9);
	image.words[10] = image.regs.pc + 1;
	image_leaf_rule(&image, &rule);
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_DEPTH);
	assert_int_equal(image.walk.slots, RECORD_USER_FRAMES_MAX);
}

/* vfork pops its return address into a register; only a leaf can say where that is. */
static void test_return_address_in_a_register(void **state)
{
	static const struct table_rule rule = {.cfa = RULE_REGISTER,
					       .ra = RULE_RA_REGISTER,
					       .ra_register = RULE_RDI};
	static struct image image;

	(void)state;
	image_init(&image, 9);
	image.regs.extra[RULE_RDI - RULE_RAX] = CALLER_PC;
	image_leaf_rule(&image, &rule);
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
	assert_int_equal(image.walk.slots, 2);
	assert_int_equal(image.walk.sp, STACK_BASE);
}

/* What only a leaf knows, and an fp that was lost, is not used further up. */
static void test_registers_are_known_to_the_leaf_only(void **state)
{
	static const struct table_rule up[] = {
	    {.cfa = RULE_REGISTER, .cfa_register = RULE_RAX, .ra_offset = -8},
	    {.cfa = RULE_REGISTER, .cfa_register = RULE_FP, .ra_offset = -8},
	    {.cfa = RULE_REGISTER, .cfa_offset = 8, .fp = RULE_FP_FP, .ra_offset = -8},
	    {.cfa = RULE_REGISTER, .ra = RULE_RA_REGISTER, .ra_register = RULE_RDI}};
	static const struct row rows[] = {{0, 0}, {LEAF, 1}, {CALLER - 1, 2}, {0x10000, 0}};
	static struct image image;

	(void)state;
	for (int i = 0; i < 4; i++) {
		const struct table_rule rules[] = {{.cfa = RULE_INVALID},
						   {.cfa = RULE_REGISTER,
						    .cfa_offset = 8,
						    .fp = RULE_FP_UNDEFINED,
						    .ra_offset = -8},
						   up[i]};

		image_init(&image, 9);
		memset(image.regs.extra, 0x7f, sizeof(image.regs.extra));
		image.words[0] = CALLER_PC;
		image_table(&image, rules, 3, rows, 4);
		assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_BAD_ROW);
		assert_int_equal(image.walk.slots, 2);
	}
}

/* From a handler on an alternate stack back to what was interrupted, with all its registers. */
static void test_signal_frame(void **state)
{
	static const struct table_rule rules[] = {
	    {.cfa = RULE_INVALID},
	    {.cfa = RULE_STOP},
	    {.cfa = RULE_REGISTER, .cfa_offset = 8, .ra_offset = -8},
	    {.cfa = RULE_SIGNAL, .cfa_offset = 40},
	    {.cfa = RULE_REGISTER, .cfa_register = RULE_R15, .fp = RULE_FP_SAME, .ra_offset = -8}};
	/* The pc that was interrupted is looked up as it is, not one before. */
	static const struct row rows[] = {{0, 0},      {LEAF, 2},   {0x2fff, 3}, {0x3001, 0},
					  {0x4000, 4}, {0x4001, 0}, {0x4fff, 1}, {0x10000, 0}};
	static struct image image;
	uint64_t *context = image.words + 1001 + 5;

	(void)state;
	image_init(&image, 9);
	image.regs.sp = STACK_BASE + 1000 * 8;
	image.words[1000] = CODE + 0x2000; /* the end of the handler */
	context[7] = STACK_BASE + 21 * 8;  /* r15 */
	context[10] = 0xf00d;
	context[15] = STACK_BASE + 8;
	context[16] = CODE + 0x3000;
	image.words[20] = CODE + 0x4000;
	image_table(&image, rules, 5, rows, 8);
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
	assert_int_equal(image.walk.slots, 4);
	assert_frame(&image.frames[1], FRAME_NATIVE, 0, 7, 0x3000);
	assert_frame(&image.frames[2], FRAME_NATIVE, 0, 7, 0x4000);
	assert_frame(&image.frames[3], FRAME_NATIVE, FRAME_RETURN, 7, 0x5000);
	assert_int_equal(image.walk.sp, STACK_BASE + 21 * 8);
	assert_int_equal(image.walk.fp, 0xf00d);
}

/* Rows and frame pointers take turns on one stack, in both directions. */
static void test_rows_and_frame_pointers_mixed(void **state)
{
	static const struct table_rule rule = {.cfa = RULE_REGISTER, .cfa_offset = 32, .ra_offset = -8};
	static struct image image;

	(void)state;
	image_init(&image, 10);
	image.words[3] = JIT + 0x40; /* by rows to code with frame pointers, */
	image_frame(&image, 10, 20, LIBRARY + 0x300);
	image_frame(&image, 20, 0, CALLER_PC); /* and back */
	image_leaf_rule(&image, &rule);
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
	assert_int_equal(image.walk.slots, 4);
	assert_frame(&image.frames[1], FRAME_PC, FRAME_RETURN | FRAME_ANON, 0, JIT + 0x40);
	assert_frame(&image.frames[2], FRAME_NATIVE, FRAME_RETURN, 9, 0x2300);
	assert_frame(&image.frames[3], FRAME_NATIVE, FRAME_RETURN, 7, CALLER);
}

/* Where a page ends, and the file. */
static void test_rows_of_every_page(void **state)
{
	static const struct table_rule rules[] = {{.cfa = RULE_INVALID}, {.cfa = RULE_STOP}};
	static const struct row rows[] = {{0, 0}, {0xffff, 1}, {0x10000, 0}, {0x10001, 1}};
	static const struct {
		uint32_t offset;
		enum record_stop stop;
	} pcs[] = {{0xfffe, STOP_NO_ROW}, {0xffff, STOP_COMPLETE}, {0x10000, STOP_NO_ROW},
		   {0x10001, STOP_COMPLETE}, {0x10fff, STOP_COMPLETE}};
	static struct image image;

	(void)state;
	for (size_t i = 0; i < sizeof(pcs) / sizeof(pcs[0]); i++) {
		image_init(&image, 9);
		image.regs.pc = CODE + pcs[i].offset - 0x1000;
		image_table(&image, rules, 2, rows, 4);
		assert_int_equal(image_walk(&image, 0, image.ranges_n), pcs[i].stop);
		image.file.pages = 1;
		if (pcs[i].offset >= 0x10000)
			assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_NO_ROW);
		image.file.first_page = 1;
		if (pcs[i].offset < 0x10000)
			assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_NO_ROW);
	}
}

/* At each byte of a row with steps: words from sp to the CFA, and whether fp was saved. */
static void run_steps(const struct table_rule *rule, const uint8_t *words, size_t n, size_t saved,
		      size_t moved)
{
	static const struct row rows[] = {{0, 0},	   {LEAF, 2},	  {LEAF + 30, 0},
					  {CALLER - 1, 1}, {CALLER, 0}, {0x10000, 0}};
	const struct table_rule rules[] = {{.cfa = RULE_INVALID}, {.cfa = RULE_STOP}, *rule};
	static struct image image;

	for (size_t into = 0; into < n; into++) {
		unsigned cfa = words[into] + (into >= moved ? 40 : 0);

		image_init(&image, 40); /* from where the CFA is counted when it has moved to fp */
		image.regs.pc = CODE + LEAF - 0x1000 + into;
		image.words[cfa - 1] = CALLER_PC;
		if (into >= saved)
			image.words[cfa - 4] = 0xf00d;
		image_table(&image, rules, 3, rows, sizeof(rows) / sizeof(rows[0]));
		assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
		assert_int_equal(image.walk.slots, 2);
		assert_int_equal(image.walk.sp, STACK_BASE + cfa * 8);
		assert_int_equal(image.walk.fp, into >= saved ? 0xf00d : STACK_BASE + 40 * 8);
	}
}

static void test_steps(void **state)
{
	/* push r15; push r14; push rbp; mov rsp, rbp */
	static const struct table_rule pushes = {.cfa = RULE_REGISTER,
						 .cfa_register = RULE_FP,
						 .cfa_offset = 32,
						 .fp = RULE_FP_CFA,
						 .fp_offset = -32,
						 .ra_offset = -8,
						 .add = 5 | 8 << 4,
						 .steps = 1 << 1 | 1 << 3 | 1 << 4};
	static const uint8_t down[] = {1, 1, 2, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4};
	/* pop rbx; pop rbp; pop r12; ... the last one as far off as can be */
	static const struct table_rule pops = {.cfa = RULE_REGISTER,
					       .cfa_offset = 8,
					       .ra_offset = -8,
					       .steps = RULE_STEPS_POP | 1 | 1 << 1 | 1 << 3 |
							1 << 14};
	static const uint8_t up[] = {5, 4, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1};

	(void)state;
	run_steps(&pushes, down, sizeof(down), 5, 8);
	run_steps(&pops, up, sizeof(up), SIZE_MAX, SIZE_MAX);
}

/* Sums that wrap, and steps of rules that have none. */
static void test_hostile_steps(void **state)
{
	static const struct table_rule leaves[] = {
	    {.cfa = RULE_REGISTER, .cfa_offset = INT32_MIN, .add = 255, .steps = 0x7fff},
	    {.cfa = RULE_REGISTER, .cfa_offset = INT32_MAX, .add = 255, .steps = 0xffff},
	    {.cfa = RULE_DEREF, .cfa_offset = INT32_MIN, .add = 255, .steps = 0xffff}};
	static struct image image;

	(void)state;
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
		image_init(&image, 9);
		image_leaf_rule(&image, &leaves[i]);
		assert_int_not_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
		assert_int_equal(image.walk.slots, 1);
	}
}

static void test_search_finds_every_row(void **state)
{
	static const struct table_rule rules[] = {{.cfa = RULE_INVALID}, {.cfa = RULE_STOP}};
	static struct row rows[501];
	static struct image image;

	(void)state;
	for (uint32_t n = 1; n <= 500; n += n < 70 ? 1 : 61) {
		for (uint32_t i = 0; i < n; i++)
			rows[i] = (struct row){i ? 0x1000 + 4 * i : 0, 0};
		rows[n] = (struct row){0x10000, 0};
		for (uint32_t i = 1; i < n; i++) {
			rows[i].rule = 1;
			image_init(&image, 9);
			image_table(&image, rules, 2, rows, n + 1);
			for (int at = -1; at < 5; at++) {
				bool hit = at >= 0 && (at < 4 || i == n - 1);

				image.regs.pc = CODE + 4 * i + at;
				image.word_reads = 0;
				assert_int_equal(image_walk(&image, 0, image.ranges_n),
						 hit ? STOP_COMPLETE : STOP_NO_ROW);
				assert_true(image.word_reads <= 7 + 10);
			}
			rows[i].rule = 0;
		}
	}
}

static void test_a_table_that_is_awaited(void **state)
{
	static struct image image;

	(void)state;
	image_init(&image, 4);
	image_frame(&image, 4, 10, CODE + 0x200);
	image.file = (struct bpf_file){.file_id = 7, .flags = BPF_FILE_DEFER};
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_DEFERRED);
	image.file.flags = 0;
	assert_int_equal(image_walk(&image, 0, image.ranges_n), STOP_COMPLETE);
	assert_int_equal(image.walk.slots, 2);
}

/* Tables of every size that hold nonsense: no word outside of them is read, and the walk ends. */
static void test_hostile_rows(void **state)
{
	static struct image image;
	uint64_t seed = 88172645463325252ull, deep = 0;

	(void)state;
	for (int round = 0; round < 40000; round++) {
		/* Sometimes sound but for the rules, sometimes nothing but noise. */
		bool noise = round % 4 == 0;
		uint32_t rules = 1 + (uint32_t)(random_next(&seed) % 64);
		uint32_t rows = (uint32_t)(random_next(&seed) % 2000);
		uint32_t *at = words_of_table + TABLE_FIRST;

		image_scramble(&image, &seed);
		for (unsigned i = 0; i < sizeof(words_of_table) / 4; i++)
			words_of_table[i] = (uint32_t)random_next(&seed);
		for (uint32_t i = 0; i < rules && !noise; i++) {
			struct table_rule rule = {.cfa = (__u8)(2 + random_next(&seed) % 5 % 4),
						  .cfa_register = (__u8)(random_next(&seed) % 20 % 7),
						  .fp = (__u8)(random_next(&seed) % 5),
						  .ra = random_next(&seed) % 8 == 0,
						  .cfa_offset = (__s32)(8 + 8 * (random_next(&seed) % 8)),
						  .ra_offset = -8,
						  .ra_register = (__u8)random_next(&seed)};

			memcpy(at + 4 + rows + 4 * i, &rule, sizeof(rule));
		}
		for (uint32_t i = 0; i < rows && !noise; i++)
			at[4 + i] = i * 32 % 65536 | (uint32_t)(random_next(&seed) % rules) << 16;
		if (!noise)
			memcpy(at, (uint32_t[]){0, rows, 0, rows}, 16);
		image.table = words_of_table;
		image.table_n = noise ? (uint32_t)(random_next(&seed) % 4096)
				      : TABLE_FIRST + 4 + rows + 4 * rules;
		image.file = (struct bpf_file){.file_id = 1,
					       .flags = BPF_FILE_TABLE,
					       .first = TABLE_FIRST,
					       .pages = 2,
					       .rows = rows,
					       .rules = rules};
		if (round % 8 == 0)
			for (unsigned i = 4; i < sizeof(image.file) / 4 - 1; i++)
				((uint32_t *)&image.file)[i] = (uint32_t)random_next(&seed);
		if (!noise) {
			image.ranges[0] = (struct record_range){CODE, CODE + CODE_BYTES, 0, 1, 0};
			image.ranges_n = 1;
		}
		image_walk(&image, 0, image.ranges_n);
		assert_in_range(image.walk.stop, STOP_COMPLETE, STOP_COUNT - 1);
		assert_frames_in_ranges(&image);
		deep += image.walk.slots > 3;
	}
	assert_true(deep > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_of_rule),
		cmocka_unit_test(test_another_stack),
		cmocka_unit_test(test_noted_stack),
		cmocka_unit_test(test_stack_in_a_ring),
		cmocka_unit_test(test_return_address_in_a_register),
		cmocka_unit_test(test_registers_are_known_to_the_leaf_only),
		cmocka_unit_test(test_signal_frame),
		cmocka_unit_test(test_rows_and_frame_pointers_mixed),
		cmocka_unit_test(test_rows_of_every_page),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_hostile_steps),
		cmocka_unit_test(test_search_finds_every_row),
		cmocka_unit_test(test_a_table_that_is_awaited),
		cmocka_unit_test(test_hostile_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
