/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/sandbox.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include "supervisor/log.h"

/* linux/prctl.h of 6.1 lacks both; the kernel has them since 6.3. */
#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

void sandbox_enter(enum role role)
{
	struct rlimit none = {0, 0};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fatal("%s cannot set no_new_privs: %m", role_name(role));
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		log_warn("cannot become undumpable: %m");
	setrlimit(RLIMIT_CORE, &none);
	/* Older kernels answer EINVAL: one layer less, `sconce doctor` says so. */
	prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0);
}
