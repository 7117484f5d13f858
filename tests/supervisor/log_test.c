/* SPDX-License-Identifier: Apache-2.0 */
/* The log: lines that nobody can break, and a reader that does not read. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "supervisor/log.h"

static int saved, out;

static int open_pipe(void **state)
{
	int ends[2];

	(void)state;
	saved = dup(STDERR_FILENO);
	if (pipe(ends) || dup2(ends[1], STDERR_FILENO) < 0)
		return -1;
	close(ends[1]);
	out = ends[0];
	fcntl(out, F_SETFL, O_NONBLOCK);
	log_init(ROLE_BROKER, LOG_INFO);
	return 0;
}

static int close_pipe(void **state)
{
	(void)state;
	dup2(saved, STDERR_FILENO);
	close(saved);
	return close(out);
}

static size_t read_all(char *text, size_t size)
{
	ssize_t n = read(out, text, size - 1);

	text[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

static void a_line_stays_a_line(void **state)
{
	char text[4096];

	(void)state;
	log_warn("named %s", "a\"b\nlevel=error role=supervisor msg=\"c");
	read_all(text, sizeof(text));
	assert_string_equal(
	    text, "level=warn role=broker msg=\"named a'b'level=error role=supervisor msg='c\"\n");
}

/* Ends by the alarm when a line waits for room. */
static void a_full_pipe_does_not_hold_us_up(void **state)
{
	char block[4096], text[4096] = "";

	(void)state;
	memset(block, 'x', sizeof(block));
	fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
	while (write(STDERR_FILENO, block, sizeof(block)) > 0)
		;
	fcntl(STDERR_FILENO, F_SETFL, 0);
	alarm(5);
	for (int i = 0; i < 10; i++)
		log_warn("line %d", i);
	alarm(0);
	while (read_all(text, sizeof(text)))
		assert_null(strstr(text, "line"));
	log_warn("there is room again");
	read_all(text, sizeof(text));
	assert_non_null(strstr(text, "there is room again"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(a_line_stays_a_line, open_pipe, close_pipe),
	    cmocka_unit_test_setup_teardown(a_full_pipe_does_not_hold_us_up, open_pipe, close_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
