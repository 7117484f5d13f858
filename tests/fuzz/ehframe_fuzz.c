/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an ELF file: its unwind table passes the check of the sampler, or there is none.
 * Built by hand, with a corpus of the files that the unit tests make:
 *   make build/tests/fuzz/ehframe_fuzz
 *   for t in ehframe_test gotable_test; do EHFRAME_CORPUS=CORPUS build/tests/symbolizer/$t; done
 *   build/tests/fuzz/ehframe_fuzz CORPUS
 */
#include <stdint.h>
#include <stdlib.h>

#include "tests/symbolizer/tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tables_result r = tables_compile_bytes(data, size);
	struct table_rule rule;

	/* What the table says of any place is a rule that the walk can take. */
	for (uint64_t at = 0; r.err == 0 && at < 1 << 17; at += 61)
		if (tables_find(r.table, at, &rule) && rule.cfa > RULE_SWITCH)
			__builtin_trap();
	free(r.table);
	return 0;
}
