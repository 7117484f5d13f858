/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that tell of several pushes or pops: whatever is put into a table, the walk's look-up finds
 * it again at every byte.
 */
#include "symbolizer/tablebuild.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/symbolizer/tables.h"

#define PAGE	  (1u << TABLE_PAGE_SHIFT)
#define BYTES_MAX (16 * PAGE)

static const struct table_rule start = {
    .cfa = RULE_REGISTER, .cfa_register = RULE_SP, .cfa_offset = 8, .ra_offset = -8};

/* What is added, and what is wanted of the table from it. */
struct sheet {
	struct tablebuild build;
	uint64_t from, end; /* of the text */
	struct table_rule want[BYTES_MAX];
	uint64_t at;
	struct table_rule rule;
	struct table_header *table;
};

static void sheet_open(struct sheet *s, uint64_t from, uint64_t bytes)
{
	assert_true(bytes <= BYTES_MAX);
	s->from = s->at = from;
	s->end = from + bytes;
	s->rule = start;
	memset(s->want, 0, bytes * sizeof(s->want[0]));
	assert_int_equal(tablebuild_init(&s->build, from, s->end), 0);
}

/* From `bytes` behind the last place on, s->rule holds. */
static void sheet_add(struct sheet *s, uint64_t bytes)
{
	struct table_rule before = s->want[s->at - s->from];

	for (uint64_t i = 1; i < bytes; i++)
		s->want[s->at - s->from + i] = before;
	s->at += bytes;
	s->want[s->at - s->from] = s->rule;
	tablebuild_add(&s->build, s->at, &s->rule);
}

static void sheet_close(struct sheet *s)
{
	struct table_rule found;
	size_t bytes;

	for (uint64_t i = s->at - s->from + 1; i < s->end - s->from; i++)
		s->want[i] = s->want[i - 1];
	assert_int_equal(tablebuild_finish(&s->build, 7, &s->table, &bytes), 0);
	assert_int_equal(table_check(s->table, bytes), 0);
	for (uint64_t i = 0; i < s->end - s->from; i++) {
		assert_true(tables_find(s->table, s->from + i, &found));
		if (memcmp(&found, &s->want[i], sizeof(found)))
			fail_msg("another rule at byte %lu", (unsigned long)i);
	}
	tablebuild_fini(&s->build);
}

static void sheet_free(struct sheet *s)
{
	free(s->table);
}

static struct sheet sheet;

static void move(uint64_t bytes, int32_t by)
{
	sheet.rule.cfa_offset += by;
	sheet_add(&sheet, bytes);
}

/* push r15, r14, r13, r12, rbp, rbx; sub; ...; add; pop rbx, rbp, r12 to r15; ret; the body again
 */
static void test_gcc(void **state)
{
	static const int pops[] = {1, 1, 2, 2, 2, 2};

	(void)state;
	sheet_open(&sheet, PAGE + 100, 200);
	sheet_add(&sheet, 0);
	for (int i = 0; i < 4; i++)
		move(2, 8);
	sheet.rule.fp = RULE_FP_CFA;
	sheet.rule.fp_offset = -48;
	move(1, 8);
	move(1, 8);
	move(4, 40);
	move(90, -40);
	for (size_t i = 0; i < sizeof(pops) / sizeof(pops[0]); i++)
		move((uint64_t)pops[i], -8);
	move(1, 88);
	sheet_close(&sheet);
	/* The page's first one; pushes; body; pops; body. */
	assert_int_equal(sheet.table->rows, 5);
	sheet_free(&sheet);
}

/* push rbp; mov rsp, rbp; ...; pop rbp; ret */
static void test_frame_pointer(void **state)
{
	(void)state;
	sheet_open(&sheet, 40, 200);
	sheet_add(&sheet, 4);
	sheet.rule.fp = RULE_FP_CFA;
	sheet.rule.fp_offset = -16;
	move(1, 8);
	sheet.rule.cfa_register = RULE_FP;
	sheet_add(&sheet, 3);
	sheet.rule.cfa_register = RULE_SP;
	move(50, -8);
	sheet_close(&sheet);
	assert_int_equal(sheet.table->rows, 3);
	sheet_free(&sheet);
}

/* How far behind the beginning of its row a step may lie, and what is none. */
static void test_limits(void **state)
{
	static const struct {
		int bytes, by, again;
		unsigned rows;
	} cases[] = {
	    {15, 8, 0, 2}, {16, 8, 0, 3}, {15, -8, 0, 2}, {1, 16, 0, 3}, {1, 8, 8, 2},
	    {1, 8, -8, 3}, {1, -8, 8, 3}, {8, 8, 8, 3},	  {7, 8, 8, 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		sheet_open(&sheet, 10, 100);
		sheet_add(&sheet, 20);
		move((uint64_t)cases[i].bytes, cases[i].by);
		if (cases[i].again)
			move((uint64_t)cases[i].bytes, cases[i].again);
		sheet_close(&sheet);
		assert_int_equal(sheet.table->rows, cases[i].rows);
		sheet_free(&sheet);
	}
}

/* A page begins with a row of its own, in the middle of a prologue too. */
static void test_page_edge(void **state)
{
	(void)state;
	for (unsigned before = 0; before < 12; before++) {
		sheet_open(&sheet, PAGE - before, 100);
		sheet_add(&sheet, 0);
		for (int i = 0; i < 6; i++)
			move(2, 8);
		sheet_close(&sheet);
		assert_int_equal(sheet.table->pages, before ? 2 : 1);
		assert_int_equal(sheet.table->rows, before ? 3 : 1);
		sheet_free(&sheet);
	}
}

/* With more rules than a table may have of those with steps, rows do without. */
static void test_rules_run_out(void **state)
{
	uint32_t functions = 40000;

	(void)state;
	sheet_open(&sheet, 0, 24 * (uint64_t)functions);
	for (uint32_t i = 0; i < functions; i++) {
		sheet.rule.cfa_offset = (int32_t)(8 * i + 8);
		sheet_add(&sheet, 20);
		move(2, 8);
	}
	sheet_close(&sheet);
	assert_in_range(sheet.table->rules, 32768, 65535);
	sheet_free(&sheet);
}

static uint64_t random_below(uint64_t n)
{
	static uint64_t seed = 11;

	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % n;
}

static void random_change(struct table_rule *rule)
{
	switch (random_below(12)) {
	case 0:
		*rule = start;
		break;
	case 1:
		*rule = (struct table_rule){.cfa = (uint8_t)random_below(RULE_SWITCH + 1)};
		break;
	case 2:
		rule->fp = (uint8_t)random_below(RULE_FP_UNDEFINED + 1);
		rule->fp_offset = rule->fp == RULE_FP_SAME ? 0 : -16;
		break;
	case 3:
		rule->cfa_register = (uint8_t)random_below(4);
		break;
	case 4:
		rule->cfa_offset = (int32_t)random_below(64) * 8;
		break;
	case 5:
		rule->fp = RULE_FP_CFA;
		rule->fp_offset = -48;
		rule->cfa_register = RULE_FP;
		break;
	case 6:
	case 7:
		rule->cfa_offset -= 8;
		break;
	default:
		rule->cfa_offset += 8;
	}
}

static void test_random(void **state)
{
	uint32_t rows = 0, changes = 0;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		sheet_open(&sheet, PAGE * random_below(3) + random_below(PAGE), 2000);
		while (sheet.at + 24 < sheet.end) {
			random_change(&sheet.rule);
			sheet_add(&sheet, random_below(20) ? random_below(5) : random_below(24));
			changes++;
		}
		sheet_close(&sheet);
		rows += sheet.table->rows;
		sheet_free(&sheet);
	}
	print_message("%u changes, %u rows\n", changes, rows);
	assert_true(rows < changes / 10 * 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_gcc),		  cmocka_unit_test(test_frame_pointer),
	    cmocka_unit_test(test_limits),	  cmocka_unit_test(test_page_edge),
	    cmocka_unit_test(test_rules_run_out), cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
