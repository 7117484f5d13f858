/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/tablebuild.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TABLEBUILD_PAGE_BYTES (1u << TABLE_PAGE_SHIFT)
#define TABLEBUILD_ROWS_START 16384u
#define TABLEBUILD_SLOTS      (2 * TABLE_RULES_MAX)
/* The other half is left to rules without steps, of which a file has some hundreds. */
#define TABLEBUILD_STEPS_RULES_MAX (TABLE_RULES_MAX / 2)

static const struct table_rule tablebuild_invalid = {.cfa = RULE_INVALID};

static uint32_t tablebuild_hash(const struct table_rule *rule)
{
	uint64_t words[2], h;

	memcpy(words, rule, sizeof(words));
	h = (words[0] ^ (words[1] << 23 | words[1] >> 41)) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)((h ^ h >> 29) * 0xbf58476d1ce4e5b9ull >> 32);
}

/* The index of a rule, new or known. With no room for more, the rule becomes invalid. */
static uint32_t tablebuild_rule(struct tablebuild *build, const struct table_rule *rule)
{
	uint32_t slot = tablebuild_hash(rule) % TABLEBUILD_SLOTS;

	for (; build->slots[slot]; slot = (slot + 1) % TABLEBUILD_SLOTS)
		if (!memcmp(&build->rules[build->slots[slot] - 1], rule, sizeof(*rule)))
			return build->slots[slot] - 1;
	if (build->rules_n == TABLE_RULES_MAX)
		return 0;
	build->rules[build->rules_n] = *rule;
	build->slots[slot] = ++build->rules_n;
	return build->rules_n - 1;
}

/* The last row takes nothing more in. */
static void tablebuild_close_row(struct tablebuild *build)
{
	if (build->rows_n > 0)
		build->rows[build->rows_n - 1] |= tablebuild_rule(build, &build->row) << 16;
}

static void tablebuild_open_row(struct tablebuild *build, uint32_t low,
				const struct table_rule *rule)
{
	uint32_t *rows;

	if (build->err)
		return;
	tablebuild_close_row(build);
	if (build->rows_n == TABLE_ROWS_MAX) {
		build->err = -EFBIG;
		return;
	}
	if (build->rows_n == build->rows_room) {
		uint32_t room = build->rows_room ? 2 * build->rows_room : TABLEBUILD_ROWS_START;

		rows = realloc(build->rows, room * sizeof(*rows));
		if (!rows) {
			build->err = -ENOMEM;
			return;
		}
		build->rows = rows;
		build->rows_room = room;
	}
	build->rows[build->rows_n++] = low;
	build->row = *rule;
	build->pages[build->page].count++;
}

int tablebuild_init(struct tablebuild *build, uint64_t start, uint64_t end)
{
	uint64_t pages = ((end - 1) >> TABLE_PAGE_SHIFT) - (start >> TABLE_PAGE_SHIFT) + 1;

	memset(build, 0, sizeof(*build));
	assert(start < end);
	if (pages > TABLE_PAGES_MAX || end >> TABLE_PAGE_SHIFT >= UINT32_MAX - TABLE_PAGES_MAX)
		return -EFBIG;
	build->first_page = (uint32_t)(start >> TABLE_PAGE_SHIFT);
	build->pages_n = (uint32_t)pages;
	build->pages = calloc(pages, sizeof(*build->pages));
	build->rules = malloc(TABLE_RULES_MAX * sizeof(*build->rules));
	build->slots = calloc(TABLEBUILD_SLOTS, sizeof(*build->slots));
	if (!build->pages || !build->rules || !build->slots) {
		tablebuild_fini(build);
		return -ENOMEM;
	}
	build->holds = build->added = tablebuild_invalid;
	build->added_at = start;
	tablebuild_rule(build, &tablebuild_invalid);
	tablebuild_open_row(build, 0, &tablebuild_invalid);
	return build->err;
}

void tablebuild_fini(struct tablebuild *build)
{
	free(build->pages);
	free(build->rows);
	free(build->rules);
	free(build->slots);
	memset(build, 0, sizeof(*build));
}

/* Every page begins with what holds there. */
static void tablebuild_open_page(struct tablebuild *build, uint32_t page)
{
	assert(page < build->pages_n);
	while (build->page < page) {
		build->pages[++build->page].first = build->rows_n;
		tablebuild_open_row(build, 0, &build->holds);
	}
}

/* Let the last row tell that `rule` holds from `into` bytes behind its beginning on. */
static bool tablebuild_step(struct tablebuild *build, uint32_t into, const struct table_rule *rule)
{
	int64_t moved = (int64_t)rule->cfa_offset - build->holds.cfa_offset;
	uint16_t way = moved < 0 ? RULE_STEPS_POP : 0;
	struct table_rule row = build->row, last;

	if (into > RULE_STEPS_BYTES || rule->cfa != RULE_REGISTER || row.cfa != RULE_REGISTER ||
	    build->rules_n >= TABLEBUILD_STEPS_RULES_MAX)
		return false;
	if (moved != 0) {
		if ((moved != 8 && moved != -8) ||
		    (row.steps && (row.steps & RULE_STEPS_POP) != way))
			return false;
		row.steps |= (uint16_t)(1u << (into - 1) | way);
		row.cfa_offset = rule->cfa_offset;
	}
	if (row.fp == RULE_FP_SAME && rule->fp != RULE_FP_SAME) {
		row.add |= (uint8_t)into;
		row.fp = rule->fp;
		row.fp_offset = rule->fp_offset;
	}
	if (row.cfa_register == RULE_SP && rule->cfa_register != RULE_SP) {
		row.add |= (uint8_t)(into << 4);
		row.cfa_register = rule->cfa_register;
	}
	/* Behind its last step the row says the rule, or they differ in more than steps can say. */
	last = row;
	last.add = 0;
	last.steps = 0;
	if (memcmp(&last, rule, sizeof(last)))
		return false;
	build->row = row;
	return true;
}

/* What was added last is final: nothing more comes for its place. */
static void tablebuild_settle(struct tablebuild *build)
{
	uint32_t low = build->added_at % TABLEBUILD_PAGE_BYTES, into;

	tablebuild_open_page(build,
			     (uint32_t)((build->added_at >> TABLE_PAGE_SHIFT) - build->first_page));
	if (build->err || !memcmp(&build->added, &build->holds, sizeof(build->added)))
		return;
	into = low - (build->rows[build->rows_n - 1] & 0xffff);
	if (into == 0) /* only at the beginning of a page */
		build->row = build->added;
	else if (!tablebuild_step(build, into, &build->added))
		tablebuild_open_row(build, low, &build->added);
	build->holds = build->added;
}

void tablebuild_add(struct tablebuild *build, uint64_t offset, const struct table_rule *rule)
{
	assert(offset >= build->added_at);
	if (offset > build->added_at)
		tablebuild_settle(build);
	build->added_at = offset;
	build->added = *rule;
}

int tablebuild_finish(struct tablebuild *build, uint32_t file_id, struct table_header **table,
		      size_t *bytes)
{
	struct table_header *t;
	uint8_t *to;

	tablebuild_settle(build);
	tablebuild_open_page(build, build->pages_n - 1);
	if (build->err)
		return build->err;
	tablebuild_close_row(build);
	*bytes = sizeof(*t) + 4 * TABLE_WORDS(build->pages_n, build->rows_n, build->rules_n);
	t = malloc(*bytes);
	if (!t)
		return -ENOMEM;
	*t = (struct table_header){.magic = TABLE_MAGIC,
				   .version = TABLE_VERSION,
				   .file_id = file_id,
				   .first_page = build->first_page,
				   .pages = build->pages_n,
				   .rows = build->rows_n,
				   .rules = build->rules_n};
	to = (uint8_t *)(t + 1);
	to = (uint8_t *)mempcpy(to, build->pages, build->pages_n * sizeof(*build->pages));
	to = (uint8_t *)mempcpy(to, build->rows, build->rows_n * sizeof(*build->rows));
	memcpy(to, build->rules, build->rules_n * sizeof(*build->rules));
	*table = t;
	return 0;
}
