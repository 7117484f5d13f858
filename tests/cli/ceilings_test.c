/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ceilings: it adds up, follows the configuration, and a process can be held to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/ceilings.h"

#define MIB 1048576ull

static struct config config_of(enum config_mode mode)
{
	struct config config;

	config_defaults(&config, mode);
	config.runtime.cpus = 4;
	ceilings_set(&config);
	return config;
}

static uint64_t limit_of(const struct config *config, enum role role, uint64_t resource)
{
	for (int i = 0; i < CONFIG_LIMITS_MAX && config->runtime.limits[role][i].most; i++)
		if (config->runtime.limits[role][i].resource == resource)
			return config->runtime.limits[role][i].most;
	return 0;
}

static uint64_t own(const struct config *config, enum role role)
{
	return limit_of(config, role, RLIMIT_DATA) + limit_of(config, role, RLIMIT_STACK);
}

static void the_sum_is_that_of_the_parts(void **state)
{
	struct config config = config_of(MODE_RUN);
	const struct config_memory *memory = &config.runtime.memory;
	uint64_t sum = memory->shared_bytes + memory->kernel_bytes;

	(void)state;
	config.workers = 3;
	ceilings_set(&config);
	sum = memory->shared_bytes + memory->kernel_bytes;
	for (int role = ROLE_SUPERVISOR; role < ROLE_COUNT; role++) {
		assert_in_range(own(&config, (enum role)role), 8 * MIB, 1024 * MIB);
		sum += own(&config, (enum role)role) * (role == ROLE_SYMBOLIZER ? 3 : 1);
	}
	assert_int_equal(sum, memory->all_bytes);
}

static void each_option_moves_what_it_names(void **state)
{
	struct config plain = config_of(MODE_RUN), config = plain;

	(void)state;
	config.symbol_bytes += 100 * MIB;
	config.viewer.max_slots += 10;
	config.unwind_bytes += 8 * MIB;
	config.spool_bytes += 10 * MIB;
	ceilings_set(&config);
	assert_true(own(&config, ROLE_SYMBOLIZER) >= own(&plain, ROLE_SYMBOLIZER) + 108 * MIB);
	assert_int_equal(own(&config, ROLE_VIEWER),
			 own(&plain, ROLE_VIEWER) + 10 * config.viewer.slot_max_bytes);
	assert_int_equal(own(&config, ROLE_SAMPLER), own(&plain, ROLE_SAMPLER));
	assert_true(config.runtime.memory.kernel_bytes >=
		    plain.runtime.memory.kernel_bytes + 8 * MIB);
	assert_int_equal(config.runtime.memory.shared_bytes,
			 plain.runtime.memory.shared_bytes + 10 * MIB);
	config = plain;
	config.viewer.enabled = false;
	ceilings_set(&config);
	assert_true(config.runtime.memory.all_bytes <
		    plain.runtime.memory.all_bytes - own(&plain, ROLE_VIEWER));
}

static void everybody_is_named(void **state)
{
	struct config config = config_of(MODE_RECORD);
	char text[512];

	(void)state;
	ceilings_text(&config, text, sizeof(text));
	for (int role = ROLE_SUPERVISOR; role < ROLE_COUNT; role++)
		if (role != ROLE_VIEWER)
			assert_non_null(strstr(text, role_name((enum role)role)));
	assert_null(strstr(text, "viewer"));
	assert_non_null(strstr(text, "shared memory"));
	/* What does not fit is cut, not written. */
	memset(text, 'x', sizeof(text));
	ceilings_text(&config, text, 20);
	assert_int_equal(strnlen(text, 20), 19);
	assert_int_equal(text[20], 'x');
}

/* A lower limit stays, a higher one goes down; without limits nothing happens. */
static int take_limits(const struct config *config)
{
	struct rlimit limit = {100, 200};

	if (setrlimit(RLIMIT_NOFILE, &limit) || config_limit(config, ROLE_VIEWER))
		return 1;
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur != 200 || limit.rlim_max != 200)
		return 2;
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur != 4096 || limit.rlim_max != 4096)
		return 3;
	return 0;
}

static void a_process_takes_them_up(void **state)
{
	struct config config = {
	    .runtime.limits[ROLE_VIEWER] = {{RLIMIT_NOFILE, 300}, {RLIMIT_FSIZE, 4096}}};
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0)
		_exit(take_limits(&config));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_sum_is_that_of_the_parts),
	    cmocka_unit_test(each_option_moves_what_it_names),
	    cmocka_unit_test(everybody_is_named),
	    cmocka_unit_test(a_process_takes_them_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
