/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lies by doing nothing.
 */
#include <stdlib.h>
#include <unistd.h>

#include "tests/hostile/lies.h"

/* It does not turn. (As the first process of its namespace it cannot stop itself.) */
static void stop(struct liar *liar)
{
	(void)liar;
	for (;;)
		usleep(1000000);
}

static void leave(struct liar *liar)
{
	(void)liar;
	_exit(0);
}

static void crash(struct liar *liar)
{
	(void)liar;
	abort();
}

/* It turns, and reads nothing: not its queue, and none of its sockets. */
static void still(struct liar *liar)
{
	for (;;) {
		ledger_turn(&liar->child.ledger);
		usleep(10000);
	}
}

const struct lie lies_life[] = {{"stop", stop, false},
				{"leave", leave, false},
				{"crash", crash, false},
				{"still", still, false},
				{NULL, NULL, false}};
