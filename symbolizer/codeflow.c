/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/codeflow.h"

#include <string.h>

/* To read a table takes as long as so many instructions. */
#define CODEFLOW_TABLE_COST 16

/* How a way comes to a block. */
enum codeflow_way { WAY_ON, WAY_BRANCH, WAY_JUMP };

/* One run through a block. */
struct codeflow_walk {
	struct codegraph *graph;
	const struct codegraph_area *area;
	uint64_t at;
	uint32_t block, owner;
	uint8_t level;
	struct codestate state;
};

/* More is known of what a function does: whoever waits behind a call to it goes on. */
static void codeflow_decide(struct codegraph *graph, uint32_t owner, uint8_t fate)
{
	struct codegraph_start *start = &graph->starts[owner];

	if ((start->fate | fate) == start->fate)
		return;
	start->fate |= fate;
	for (uint32_t i = start->waiting; i != CODEGRAPH_NONE; i = graph->blocks[i].next_waiting)
		codegraph_queue(graph, i);
}

/* The way leaves the function: by a return, or to where nobody sees it. */
static void codeflow_leave(struct codeflow_walk *w, uint8_t fate, uint16_t popped)
{
	/* Where sp is lost to us alone, the function still keeps to the convention. */
	if (w->state.popped || popped)
		fate |= FATE_LOSES_SP;
	if (codestate_is_return(&w->state) && w->state.is[X86_RBP] != CODE_FP)
		fate |= FATE_LOSES_FP;
	codeflow_decide(w->graph, w->owner, fate);
}

/* What was seen does not hold together: at this strength nothing of the function is believed. */
static void codeflow_contradict(struct codeflow_walk *w, uint8_t level)
{
	struct codegraph_start *start = &w->graph->starts[w->owner];

	if (level < start->odd_level)
		start->odd_level = level;
	codegraph_refute(w->graph);
}

static void codeflow_return(struct codeflow_walk *w, const struct x86_insn *insn)
{
	bool is_return = codestate_is_return(&w->state);

	if (codestate_knows_sp(&w->state) && !is_return)
		codeflow_contradict(w, w->level);
	if (!is_return || w->state.is[X86_RBP] != CODE_FP)
		codegraph_refute(w->graph);
	w->graph->returned = true;
	codeflow_leave(w, is_return ? FATE_RETURNS : FATE_MAY_RETURN, insn->bytes);
}

static void codeflow_wait(struct codeflow_walk *w, uint32_t start)
{
	struct codegraph_block *b = &w->graph->blocks[w->block];

	if (b->waiting || (w->graph->trying && start < w->graph->kept_starts))
		return;
	b->waiting = true;
	b->next_waiting = w->graph->starts[start].waiting;
	w->graph->starts[start].waiting = w->block;
}

/* The end of one function is in another: its fate is the other's. */
static void codeflow_follow(struct codeflow_walk *w, uint32_t owner, enum codeflow_way way)
{
	uint8_t fate = w->graph->starts[owner].fate & (FATE_RETURNS | FATE_MAY_RETURN);

	/* A block can wait but for what is at its end. */
	if (way == WAY_BRANCH)
		fate |= FATE_MAY_RETURN;
	else
		codeflow_wait(w, owner);
	codeflow_leave(w, fate, 0);
}

/* What the walk knows comes to a block that is there. */
static void codeflow_meet(struct codeflow_walk *w, uint32_t block, uint8_t level,
			  enum codeflow_way way)
{
	struct codegraph_block *b = &w->graph->blocks[block];
	struct codestate joined = b->state;

	if (b->owner != w->owner)
		codeflow_follow(w, b->owner, way);
	if (codegraph_is_kept(w->graph, block)) {
		if (!codestate_same_frame(&b->state, &w->state))
			codegraph_refute(w->graph);
		return;
	}
	if (b->is_start) {
		/*
		 * A function to others, and a label to this one. Who goes on to it without a jump
		 * does not get there: compilers write nothing behind what cannot be reached.
		 */
		if (way != WAY_ON && level == LEVEL_FLOW && codestate_knows_sp(&w->state) &&
		    !codestate_is_return(&w->state) && codestate_is_return(&b->state)) {
			codegraph_refute(w->graph);
			codestate_join(&b->state, &w->state);
			codegraph_queue(w->graph, block);
		}
		return;
	}
	if (level < b->level) {
		b->state = w->state;
		b->owner = w->owner;
		b->level = level;
		codegraph_queue(w->graph, block);
		return;
	}
	if (!codestate_join(&joined, &w->state)) {
		codegraph_refute(w->graph);
		if (level > b->level)
			return;
	}
	if (memcmp(&joined, &b->state, sizeof(joined)) == 0)
		return;
	b->state = joined;
	codegraph_queue(w->graph, block);
}

/* The walk's state holds at vaddr as well. */
static void codeflow_arrive(struct codeflow_walk *w, uint64_t vaddr, uint8_t level,
			    enum codeflow_way way)
{
	struct codegraph *graph = w->graph;
	const struct codegraph_area *area = codegraph_find(graph, vaddr);
	uint32_t at, block;

	level = level > w->level ? level : w->level;
	if (!area) {
		codeflow_leave(w, FATE_MAY_RETURN, 0);
		return;
	}
	at = codegraph_index(area, vaddr);
	if (graph->block_at[at]) {
		codeflow_meet(w, graph->block_at[at] - 1, level, way);
		return;
	}
	if (graph->map[at] & MARK_INSIDE) {
		codegraph_refute(graph);
		return;
	}
	block = codegraph_add_block(graph, area, vaddr, &w->state, level, w->owner);
	if (block == CODEGRAPH_NONE)
		return;
	if (graph->map[at] & MARK_INSN)
		codegraph_split(graph, area, vaddr);
	codegraph_queue(graph, block);
}

/* The entry of a table, as an address. */
static uint64_t codeflow_entry(const uint8_t *entries, uint32_t i, bool wide, uint64_t table)
{
	uint64_t pointer;
	int32_t relative;

	if (wide) {
		memcpy(&pointer, entries + 8 * (size_t)i, sizeof(pointer));
		return pointer;
	}
	memcpy(&relative, entries + 4 * (size_t)i, sizeof(relative));
	return table + (uint64_t)(int64_t)relative;
}

/* An indirect jump: where it went when more was known, nothing is kept. */
static void codeflow_lost(struct codeflow_walk *w)
{
	uint8_t jumped = w->graph->blocks[w->block].jumped;

	codegraph_refute(w->graph);
	if (jumped)
		codeflow_contradict(w, jumped - 1);
}

static void codeflow_jump_table(struct codeflow_walk *w, uint64_t table, bool wide)
{
	uint32_t n = w->state.entries;
	const uint8_t *entries = NULL;
	uint64_t target;

	if (n > 0 && n <= CODEFLOW_TABLE_MAX)
		entries = w->graph->data(w->graph->data_arg, table, (wide ? 8ull : 4ull) * n);
	if (!entries) {
		codeflow_decide(w->graph, w->owner, FATE_MAY_RETURN);
		codeflow_lost(w);
		return;
	}
	codegraph_count(w->graph, n + CODEFLOW_TABLE_COST);
	w->graph->blocks[w->block].jumped = LEVEL_TABLE + 1;
	for (uint32_t i = 0; i < n && !w->graph->err; i++) {
		target = codeflow_entry(entries, i, wide, table);
		/* The last ones of a table may stand for values that do not occur. */
		if (codegraph_find(w->graph, target))
			codeflow_arrive(w, target, LEVEL_TABLE, WAY_BRANCH);
	}
}

static void codeflow_jump(struct codeflow_walk *w, const struct x86_insn *insn)
{
	uint64_t origin = codegraph_origin(w->graph), target;
	enum code_value is;
	int32_t n = 0;

	if (insn->has_target) {
		codeflow_arrive(w, insn->target, LEVEL_FLOW, WAY_JUMP);
		return;
	}
	is = codestate_jump_table(&w->state, insn, origin, &n);
	target = origin + (uint64_t)(int64_t)n;
	if (is == CODE_ADDRESS) {
		if (codestate_is_return(&w->state))
			codegraph_start(w->graph, target);
		w->graph->blocks[w->block].jumped = w->level + 1;
		codeflow_arrive(w, target, LEVEL_FLOW, WAY_JUMP);
	} else if (is == CODE_TARGET || is == CODE_POINTER) {
		codeflow_jump_table(w, target, is == CODE_POINTER);
	} else {
		/* A function is called in the place of a return, or we do not know what it is. */
		if (!codestate_is_return(&w->state) || w->graph->blocks[w->block].jumped)
			codeflow_lost(w);
		codeflow_leave(w, FATE_MAY_RETURN, 0);
	}
}

/* The address of the function that is called; UINT64_MAX when it is not known. */
static uint64_t codeflow_callee(const struct codeflow_walk *w, const struct x86_insn *insn)
{
	const struct codestate *state = &w->state;

	if (insn->has_target)
		return insn->target;
	if (insn->a.kind == X86_REGISTER && insn->a.reg < X86_REGISTERS &&
	    state->is[insn->a.reg] == CODE_ADDRESS)
		return codegraph_origin(w->graph) + (uint64_t)(int64_t)state->n[insn->a.reg];
	return UINT64_MAX;
}

/* While a function is only tried, what it calls is not looked at yet. */
static uint32_t codeflow_start_called(struct codegraph *graph, uint64_t vaddr)
{
	const struct codegraph_area *area = graph->trying ? codegraph_find(graph, vaddr) : NULL;

	if (area && !graph->block_at[codegraph_index(area, vaddr)])
		return CODEGRAPH_NONE;
	return codegraph_start(graph, vaddr);
}

static void codeflow_call(struct codeflow_walk *w, const struct x86_insn *insn)
{
	uint64_t next = w->at + insn->length;
	uint32_t start = codeflow_start_called(w->graph, codeflow_callee(w, insn));
	uint8_t fate = codegraph_is_foreign(insn) ? FATE_MAY_RETURN : FATE_RETURNS;

	if (start != CODEGRAPH_NONE) {
		codeflow_wait(w, start);
		fate = w->graph->starts[start].fate;
	}
	if (!(fate & (FATE_RETURNS | FATE_MAY_RETURN)) || !codegraph_find(w->graph, next))
		return;
	codestate_apply(&w->state, insn, codegraph_origin(w->graph));
	if (fate & FATE_LOSES_SP)
		codestate_lose(&w->state, X86_RSP);
	if (fate & FATE_LOSES_FP)
		codestate_lose(&w->state, X86_RBP);
	if (fate & FATE_RETURNS)
		codeflow_arrive(w, next, LEVEL_RETURNED, WAY_ON);
	/* Another function begins behind padding, if abort() or the like is what was called. */
	else if (!codegraph_is_padded(w->area, next))
		codeflow_arrive(w, next, LEVEL_ASSUMED, WAY_ON);
}

static void codeflow_take_address(struct codeflow_walk *w, const struct x86_insn *insn)
{
	struct codegraph *graph = w->graph;
	uint64_t address;

	if ((insn->kind != X86_LEA && insn->kind != X86_MOVE) || insn->a.kind != X86_REGISTER ||
	    insn->a.reg >= X86_REGISTERS || w->state.is[insn->a.reg] != CODE_ADDRESS)
		return;
	address = codegraph_origin(graph) + (uint64_t)(int64_t)w->state.n[insn->a.reg];
	if (!codegraph_find(graph, address) || graph->taken_n >= CODEGRAPH_TAKEN_MAX)
		return;
	if (codegraph_grow(graph, (void **)&graph->taken, graph->taken_n, &graph->taken_room,
			   sizeof(*graph->taken), CODEGRAPH_TAKEN_MAX))
		graph->taken[graph->taken_n++] = address;
}

/* One instruction. False: the block ends with it. */
static bool codeflow_step(struct codeflow_walk *w, const struct x86_insn *insn)
{
	struct codeflow_walk taken;

	switch (insn->kind) {
	case X86_JUMP:
		codeflow_jump(w, insn);
		return false;
	case X86_RETURN:
		codeflow_return(w, insn);
		return false;
	case X86_HALT:
		codegraph_refute(w->graph);
		return false;
	case X86_CALL:
		if (codegraph_is_push(insn, w->at))
			codestate_push_number(&w->state);
		else
			codeflow_call(w, insn);
		return codegraph_is_push(insn, w->at);
	case X86_BRANCH:
		taken = *w;
		codestate_branch(&taken.state, insn, true);
		codeflow_arrive(&taken, insn->target, LEVEL_FLOW, WAY_BRANCH);
		codestate_branch(&w->state, insn, false);
		return true;
	default:
		codestate_apply(&w->state, insn, codegraph_origin(w->graph));
		codeflow_take_address(w, insn);
		/* Then it was not as it seemed from the first instruction on. */
		if (w->state.popped == CODE_POPPED_MORE)
			codeflow_contradict(w, w->level > LEVEL_RETURNED ? w->level : LEVEL_FLOW);
		return true;
	}
}

static void codeflow_walk(struct codegraph *graph, uint32_t block)
{
	const struct codegraph_block *b = &graph->blocks[block];
	struct codeflow_walk w = {.graph = graph,
				  .area = &graph->areas[b->area],
				  .at = b->vaddr,
				  .block = block,
				  .owner = b->owner,
				  .level = b->level,
				  .state = b->state};
	uint64_t start = w.at, end = w.area->vaddr + w.area->n;
	struct x86_insn insn;

	for (; w.at < end && !graph->err; w.at += insn.length) {
		uint32_t at = codegraph_index(w.area, w.at);

		if (w.at != start && graph->block_at[at]) {
			codeflow_meet(&w, graph->block_at[at] - 1, w.level, WAY_ON);
			return;
		}
		codegraph_count(graph, 1);
		if (!codegraph_decode(w.area, w.at, &insn) ||
		    !codegraph_mark(graph, at, insn.length)) {
			codegraph_refute(graph);
			return;
		}
		if (!codeflow_step(&w, &insn))
			return;
	}
	/* Into code that has information. */
	codeflow_leave(&w, FATE_MAY_RETURN, 0);
}

void codeflow_run(struct codegraph *graph)
{
	for (int level = 0; level < CODEGRAPH_LEVELS && !graph->err;) {
		uint32_t block = graph->queue[level];

		if (block == CODEGRAPH_NONE || (graph->trying && graph->refuted)) {
			level++;
			continue;
		}
		graph->queue[level] = graph->blocks[block].next_queued;
		graph->blocks[block].queued = false;
		codeflow_walk(graph, block);
		level = 0;
	}
}

void codeflow_prove(struct codegraph *graph, uint64_t vaddr)
{
	codegraph_start(graph, vaddr);
}

void codeflow_enter(struct codegraph *graph, uint64_t vaddr)
{
	const struct codegraph_area *area = codegraph_find(graph, vaddr);

	if (codegraph_start(graph, vaddr) == CODEGRAPH_NONE)
		return;
	for (uint8_t i = 0; i < X86_REGISTERS; i++)
		codestate_lose(
		    &graph->blocks[graph->block_at[codegraph_index(area, vaddr)] - 1].state, i);
}
