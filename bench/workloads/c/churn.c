/* SPDX-License-Identifier: Apache-2.0 */
/* Many short lives: fork and exec of churn-child, one after the other. */
#define _GNU_SOURCE
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/workloads/c/burn.h"

int main(int argc, char **argv)
{
	int count = (int)burn_option(argc, argv, "--count", 200, 100000);
	double end = burn_clock(CLOCK_MONOTONIC) +
		     burn_option(argc, argv, "--seconds", 30, BURN_SECONDS_MAX);
	char self[PATH_MAX] = "", child[PATH_MAX], ms[32];

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	snprintf(child, sizeof(child), "%.4000s/churn-child", dirname(self));
	snprintf(ms, sizeof(ms), "%d", (int)burn_option(argc, argv, "--ms", 10, 10000));
	while (count-- > 0 && burn_clock(CLOCK_MONOTONIC) < end) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			execl(child, "churn-child", "--ms", ms, (char *)NULL);
			_exit(127);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			return 1;
	}
	return 0;
}
