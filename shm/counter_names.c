/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the counters are called (shm/ledger.h): for those who show them. Who counts needs no names.
 */
#include "shm/ledger.h"

static const struct {
	const char *name, *help, *role;
	enum counter_kind kind;
} counters[] = {
#define ROLE_SAMPLER "sampler"
#define ROLE_BROKER "broker"
#define ROLE_SYMBOLIZER "symbolizer"
#define ROLE_EXPORTER "exporter"
#define ROLE_VIEWER "viewer"
#define COUNTER(name, role, kind, help) {#name, help, ROLE_##role, COUNTER_##kind},
	COUNTERS(COUNTER)
#undef COUNTER
};

const char *counter_name(enum counter counter)
{
	return counters[counter].name;
}

const char *counter_help(enum counter counter)
{
	return counters[counter].help;
}

const char *counter_role(enum counter counter)
{
	return counters[counter].role;
}

enum counter_kind counter_kind(enum counter counter)
{
	return counters[counter].kind;
}
