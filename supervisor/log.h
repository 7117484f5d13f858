/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: logfmt lines on stderr, `level=... role=... msg="..."`, cut at 1 KiB, at most LOG_PER_10S
 * in ten seconds (what is suppressed is counted in the next line). Nothing here is called per sample.
 */
#ifndef SCONCE_SUPERVISOR_LOG_H
#define SCONCE_SUPERVISOR_LOG_H

#include <stdnoreturn.h>

#include "proto/role.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO };

/* Name this process (slot: see proto/role.h) and the highest level that is written. */
void log_init(int slot, enum log_level level);

__attribute__((format(printf, 2, 3))) void log_line(enum log_level level, const char *format, ...);

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)

/* Log and exit(1): for start-up, where the supervisor tries again. */
__attribute__((format(printf, 1, 2))) noreturn void fatal(const char *format, ...);

#endif
