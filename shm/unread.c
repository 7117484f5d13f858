/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/unread.h"

#include <string.h>

/* The end of a text, for the beginning of a path says little. */
static void unread_cut(char *to, size_t size, const char *text)
{
	size_t n = strlen(text);

	memset(to, 0, size);
	memcpy(to, text + (n < size ? 0 : n - (size - 1)), n < size ? n : size - 1);
}

void unread_add(struct ledger *ledger, const char *language, const char *version, const char *path)
{
	struct ledger_unread *all = ledger->unread, one;
	uint32_t i = 0;

	unread_cut(one.language, sizeof(one.language), language);
	unread_cut(one.version, sizeof(one.version), version);
	unread_cut(one.path, sizeof(one.path), path);
	while (i < LEDGER_UNREAD - 1 && all[i].language[0] && memcmp(&all[i], &one, sizeof(one)))
		i++;
	memmove(&all[1], &all[0], i * sizeof(one));
	all[0] = one;
}

void unread_clear(struct ledger *ledger)
{
	memset(ledger->unread, 0, sizeof(ledger->unread));
}

static void unread_copy(char *to, const char *from, size_t size)
{
	memcpy(to, from, size);
	to[size - 1] = 0;
	for (char *c = to; *c; c++)
		if (*c < ' ' || *c > '~' || strchr("\"'\\<>&", *c))
			*c = '?';
}

bool unread_next(const struct ledger *ledger, uint32_t *at, struct unread_runtime *runtime)
{
	const struct ledger_unread *from;

	if (!ledger || *at >= LEDGER_UNREAD)
		return false;
	from = &ledger->unread[(*at)++];
	unread_copy(runtime->language, from->language, sizeof(from->language));
	unread_copy(runtime->version, from->version, sizeof(from->version));
	unread_copy(runtime->path, from->path, sizeof(from->path));
	return runtime->language[0];
}
