/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as machine code, followed from a few places: whatever they are, it ends, and the rules
 * come in order. The first bytes say where to begin.
 * Built by hand: make build/tests/fuzz/codeflow_fuzz && build/tests/fuzz/codeflow_fuzz CORPUS
 */
#include <stdint.h>
#include <stdlib.h>

#include "symbolizer/codeconfirm.h"
#include "symbolizer/codeflow.h"
#include "symbolizer/coderows.h"
#include "symbolizer/codetry.h"

#define VADDR	  0x401000
#define AREAS	  2
#define BEGINNING 8 /* bytes before the code */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct subject {
	struct codegraph graph;
	struct codegraph_area areas[AREAS];
	uint64_t at;
};

static const uint8_t *code_at(void *arg, uint64_t vaddr, uint64_t bytes)
{
	const struct subject *s = arg;

	for (int i = 0; i < AREAS; i++) {
		uint64_t at = vaddr - s->areas[i].vaddr;

		if (at < s->areas[i].n && bytes <= s->areas[i].n - at)
			return s->areas[i].bytes + at;
	}
	return NULL;
}

static void check_row(void *arg, uint64_t vaddr, const struct table_rule *rule)
{
	struct subject *s = arg;

	if (vaddr < s->at || (rule->cfa != RULE_INVALID && rule->cfa != RULE_REGISTER))
		abort();
	s->at = vaddr;
}

/* The code, in two areas with a hole between them. */
static void follow(const uint8_t *begin, const uint8_t *code, uint32_t n)
{
	struct subject s = {
	    .areas = {{.vaddr = VADDR, .bytes = code, .n = n / 2},
		      {.vaddr = VADDR + n / 2 + 64, .bytes = code + n / 2, .n = n - n / 2}}};

	if (codegraph_open(&s.graph, s.areas, AREAS, code_at, &s))
		return;
	if (begin[0] & 1)
		codeflow_enter(&s.graph, VADDR + begin[1]);
	codeflow_prove(&s.graph, VADDR);
	for (int i = 2; i < BEGINNING; i++)
		codeflow_prove(&s.graph, VADDR + begin[i] * (n / 256 + 1));
	codeflow_run(&s.graph);
	codetry_all(&s.graph);
	codeconfirm_all(&s.graph);
	for (uint32_t i = 0; i < AREAS; i++)
		coderows_area(&s.graph, i, check_row, &s);
	codegraph_close(&s.graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= BEGINNING + 2)
		follow(data, data + BEGINNING, (uint32_t)(size - BEGINNING));
	return 0;
}
