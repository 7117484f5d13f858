/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOG_LINE_BYTES 1024
#define LOG_PER_10S 50

static const char *const level_names[] = {"error", "warn", "info"};
static char process_name[32] = "sconce";
static enum log_level max_level = LOG_INFO;
static unsigned dropped; /* in this window */

void log_init(int slot, enum log_level level)
{
	if (slot >= ROLE_SYMBOLIZER)
		snprintf(process_name, sizeof(process_name), "symbolizer-%d", slot - ROLE_SYMBOLIZER);
	else
		snprintf(process_name, sizeof(process_name), "%s", role_name((enum role)slot));
	max_level = level;
}

/* Is there room in this ten-second window? *suppressed: lines that went missing in the last one. */
static int log_admit(unsigned *suppressed)
{
	static unsigned written;
	static time_t window;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	*suppressed = 0;
	if (now.tv_sec / 10 != window) {
		window = now.tv_sec / 10;
		written = 0;
		*suppressed = dropped;
		dropped = 0;
	}
	if (written++ < LOG_PER_10S)
		return 1;
	dropped++;
	return 0;
}

/* Quotes and control bytes would break the line; names in it may come from anyone. */
static void log_clean(char *text)
{
	for (; *text; text++)
		if (*text == '"' || (unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '\'';
}

static void log_write(enum log_level level, const char *format, va_list args)
{
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
	char text[LOG_LINE_BYTES - 100], line[LOG_LINE_BYTES];
	unsigned suppressed;
	int n;

	if (level > max_level || !log_admit(&suppressed))
		return;
	vsnprintf(text, sizeof(text), format, args);
	log_clean(text);
	n = suppressed ? snprintf(line, sizeof(line), "level=%s role=%s suppressed=%u msg=\"%s\"\n",
				  level_names[level], process_name, suppressed, text)
		       : snprintf(line, sizeof(line), "level=%s role=%s msg=\"%s\"\n",
				  level_names[level], process_name, text);
	/*
	 * One write per line, so that lines of several processes do not mix. A reader that does not
	 * read must not hold us up: a pipe that can be written takes 4 KiB, more than a line.
	 */
	if (poll(&out, 1, 0) != 1 || write(STDERR_FILENO, line, (size_t)n) < 0)
		dropped++;
}

void log_line(enum log_level level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_write(level, format, args);
	va_end(args);
}

void fatal(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_write(LOG_ERROR, format, args);
	va_end(args);
	exit(1);
}
