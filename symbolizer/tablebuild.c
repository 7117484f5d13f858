/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/tablebuild.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TABLEBUILD_PAGE_BYTES (1u << TABLE_PAGE_SHIFT)
#define TABLEBUILD_ROWS_START 16384u
#define TABLEBUILD_SLOTS      (2 * TABLE_RULES_MAX)

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

static void tablebuild_row(struct tablebuild *build, uint32_t low, uint32_t rule)
{
	uint32_t *rows;

	if (build->err)
		return;
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
	build->rows[build->rows_n++] = rule << 16 | low;
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
	build->rule = tablebuild_rule(build, &tablebuild_invalid);
	tablebuild_row(build, 0, build->rule);
	return 0;
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
		tablebuild_row(build, 0, build->rule);
	}
}

void tablebuild_add(struct tablebuild *build, uint64_t offset, const struct table_rule *rule)
{
	uint32_t low = offset % TABLEBUILD_PAGE_BYTES, index = tablebuild_rule(build, rule);
	struct table_page *page;
	uint32_t *last;

	tablebuild_open_page(build, (uint32_t)((offset >> TABLE_PAGE_SHIFT) - build->first_page));
	if (build->err || index == build->rule)
		return;
	build->rule = index;
	page = &build->pages[build->page];
	last = &build->rows[build->rows_n - 1];
	assert(low >= (*last & 0xffff));
	if (low > (*last & 0xffff)) {
		tablebuild_row(build, low, index);
		return;
	}
	*last = index << 16 | low;
	if (page->count > 1 && last[-1] >> 16 == index) {
		page->count--;
		build->rows_n--;
	}
}

int tablebuild_finish(struct tablebuild *build, uint32_t file_id, struct table_header **table,
		      size_t *bytes)
{
	struct table_header *t;
	uint8_t *to;

	tablebuild_open_page(build, build->pages_n - 1);
	if (build->err)
		return build->err;
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
