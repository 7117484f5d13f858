/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a function's steps (facts_trace()). */
#include <errno.h>

#include "symbolizer/lang/facts.h"

static bool facts_is_variable(const struct facts_value *v)
{
	/* Variables lie below the thread pointer; what is above is the C library's (the stack's
	 * guard). */
	return v->kind == FACTS_THREAD_GOT || v->kind == FACTS_THREAD_DTV ||
	       (v->kind == FACTS_THREAD && v->number < 0);
}

static bool facts_same_variable(const struct facts_value *a, const struct facts_value *b)
{
	return a->kind == b->kind &&
	       (a->kind == FACTS_THREAD ? a->number == b->number : a->of == b->of);
}

int facts_thread(struct facts *facts, uint64_t vaddr, uint32_t skip, struct table_runtime *runtime)
{
	struct facts_step steps[FACTS_INSNS_MAX];
	uint32_t n = facts_trace(facts, vaddr, steps, FACTS_INSNS_MAX);

	for (uint32_t i = 0; i < n; i++) {
		const struct facts_value *v = &steps[i].at;
		bool seen = false;

		for (uint32_t k = 0; k < i; k++)
			seen |= facts_same_variable(v, &steps[k].at);
		if (steps[i].form == FACTS_CALL || seen || !facts_is_variable(v) || skip-- > 0)
			continue;
		runtime->thread = v->kind == FACTS_THREAD	? TABLE_THREAD_TP
				  : v->kind == FACTS_THREAD_GOT ? TABLE_THREAD_GOT
								: TABLE_THREAD_DTV;
		runtime->thread_at = v->kind == FACTS_THREAD ? (uint64_t)v->number : v->of;
		return 0;
	}
	return -ENOENT;
}

int facts_operand(struct facts *facts, uint64_t vaddr, uint32_t nth, uint64_t *operand)
{
	struct facts_step steps[FACTS_INSNS_MAX];
	uint32_t n = facts_trace(facts, vaddr, steps, FACTS_INSNS_MAX);

	for (uint32_t i = 0; i < n; i++) {
		if (steps[i].form == FACTS_CALL || steps[i].at.kind != FACTS_CONSTANT || nth-- > 0)
			continue;
		*operand = (uint64_t)steps[i].at.number;
		return 0;
	}
	return -ENOENT;
}

int facts_field(struct facts *facts, uint64_t vaddr, uint32_t nth, int64_t *displacement)
{
	struct facts_step steps[FACTS_INSNS_MAX];
	uint32_t n = facts_trace(facts, vaddr, steps, FACTS_INSNS_MAX);

	for (uint32_t i = 0; i < n; i++) {
		const struct facts_value *v = &steps[i].at;

		if (steps[i].form == FACTS_CALL ||
		    (v->kind != FACTS_ARGUMENT && v->kind != FACTS_LOADED) || nth-- > 0)
			continue;
		*displacement = v->number;
		return 0;
	}
	return -ENOENT;
}

int facts_key(struct facts *facts, uint64_t vaddr, uint64_t *at, bool *taken)
{
	struct facts_step steps[FACTS_INSNS_MAX];
	uint32_t n = facts_trace(facts, vaddr, steps, FACTS_INSNS_MAX);

	/* The last call that is given one: what is asked before is whether there is a key. */
	for (uint32_t i = n; i-- > 0;) {
		const struct facts_value *rdi = &steps[i].rdi;

		if (steps[i].form != FACTS_CALL)
			continue;
		*taken = rdi->kind == FACTS_CONSTANT;
		if (*taken) {
			*at = (uint64_t)rdi->number;
			return 0;
		}
		if (rdi->kind == FACTS_LOADED && rdi->number == 0 && steps[rdi->of].bytes == 4 &&
		    steps[rdi->of].at.kind == FACTS_CONSTANT) {
			*at = (uint64_t)steps[rdi->of].at.number;
			return 0;
		}
	}
	return -ENOENT;
}
