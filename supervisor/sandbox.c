/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "supervisor/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "supervisor/emptyroot.h"
#include "supervisor/filter.h"
#include "supervisor/landlock.h"
#include "supervisor/log.h"
#include "supervisor/profiles.h"

/* linux/prctl.h of 6.1 lacks both; the kernel has them since 6.3. */
#ifndef PR_SET_MDWE
#define PR_SET_MDWE		 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

static int sandbox_layer(enum profile_layer layer, enum role role, const char *const *readable)
{
	switch (layer) {
	case LAYER_MDWE:
		return prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) ? -errno : 0;
	case LAYER_PIDS: /* its first process is this one (spawn.c), or that is its init (init.c) */
		return getpid() == 1 || getppid() == 1 ? 0 : -EPERM;
	case LAYER_ROOT:
		return emptyroot_enter();
	case LAYER_LANDLOCK:
		return landlock_restrict(readable, role == ROLE_EXPORTER);
	case LAYER_SECCOMP:
		return filter_load(role);
	case LAYER_COUNT:
		break;
	}
	return -EINVAL;
}

uint32_t sandbox_enter(enum role role, const char *const *readable)
{
	static const struct {
		enum profile_layer layer;
		const char *missing;
	} order[] = {
	    /* each is possible until the next one is there */
	    {LAYER_MDWE, "memory that may become executable"},
	    {LAYER_PIDS, "no process, network and ipc namespace of its own"},
	    {LAYER_ROOT, "no empty root directory"},
	    {LAYER_LANDLOCK, "no Landlock"},
	    {LAYER_SECCOMP, "no seccomp filter"},
	};
	struct rlimit none = {0, 0};
	uint32_t layers = 0;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fatal("%s cannot set no_new_privs: %m", role_name(role));
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		log_warn("cannot become undumpable: %m");
	setrlimit(RLIMIT_CORE, &none);
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		int err = profiles_layers(role) & 1u << order[i].layer
			      ? sandbox_layer(order[i].layer, role, readable)
			      : -ECANCELED;

		if (err == 0)
			layers |= 1u << order[i].layer;
		else if (err != -ECANCELED)
			log_info("%s runs with %s: %s", role_name(role), order[i].missing,
				 strerror(-err));
	}
	return layers;
}
