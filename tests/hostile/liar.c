/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A symbolizer that was taken over. It stands in the place of sconce-symbolizer and is one, with
 * all of its modules, for a second; then it lies, in a way of its own for each slot. It was
 * confined as the real one is, because whoever takes a worker over comes by way of a file, behind
 * that line; but for lies that could not be told then.
 *
 * Which lie a slot tells is written into the program itself, by the scenario, because a worker has
 * neither environment nor files.
 */
#include <string.h>

#include "supervisor/sandbox.h"
#include "tests/hostile/lies.h"

#define HONEST_NS 1000000000ull

/* The scenario puts names behind the colon, one for each slot, each with a comma behind it. */
char liar_names[512] = "liar-names:";

uint64_t lies_random(struct liar *liar)
{
	uint64_t x = liar->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return liar->random = x;
}

static const struct lie *lie_of_slot(int slot)
{
	static const struct lie *const lists[] = {lies_messages, lies_tables, lies_memory,
						  lies_life};
	const char *name = strchr(liar_names, ':') + 1;

	for (int i = ROLE_SYMBOLIZER; i < slot && *name; i++)
		name += strcspn(name, ",") + 1;
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		for (const struct lie *lie = lists[i]; lie->name; lie++)
			if (strcspn(name, ",") == strlen(lie->name) &&
			    strncmp(name, lie->name, strlen(lie->name)) == 0)
				return lie;
	return NULL;
}

int main(int argc, char **argv)
{
	static struct liar liar;
	const struct lie *lie;
	uint64_t begin_ns;
	int err;

	child_start(&liar.child, ROLE_SYMBOLIZER, argc, argv);
	lie = lie_of_slot(liar.child.slot);
	err = worker_open(&liar.worker, &liar.child);
	if (err)
		fatal("cannot open what the supervisor handed over: %s", strerror(-err));
	liar.first = liar.child.ledger.now.counter[C_symbolizer_samples] == 0;
	child_ready(&liar.child, lie && lie->unconfined ? 0 : sandbox_enter(ROLE_SYMBOLIZER, NULL));
	begin_ns = liar.random = child_now_ns();
	for (;;) {
		/* An honest one leaves when its supervisor is gone, or somebody else has lied. */
		if (!child_continue(&liar.child) && !lie)
			return 0;
		if (!worker_turn(&liar.worker) && !lie)
			return 1;
		if (lie && child_now_ns() - begin_ns > HONEST_NS) {
			lie->tell(&liar);
			liar.told++;
		}
	}
}
