/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts an unwind table (shm/table.h) together from rules in the order of file offsets: pages, rows
 * without repetitions, each rule once. Rules that follow one another within a few bytes and differ
 * as after a push or a pop share a row. Room grows up to the limits of the format.
 */
#ifndef SCONCE_SYMBOLIZER_TABLEBUILD_H
#define SCONCE_SYMBOLIZER_TABLEBUILD_H

#include <stddef.h>
#include <stdint.h>

#include "shm/table.h"

struct tablebuild {
	uint32_t first_page, pages_n, page; /* page: the one that grows, as an index */
	struct table_page *pages;
	uint32_t *rows, rows_n, rows_room; /* the last one has no rule yet: it may take more in */
	struct table_rule *rules;
	uint32_t *slots; /* hash of rules: index + 1 */
	uint32_t rules_n;
	struct table_rule row;	 /* of the last row */
	struct table_rule holds; /* from the last change on */
	struct table_rule added; /* last, and where: the next one may stand at the same place */
	uint64_t added_at;
	int err;
};

/* Cover file offsets from `start` up to `end`, all of them invalid. 0, -EFBIG, -ENOMEM. */
int tablebuild_init(struct tablebuild *build, uint64_t start, uint64_t end);
void tablebuild_fini(struct tablebuild *build);

/* From this offset on the rule holds. Offsets do not descend; the last rule of an offset wins. */
void tablebuild_add(struct tablebuild *build, uint64_t offset, const struct table_rule *rule);

/* The table in one malloc'ed block that the caller frees. 0, -EFBIG, -ENOMEM. */
int tablebuild_finish(struct tablebuild *build, uint32_t file_id, struct table_header **table,
		      size_t *bytes);

#endif
