/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbolizer: one worker that turns frames into names. It is the process that reads what others
 * wrote (ELF files, stacks, cgroup names), and therefore the one that owns nothing: it opens no
 * file and no socket, and everything it reads was handed to it.
 */
#include <signal.h>
#include <string.h>

#include "supervisor/child.h"
#include "supervisor/sandbox.h"
#include "symbolizer/memory.h"
#include "symbolizer/worker.h"

int main(int argc, char **argv)
{
	static struct worker worker;
	struct child child;
	int err;

	child_start(&child, ROLE_SYMBOLIZER, argc, argv);
	memory_open();
	/* What is longer than any table is not written (RLIMIT_FSIZE). */
	signal(SIGXFSZ, SIG_IGN);
	err = worker_open(&worker, &child);
	if (err)
		fatal("cannot open what the supervisor handed over: %s", strerror(-err));
	child_ready(&child, sandbox_enter(ROLE_SYMBOLIZER, NULL));
	while (child_continue(&child))
		if (!worker_turn(&worker))
			break;
	worker_close(&worker);
	return worker.broken ? 1 : 0;
}
