/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/codegraph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CODEGRAPH_MARKED_MAX  (1u << 20)
#define CODEGRAPH_PADDING_MAX 256 /* bytes in a row; more are something else */

bool codegraph_grow(struct codegraph *graph, void **array, uint32_t n, uint32_t *room, size_t bytes,
		    uint32_t max)
{
	uint32_t more = *room ? 2 * *room : 256;
	void *grown;

	if (n < *room)
		return true;
	if (n >= max) {
		graph->err = -EFBIG;
		return false;
	}
	grown = realloc(*array, (more < max ? more : max) * bytes);
	if (!grown) {
		graph->err = -ENOMEM;
		return false;
	}
	*array = grown;
	*room = more < max ? more : max;
	return true;
}

int codegraph_open(struct codegraph *graph, struct codegraph_area *areas, uint32_t areas_n,
		   codegraph_data_fn *data, void *data_arg)
{
	memset(graph, 0, sizeof(*graph));
	memset(graph->queue, 0xff, sizeof(graph->queue));
	graph->areas = areas;
	graph->areas_n = areas_n;
	graph->data = data;
	graph->data_arg = data_arg;
	for (uint32_t i = 0; i < areas_n; i++) {
		if (areas[i].n > CODEGRAPH_BYTES_MAX - graph->map_n)
			return -EFBIG;
		areas[i].at = graph->map_n;
		graph->map_n += areas[i].n;
	}
	graph->map = calloc(graph->map_n + 1, sizeof(*graph->map));
	graph->block_at = calloc(graph->map_n + 1, sizeof(*graph->block_at));
	if (graph->map && graph->block_at)
		return 0;
	codegraph_close(graph);
	return -ENOMEM;
}

void codegraph_close(struct codegraph *graph)
{
	free(graph->map);
	free(graph->block_at);
	free(graph->blocks);
	free(graph->starts);
	free(graph->taken);
	free(graph->marked);
	memset(graph, 0, sizeof(*graph));
}

const struct codegraph_area *codegraph_find(const struct codegraph *graph, uint64_t vaddr)
{
	uint32_t low = 0, high = graph->areas_n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (graph->areas[middle].vaddr <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || vaddr - graph->areas[low - 1].vaddr >= graph->areas[low - 1].n)
		return NULL;
	return &graph->areas[low - 1];
}

uint32_t codegraph_index(const struct codegraph_area *area, uint64_t vaddr)
{
	return area->at + (uint32_t)(vaddr - area->vaddr);
}

struct codegraph_block *codegraph_block(const struct codegraph *graph, uint64_t vaddr)
{
	const struct codegraph_area *area = codegraph_find(graph, vaddr);
	uint32_t block = area ? graph->block_at[codegraph_index(area, vaddr)] : 0;

	return block ? &graph->blocks[block - 1] : NULL;
}

uint64_t codegraph_origin(const struct codegraph *graph)
{
	return graph->areas_n ? graph->areas[0].vaddr : 0;
}

void codegraph_queue(struct codegraph *graph, uint32_t block)
{
	struct codegraph_block *b = &graph->blocks[block];

	if (b->queued)
		return;
	b->queued = true;
	b->next_queued = graph->queue[b->level];
	graph->queue[b->level] = block;
}

bool codegraph_is_kept(const struct codegraph *graph, uint32_t block)
{
	return graph->trying && block < graph->kept_blocks;
}

void codegraph_refute(struct codegraph *graph)
{
	graph->refuted = true;
}

void codegraph_count(struct codegraph *graph, uint32_t work)
{
	graph->decodes += work;
	if (graph->decodes > CODEGRAPH_DECODES_MAX && !graph->err)
		graph->err = -EFBIG;
}

bool codegraph_decode(const struct codegraph_area *area, uint64_t vaddr, struct x86_insn *insn)
{
	uint32_t at = (uint32_t)(vaddr - area->vaddr);

	return x86_decode(area->bytes + at, area->n - at, vaddr, insn) &&
	       insn->length <= area->n - at;
}

static bool codegraph_is_padding(const struct x86_insn *insn, const uint8_t *code)
{
	return insn->kind == X86_NOP || code[0] == 0xcc;
}

uint32_t codegraph_skip_padding(const struct codegraph_area *area, uint32_t at, uint32_t end)
{
	struct x86_insn insn;

	end = end - at < CODEGRAPH_PADDING_MAX ? end : at + CODEGRAPH_PADDING_MAX;
	while (at < end && codegraph_decode(area, area->vaddr + at, &insn) &&
	       insn.length <= end - at && codegraph_is_padding(&insn, area->bytes + at))
		at += insn.length;
	return at;
}

bool codegraph_is_padded(const struct codegraph_area *area, uint64_t vaddr)
{
	uint32_t at = (uint32_t)(vaddr - area->vaddr);
	uint32_t behind = at < area->n ? codegraph_skip_padding(area, at, area->n) : at;

	return behind > at && (area->vaddr + behind) % CODEGRAPH_ALIGN == 0;
}

uint32_t codegraph_skip_unreached(const struct codegraph *graph, const struct codegraph_area *area,
				  uint32_t at)
{
	while (at < area->n && !graph->map[area->at + at])
		at++;
	return at;
}

uint32_t codegraph_add_block(struct codegraph *graph, const struct codegraph_area *area,
			     uint64_t vaddr, const struct codestate *state, uint8_t level,
			     uint32_t owner)
{
	if (!codegraph_grow(graph, (void **)&graph->blocks, graph->blocks_n, &graph->blocks_room,
			    sizeof(*graph->blocks), CODEGRAPH_BLOCKS_MAX))
		return CODEGRAPH_NONE;
	graph->blocks[graph->blocks_n] =
	    (struct codegraph_block){.vaddr = vaddr,
				     .area = (uint32_t)(area - graph->areas),
				     .owner = owner,
				     .level = level,
				     .state = *state};
	graph->block_at[codegraph_index(area, vaddr)] = ++graph->blocks_n;
	return graph->blocks_n - 1;
}

void codegraph_split(struct codegraph *graph, const struct codegraph_area *area, uint64_t vaddr)
{
	uint32_t from = codegraph_index(area, vaddr), at = from;

	while (at > area->at && !graph->block_at[--at])
		;
	codegraph_count(graph, (from - at) / CODEGRAPH_SCAN_BYTES);
	if (!graph->block_at[at])
		return;
	if (codegraph_is_kept(graph, graph->block_at[at] - 1))
		codegraph_refute(graph);
	else
		codegraph_queue(graph, graph->block_at[at] - 1);
}

/* A block is, or turns out to be, a function: the newest start. */
static void codegraph_make_start(struct codegraph *graph, uint32_t block)
{
	struct codegraph_block *b = &graph->blocks[block];
	struct codestate state = codestate_start();

	/* Something jumps here with something on the stack: neither is right then. */
	if (b->level == LEVEL_FLOW && codestate_knows_sp(&b->state))
		codestate_join(&state, &b->state);
	b->state = codestate_knows_sp(&state) ? codestate_start() : state;
	b->owner = graph->starts_n - 1;
	b->is_start = true;
	b->level = LEVEL_FLOW;
	codegraph_queue(graph, block);
}

uint32_t codegraph_start(struct codegraph *graph, uint64_t vaddr)
{
	const struct codegraph_area *area = codegraph_find(graph, vaddr);
	struct codestate state = codestate_start();
	uint32_t at, block;

	if (!area)
		return CODEGRAPH_NONE;
	at = codegraph_index(area, vaddr);
	block = graph->block_at[at] - 1;
	if (block != CODEGRAPH_NONE && graph->blocks[block].is_start)
		return graph->blocks[block].owner;
	if (codegraph_is_kept(graph, block) || (graph->map[at] & MARK_INSIDE)) {
		codegraph_refute(graph);
		return CODEGRAPH_NONE;
	}
	if (!codegraph_grow(graph, (void **)&graph->starts, graph->starts_n, &graph->starts_room,
			    sizeof(*graph->starts), CODEGRAPH_BLOCKS_MAX))
		return CODEGRAPH_NONE;
	graph->starts[graph->starts_n++] =
	    (struct codegraph_start){.waiting = CODEGRAPH_NONE, .odd_level = CODEGRAPH_LEVELS};
	if (block == CODEGRAPH_NONE) {
		block = codegraph_add_block(graph, area, vaddr, &state, LEVEL_FLOW,
					    graph->starts_n - 1);
		if (block == CODEGRAPH_NONE)
			return CODEGRAPH_NONE;
		if (graph->map[at] & MARK_INSN)
			codegraph_split(graph, area, vaddr);
	}
	codegraph_make_start(graph, block);
	return graph->starts_n - 1;
}

bool codegraph_mark(struct codegraph *graph, uint32_t at, uint8_t length)
{
	if (graph->map[at] & MARK_INSIDE)
		return false;
	for (uint8_t i = 1; i < length; i++)
		if (graph->map[at + i] & MARK_INSN)
			return false;
	if ((graph->map[at] & MARK_INSN) == 0 && graph->trying) {
		if (graph->marked_n >= CODEGRAPH_MARKED_MAX ||
		    !codegraph_grow(graph, (void **)&graph->marked, graph->marked_n,
				    &graph->marked_room, sizeof(*graph->marked),
				    CODEGRAPH_MARKED_MAX))
			return false;
		graph->marked[graph->marked_n++] = at << 4 | length;
	}
	graph->map[at] |= MARK_INSN;
	memset(graph->map + at + 1, MARK_INSIDE, length - 1u);
	return true;
}

bool codegraph_is_push(const struct x86_insn *insn, uint64_t at)
{
	return insn->kind == X86_CALL && insn->has_target && insn->target == at + insn->length;
}

bool codegraph_is_foreign(const struct x86_insn *insn)
{
	return insn->has_target || (insn->a.kind == X86_MEMORY && insn->a.base == X86_NO_REGISTER &&
				    insn->a.index == X86_NO_REGISTER);
}

void codegraph_pass(struct codestate *state, const struct x86_insn *insn, uint64_t at,
		    uint64_t origin)
{
	if (codegraph_is_push(insn, at))
		codestate_push_number(state);
	else if (insn->kind == X86_BRANCH)
		codestate_branch(state, insn, false);
	else
		codestate_apply(state, insn, origin);
}

bool codegraph_ends_block(const struct x86_insn *insn, uint64_t at)
{
	return insn->kind == X86_JUMP || insn->kind == X86_RETURN || insn->kind == X86_HALT ||
	       (insn->kind == X86_CALL && !codegraph_is_push(insn, at));
}
