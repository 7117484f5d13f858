/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When there is no memory left. The caches have limits of their own, so what is missing is missing
 * either because one file wants too much, and then it does without names or table, or because this
 * process holds more than it should, and then it ends: the next one begins with nothing, at the
 * same sample.
 */
#ifndef SCONCE_SYMBOLIZER_MEMORY_H
#define SCONCE_SYMBOLIZER_MEMORY_H

#include <stdnoreturn.h>

/* Before the sandbox is entered: what may we have? */
void memory_open(void);

/* There was not enough for something small. */
noreturn void memory_over(const char *what);

/* There was not enough to look into this file, and all that it took has been given back. */
void memory_file_failed(const char *path, const char *without);

#endif
