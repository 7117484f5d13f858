/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a table that somebody else wrote. What the rules say may still be nonsense: that
 * yields wrong stacks of the processes of that file, and nothing worse.
 */
#include "shm/table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

static bool table_check_header(const struct table_header *h, size_t bytes)
{
	return bytes >= sizeof(*h) && h->magic == TABLE_MAGIC && h->version == TABLE_VERSION &&
	       h->pages > 0 && h->pages <= TABLE_PAGES_MAX && h->rows <= TABLE_ROWS_MAX &&
	       h->rules > 0 && h->rules <= TABLE_RULES_MAX &&
	       h->first_page <= UINT32_MAX - h->pages &&
	       h->runtimes <= 1 && bytes == sizeof(*h) + 4 * table_words(h);
}

static bool table_check_page(const __u32 *rows, __u32 count, __u32 rules)
{
	if (count == 0 || (rows[0] & 0xffff) != 0)
		return false;
	for (__u32 i = 0; i < count; i++)
		if (rows[i] >> 16 >= rules || (i && (rows[i] & 0xffff) <= (rows[i - 1] & 0xffff)))
			return false;
	return true;
}

static bool table_check_rule(const struct table_rule *rule)
{
	return rule->cfa <= RULE_NOTED && rule->cfa_register < RULE_REGISTER_COUNT &&
	       rule->fp <= RULE_FP_UNDEFINED && rule->ra <= RULE_RA_REGISTER &&
	       (rule->ra == RULE_RA_CFA || rule->ra_register < RULE_REGISTER_COUNT);
}

int table_check(const struct table_header *header, size_t bytes)
{
	const struct table_page *pages = (const struct table_page *)(header + 1);
	const struct table_rule *rules;
	const __u32 *rows;
	__u32 next = 0;

	if (!table_check_header(header, bytes))
		return -EINVAL;
	rows = (const __u32 *)(pages + header->pages);
	rules = (const struct table_rule *)(rows + header->rows);
	for (__u32 i = 0; i < header->pages; next += pages[i++].count)
		if (pages[i].first != next || pages[i].count > header->rows - next ||
		    !table_check_page(rows + next, pages[i].count, header->rules))
			return -EINVAL;
	for (__u32 i = 0; i < header->rules; i++)
		if (!table_check_rule(&rules[i]))
			return -EINVAL;
	return next == header->rows && rules[0].cfa == RULE_INVALID ? 0 : -EINVAL;
}
