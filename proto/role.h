/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes, in one list. ROLE(NAME, name, many): many = one per worker.
 * The binary of a role is `sconce-<name>`, beside `sconce` or in libexec/sconce.
 */
#ifndef SCONCE_PROTO_ROLE_H
#define SCONCE_PROTO_ROLE_H

#define ROLES(ROLE)                                                                                \
	ROLE(CLI, cli, 0)                                                                          \
	ROLE(SUPERVISOR, supervisor, 0)                                                            \
	ROLE(LOADER, loader, 0)                                                                    \
	ROLE(SAMPLER, sampler, 0)                                                                  \
	ROLE(BROKER, broker, 0)                                                                    \
	ROLE(EXPORTER, exporter, 0)                                                                \
	ROLE(VIEWER, viewer, 0)                                                                    \
	ROLE(SYMBOLIZER, symbolizer, 1)

enum role {
#define ROLE(NAME, name, many) ROLE_##NAME,
	ROLES(ROLE)
#undef ROLE
		ROLE_COUNT,
	ROLE_ANY = ROLE_COUNT /* in the list of messages */
};

/* Workers at most: each costs two queues, two logs and a uid. */
#define WORKERS_MAX 8

/* A slot is one process: the roles before SYMBOLIZER are their own slot, workers follow. */
#define SLOT_WORKER(k) (ROLE_SYMBOLIZER + (k))
#define SLOT_COUNT (ROLE_SYMBOLIZER + WORKERS_MAX)

/* uid of a slot = uid_base + slot; the supervisor and the cli keep theirs. */

const char *role_name(enum role role);
/* All samples of a process go to one worker. */
static inline unsigned worker_of(unsigned pid, unsigned workers)
{
	return (unsigned)(((unsigned long long)(pid * 2654435761u) * workers) >> 32);
}

static inline enum role slot_role(int slot)
{
	return slot < ROLE_SYMBOLIZER ? (enum role)slot : ROLE_SYMBOLIZER;
}

#endif
