/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runtimes of languages that a worker met and does not understand: their scripts show as the C that
 * runs them. In its ledger's page, for those who show it; a ledger's owner may have written
 * anything.
 */
#ifndef SCONCE_SHM_UNREAD_H
#define SCONCE_SHM_UNREAD_H

#include <stdbool.h>

#include "shm/ledger.h"

/* Printable ASCII without quotes. */
struct unread_runtime {
	char language[sizeof(((struct ledger_unread *)0)->language)];
	char version[sizeof(((struct ledger_unread *)0)->version)]; /* "" = not known */
	char path[sizeof(((struct ledger_unread *)0)->path)];	    /* the end of it */
};

/* Of this file; once, however often it is said. Only so many are kept: the oldest goes. */
void unread_add(struct ledger *ledger, const char *language, const char *version, const char *path);
void unread_clear(struct ledger *ledger);

/* The next one from *at on, which begins with 0 and is moved on. False: there is no other. */
bool unread_next(const struct ledger *ledger, uint32_t *at, struct unread_runtime *runtime);

#endif
