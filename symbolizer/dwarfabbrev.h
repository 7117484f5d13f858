/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the entries (DIEs) of a unit consist of: .debug_abbrev. A whole table for a walk through a
 * unit, and a single abbreviation for an entry that somebody refers to.
 */
#ifndef SCONCE_SYMBOLIZER_DWARFABBREV_H
#define SCONCE_SYMBOLIZER_DWARFABBREV_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/dwarfbytes.h"

#define DWARFABBREV_MAX		   65536 /* of one unit; GCC gets to 600 */
#define DWARFABBREV_ATTRIBUTES_MAX (1u << 20)
#define DWARFABBREV_OF_ONE_MAX	   256	 /* attributes */
#define DWARFABBREV_LOOK_MAX	   65536 /* attributes before one that is looked up alone: 0.5 ms */

struct dwarfattribute {
	uint16_t name, form;
	int32_t implicit; /* DW_FORM_implicit_const: lines and files, so 32 bits will do */
};

struct dwarfabbrev {
	uint64_t code;
	uint32_t first; /* attribute */
	uint16_t attributes_n, tag;
	bool children;
};

struct dwarfabbrevs {
	struct dwarfabbrev *abbrevs;
	struct dwarfattribute *attributes;
	uint32_t abbrevs_n, attributes_n;
	bool dense; /* abbrevs[i] has code i + 1 */
};

/* 0, -ENOEXEC (damaged), -EFBIG or -ENOMEM. Ended with dwarfabbrev_free(), in any case. */
int dwarfabbrev_read(struct dwarfabbrevs *table, struct dwarfbytes *section, uint64_t at);
void dwarfabbrev_free(struct dwarfabbrevs *table);
const struct dwarfabbrev *dwarfabbrev_get(const struct dwarfabbrevs *table, uint64_t code);

/* The single one with this code, from the table at `at`. */
bool dwarfabbrev_find(struct dwarfbytes *section, uint64_t at, uint64_t code,
		      struct dwarfabbrev *abbrev,
		      struct dwarfattribute attributes[DWARFABBREV_OF_ONE_MAX]);

#endif
