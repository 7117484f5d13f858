/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/codeconfirm.h"

#define CODECONFIRM_ROUNDS_MAX 16

/* Whether a way that was assumed comes here to where it is known to be right. */
static bool codeconfirm_at(const struct codegraph *graph, uint64_t vaddr,
			   const struct codestate *state)
{
	const struct codegraph_block *b = codegraph_block(graph, vaddr);

	if (!codegraph_find(graph, vaddr))
		return codestate_is_return(state) && state->is[X86_RBP] == CODE_FP;
	return b && (b->level < LEVEL_ASSUMED || b->confirmed) && codestate_knows_sp(state) &&
	       codestate_same_sp(&b->state, state);
}

/* Whether what is called is known to return. */
static bool codeconfirm_returns(const struct codegraph *graph, const struct x86_insn *insn)
{
	const struct codegraph_block *b =
	    insn->has_target ? codegraph_block(graph, insn->target) : NULL;

	if (!b || !b->is_start)
		return !codegraph_is_foreign(insn);
	return graph->starts[b->owner].fate & FATE_RETURNS;
}

/* The same for the instruction with which a block ends. */
static bool codeconfirm_end(const struct codegraph *graph, const struct x86_insn *insn,
			    uint64_t next, struct codestate *state)
{
	bool is_return = codestate_is_return(state) && state->is[X86_RBP] == CODE_FP;
	const struct codegraph_block *behind;

	switch (insn->kind) {
	case X86_RETURN:
		return is_return && insn->bytes == 0;
	case X86_JUMP:
		return insn->has_target ? codeconfirm_at(graph, insn->target, state) : is_return;
	case X86_CALL:
		codestate_apply(state, insn, codegraph_origin(graph));
		behind = codegraph_block(graph, next);
		/* Where somebody else comes to may stand behind a call to abort(), too. */
		return behind && codeconfirm_at(graph, next, state) &&
		       (codeconfirm_returns(graph, insn) || behind->level == LEVEL_ASSUMED);
	default:
		return false;
	}
}

/* Whether a return, or stronger code, is reached from this block as it has to be. */
static bool codeconfirm_block(struct codegraph *graph, const struct codegraph_block *b)
{
	const struct codegraph_area *area = &graph->areas[b->area];
	struct codestate state = b->state;
	uint64_t at = b->vaddr;
	struct x86_insn insn;

	while (at < area->vaddr + area->n && codegraph_decode(area, at, &insn)) {
		codegraph_count(graph, 1);
		if (codegraph_ends_block(&insn, at))
			return codeconfirm_end(graph, &insn, at + insn.length, &state);
		if (insn.kind == X86_BRANCH && codeconfirm_at(graph, insn.target, &state))
			return true;
		codegraph_pass(&state, &insn, at, codegraph_origin(graph));
		at += insn.length;
		if (codegraph_block(graph, at))
			return codeconfirm_at(graph, at, &state);
	}
	return false;
}

void codeconfirm_all(struct codegraph *graph)
{
	bool more = true;

	/* Blocks further on were found later, mostly: few rounds do. */
	for (int round = 0; more && round < CODECONFIRM_ROUNDS_MAX; round++) {
		more = false;
		for (uint32_t i = graph->blocks_n; i-- > 0 && !graph->err;) {
			struct codegraph_block *b = &graph->blocks[i];

			if (b->level < LEVEL_ASSUMED || b->confirmed ||
			    !codeconfirm_block(graph, b))
				continue;
			b->confirmed = more = true;
		}
	}
}
