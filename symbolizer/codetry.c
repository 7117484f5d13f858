/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/codetry.h"

#include <string.h>

#include "symbolizer/codeflow.h"

#define CODETRY_VAIN_MAX 16 /* in a row, in one stretch */

/* As if nothing had been tried. */
static void codetry_undo(struct codegraph *graph)
{
	while (graph->blocks_n > graph->kept_blocks) {
		const struct codegraph_block *b = &graph->blocks[--graph->blocks_n];

		graph->block_at[codegraph_index(&graph->areas[b->area], b->vaddr)] = 0;
	}
	while (graph->marked_n > 0) {
		uint32_t mark = graph->marked[--graph->marked_n];

		memset(graph->map + (mark >> 4), 0, mark & 15);
	}
	graph->starts_n = graph->kept_starts;
	memset(graph->queue, 0xff, sizeof(graph->queue));
}

void codetry_one(struct codegraph *graph, uint64_t vaddr, bool needs_return)
{
	const struct codegraph_area *area = codegraph_find(graph, vaddr);
	uint32_t taken = graph->taken_n;

	if (!area || graph->err || graph->map[codegraph_index(area, vaddr)])
		return;
	graph->trying = true;
	graph->refuted = graph->returned = false;
	graph->kept_blocks = graph->blocks_n;
	graph->kept_starts = graph->starts_n;
	graph->marked_n = 0;
	codegraph_start(graph, vaddr);
	codeflow_run(graph);
	if (graph->refuted || graph->err || (needs_return && !graph->returned)) {
		codetry_undo(graph);
		graph->taken_n = taken;
	}
	graph->trying = false;
	/* What it calls are functions, now that it is one. */
	for (uint32_t i = graph->kept_blocks; i < graph->blocks_n; i++)
		codegraph_queue(graph, i);
	codeflow_run(graph);
}

/* The next place in code that nothing has reached where a function may begin: behind padding. */
static uint32_t codetry_next_likely(struct codegraph *graph, const struct codegraph_area *area,
				    uint32_t at, uint32_t end)
{
	struct x86_insn insn;
	bool ends;

	while (at < end && !graph->err && codegraph_decode(area, area->vaddr + at, &insn)) {
		codegraph_count(graph, 1);
		ends = codegraph_ends_block(&insn, area->vaddr + at);
		at += insn.length;
		if (ends && codegraph_is_padded(area, area->vaddr + at))
			return at;
	}
	return end;
}

/* A stretch of code that nothing has reached: functions that nobody calls directly, or data. */
static void codetry_stretch(struct codegraph *graph, const struct codegraph_area *area, uint32_t at,
			    uint32_t end)
{
	for (int vain = 0; vain < CODETRY_VAIN_MAX && !graph->err; vain++) {
		codegraph_count(graph, 1);
		at = codegraph_skip_padding(area, at, end);
		if (at >= end)
			return;
		if ((area->vaddr + at) % CODEGRAPH_ALIGN == 0)
			codetry_one(graph, area->vaddr + at, true);
		/* Believed: what is left of the stretch is looked at in the next round. */
		if (graph->map[area->at + at])
			return;
		at = codetry_next_likely(graph, area, at, end);
	}
}

static void codetry_area(struct codegraph *graph, const struct codegraph_area *area)
{
	uint32_t at = 0, end;

	codegraph_count(graph, area->n / CODEGRAPH_SCAN_BYTES);
	while (at < area->n && !graph->err) {
		if (graph->map[area->at + at]) {
			at++;
			continue;
		}
		end = codegraph_skip_unreached(graph, area, at);
		codetry_stretch(graph, area, at, end);
		/* Go on behind what is known now. */
		while (at < end && !graph->map[area->at + at])
			at++;
	}
}

/* Every round but the last one has found something; all of them count as work. */
void codetry_all(struct codegraph *graph)
{
	uint32_t done = 0, starts;

	do {
		starts = graph->starts_n;
		for (; done < graph->taken_n; done++)
			codetry_one(graph, graph->taken[done], false);
		for (uint32_t i = 0; i < graph->areas_n; i++)
			codetry_area(graph, &graph->areas[i]);
	} while (graph->starts_n > starts && !graph->err);
}
