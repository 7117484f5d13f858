/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for any role under the real supervisor modules. What it does is written in the run_dir of
 * its configuration, as "<role>=<what> ...": work (default), exit, hang, stop, garbage, hang-up,
 * idle-queue, slow, spin.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/child.h"

#define SLOW_CLOCKS (CLOCKS_PER_SEC / 5)

static int fake_does(const struct child *child, const char *what)
{
	char word[64], all[CONFIG_PATH_BYTES + 2];

	snprintf(word, sizeof(word), " %s=%s ", role_name(child->role), what);
	snprintf(all, sizeof(all), " %s ", child->config->run_dir);
	return strstr(all, word) != NULL;
}

int main(int argc, char **argv)
{
	struct child child;

	if (argc < 2)
		return 2;
	child_start(&child, slot_role(atoi(argv[1])), argc, argv);
	if (fake_does(&child, "exit"))
		_exit(3);
	child_ready(&child, 0);
	if (fake_does(&child, "garbage"))
		send(FD_SUPERVISOR, "garbage", 7, 0);
	if (fake_does(&child, "stop"))
		raise(SIGSTOP);
	while (fake_does(&child, "hang"))
		pause();
	while (fake_does(&child, "spin"))
		;
	while (fake_does(&child, "hang-up")) {
		shutdown(FD_SUPERVISOR, SHUT_RDWR);
		ledger_turn(&child.ledger);
		usleep(20000);
	}
	while (child_continue(&child)) {
		clock_t until = fake_does(&child, "slow") ? clock() + SLOW_CLOCKS : 0;

		while (clock() < until)
			;
		if (child.draining)
			child_drained(&child);
		usleep(20000);
	}
	_exit(0);
}
