/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/coderows.h"

#include <string.h>

/* The state at this place, where a block begins. False: it is not to be believed. */
static bool coderows_load(const struct codegraph *graph, uint32_t index, struct codestate *state)
{
	const struct codegraph_block *b = &graph->blocks[graph->block_at[index] - 1];

	*state = b->state;
	return b->level < graph->starts[b->owner].odd_level &&
	       (b->level < LEVEL_ASSUMED || b->confirmed);
}

void coderows_each(const struct codegraph *graph, uint32_t index, coderows_each_fn *fn, void *arg)
{
	const struct codegraph_area *area = &graph->areas[index];
	struct codestate state = codestate_start();
	struct coderows_place place = {.known = false};
	struct x86_insn insn;

	for (uint32_t at = 0; at < area->n; at += place.bytes) {
		place.vaddr = area->vaddr + at;
		if (graph->block_at[area->at + at])
			place.known = coderows_load(graph, area->at + at, &state);
		if (graph->err || !(graph->map[area->at + at] & MARK_INSN) ||
		    !codegraph_decode(area, place.vaddr, &insn)) {
			place.bytes = codegraph_skip_unreached(graph, area, at + 1) - at;
			place.padding =
			    codegraph_skip_padding(area, at, at + place.bytes) == at + place.bytes;
			place.known = false;
			fn(arg, &place, NULL);
			continue;
		}
		place.bytes = insn.length;
		place.padding = false;
		fn(arg, &place, place.known ? &state : NULL);
		codegraph_pass(&state, &insn, place.vaddr, codegraph_origin(graph));
		place.known = place.known && !codegraph_ends_block(&insn, place.vaddr);
	}
}

struct coderows_writer {
	coderows_fn *fn;
	void *arg;
	struct table_rule rule;
	bool begun;
};

static void coderows_write(void *arg, const struct coderows_place *place,
			   const struct codestate *state)
{
	struct coderows_writer *writer = arg;
	struct table_rule rule = {.cfa = RULE_INVALID};

	/* Padding goes on with what was before it. */
	if (writer->begun && place->padding)
		return;
	if (state)
		rule = codestate_rule(state);
	if (writer->begun && memcmp(&writer->rule, &rule, sizeof(rule)) == 0)
		return;
	writer->begun = true;
	writer->rule = rule;
	writer->fn(writer->arg, place->vaddr, &rule);
}

void coderows_area(const struct codegraph *graph, uint32_t area, coderows_fn *fn, void *arg)
{
	struct coderows_writer writer = {.fn = fn, .arg = arg};

	coderows_each(graph, area, coderows_write, &writer);
}

bool coderows_any(const struct codegraph *graph)
{
	for (uint32_t i = 0; i < graph->blocks_n && !graph->err; i++)
		if (codestate_rule(&graph->blocks[i].state).cfa != RULE_INVALID)
			return true;
	return false;
}
