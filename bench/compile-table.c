/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the unwind table of one file, as a symbolizer that has just started does, and prints in
 * one line what bench/tables makes its table of:
 *
 *   bytes of text, bytes of it that have a rule, rows, rows if each told of one change, rules,
 *   rules of such rows, bytes of the table, bytes of such a table, microseconds of CPU
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/symbolizer/tables.h"

struct plain {
	uint64_t text, described; /* bytes */
	struct table_rule *rules; /* of every change, then each once */
	size_t rules_n;
};

static int compare_rules(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct table_rule));
}

static void keep_each_once(struct plain *plain)
{
	size_t kept = 0;

	qsort(plain->rules, plain->rules_n, sizeof(plain->rules[0]), compare_rules);
	for (size_t i = 0; i < plain->rules_n; i++)
		if (i == 0 || compare_rules(&plain->rules[kept - 1], &plain->rules[i]))
			plain->rules[kept++] = plain->rules[i];
	plain->rules_n = kept;
}

static void read_segment(struct plain *plain, const struct tables_result *r, uint64_t at,
			 uint64_t end)
{
	uint64_t next;

	plain->text += end - at;
	for (; at < end; at = next) {
		struct table_rule *rule = &plain->rules[plain->rules_n++];

		next = tables_next(r->table, at, end);
		if (!tables_find(r->table, at, rule))
			abort();
		if (rule->cfa != RULE_INVALID)
			plain->described += next - at;
	}
}

int main(int argc, char **argv)
{
	struct tables_result r = tables_compile(argc == 2 ? open(argv[1], O_RDONLY) : -1);
	struct plain plain = {0};
	uint32_t changes;

	if (r.err) {
		fprintf(stderr, "%s: %s\n", argc == 2 ? argv[1] : "one file", strerror(-r.err));
		return 1;
	}
	changes = r.table->rows + tables_folded(r.table);
	plain.rules = calloc(changes + r.segments_n, sizeof(plain.rules[0]));
	if (!plain.rules)
		return 1;
	for (uint32_t i = 0; i < r.segments_n; i++) {
		const struct elffile_segment *s = &r.segments[i];

		read_segment(&plain, &r, s->offset, s->offset + s->bytes);
	}
	keep_each_once(&plain);
	printf("%llu %llu %u %u %u %zu %zu %llu %.0f\n", (unsigned long long)plain.text,
	       (unsigned long long)plain.described, r.table->rows, changes, r.table->rules,
	       plain.rules_n, r.bytes,
	       (unsigned long long)(sizeof(*r.table) +
				    4 * TABLE_WORDS(r.table->pages, changes, plain.rules_n)),
	       r.ms * 1e3);
	free(plain.rules);
	free(r.table);
	return 0;
}
